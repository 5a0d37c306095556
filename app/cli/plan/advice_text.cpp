// Turns advised loads into sentences and command lines.
#include "app/cli/plan/advice_text.h"

#include "app/cli/base/shell.h"
#include "app/cli/plan/load_flags.h"
#include "app/report/row_curve.h"
#include "app/report/verdict.h"
#include "core/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

std::string figures(const AdvisedLoad& load) {
  std::string text;
  for (const Space space : {Space::device, Space::host, Space::staging, Space::page_cache}) {
    const std::uint64_t bytes = load.peaks[index(space)];
    if (bytes == 0 && space != Space::device) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", report::space_title(space), format_bytes(bytes));
  }
  return fmt::format("{}, about {}", text, format_seconds(load.seconds));
}

std::string what(const AdvisedLoad& load) {
  const std::string in_order = fmt::format("{} in {} order", load.method->id, safe_display(load.order, 40));
  if (load.changes.empty()) return in_order;
  const std::string changes = fmt::format("{}", fmt::join(load.changes, " and "));
  const bool names_it = changes.find(fmt::format("method {}", load.method->id)) != std::string::npos;
  return names_it ? changes : fmt::format("{} ({})", changes, in_order);
}

std::string command(const AdvisedLoad& load, const std::string& path) {
  return "loadline plan " + shell_word(path) + request_words(load.request, *load.method);
}

Json load_json(const AdvisedLoad& load, const std::string& path) {
  Json json = {{"changes", load.changes},    {"options", Json::object()},
               {"arguments", Json::array()}, {"command", json_text(command(load, path))},
               {"method", load.method->id},  {"order", json_text(load.order)},
               {"peak", Json::object()},     {"seconds", load.seconds},
               {"fits", load.verdict.fits()}};
  for (const auto& [id, value] : load.settings) {
    json["options"][std::string(id)] = json_text(value);
    json["arguments"].push_back(flag_of(id));
    json["arguments"].push_back(json_text(value));
  }
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    json["peak"][std::string(space_name(static_cast<Space>(i)))] = load.peaks[i];
  json["peak"]["held"] = load.held;
  if (!load.verdict.fits())
    json["over"] = {{"device", load.verdict.device_over},
                    {"host", load.verdict.host_over},
                    {"unified", load.verdict.unified_over}};
  return json;
}

}  // namespace

std::string advice_text(const LoadAdvice& found, const std::string& path) {
  const Advice& advice = found.advice;
  const auto line = [&](std::string_view lead, const AdvisedLoad& load) {
    return fmt::format("{}: {}: {}.\n  ({})\n", lead, what(load), figures(load), command(load, path));
  };
  if (!found.searched) return line("Fastest that fits", advice.loads.front());
  const std::string search = fmt::format("{} projected{}", counted(advice.tried, "other load"),
                                         advice.complete ? "" : ", then the search ended");
  if (advice.loads.empty()) {
    if (!advice.nearest) return fmt::format("No known change helps ({}).\n", search);
    return fmt::format("No known change makes it fit ({}). Nearest: {}: {}; {}.\n  ({})\n", search,
                       what(*advice.nearest), figures(*advice.nearest),
                       report::over_text(advice.nearest->verdict), command(*advice.nearest, path));
  }
  std::string text;
  for (const AdvisedLoad& load : advice.loads)
    text += line(text.empty() ? "Cheapest change that fits" : "Or", load);
  return text;
}

Json advice_json(const LoadAdvice& found, const std::string& path) {
  Json list = Json::array();
  for (const AdvisedLoad& load : found.advice.loads) list.push_back(load_json(load, path));
  if (found.advice.nearest) list.push_back(load_json(*found.advice.nearest, path));
  return list;
}

}  // namespace loadline::cli
