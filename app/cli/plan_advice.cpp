// From rows that do not fit to what is asked of core/load/advice.h, and back to sentences and command lines.
#include "app/cli/plan_advice.h"

#include "app/cli/shell.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

std::uint64_t row_over(const Row& row) {
  return row.verdict.device_over + row.verdict.host_over + row.verdict.unified_over + row.over_max_peak;
}

// --max-peak limits the figure that a budget of the same memory would.
Budget budget_of(const RowFrame& frame) {
  Budget budget = frame.budget;
  if (!frame.max_peak) return budget;
  auto& limit = frame.memory == MemoryKind::unified ? budget.unified : budget.device;
  limit = std::min(limit.value_or(UINT64_MAX), *frame.max_peak);
  return budget;
}

AdvisedLoad as_asked(const Row& row) {
  AdvisedLoad load;
  load.arguments = {{"--method", std::string(row.method->id)}, {"--order", row.order}};
  load.method = row.method;
  load.order = row.order;
  for (std::size_t i = 0; i < kSpaceCount; ++i) load.peaks[i] = row.peaks[i].bytes;
  // what the search finds is told without --cache-limit, too
  if (row.cache) load.peaks[index(Space::page_cache)] = row.cache->mapped;
  load.held = row.held;
  load.seconds = row.seconds;
  load.verdict = row.verdict;
  return load;
}

// The rows that fit, fastest first.
Advice among_rows(std::span<const Row> rows) {
  Advice advice;
  for (const Row& row : rows)
    if (row.fits() && !row.method->traits.streams) advice.loads.push_back(as_asked(row));
  std::stable_sort(advice.loads.begin(), advice.loads.end(), [](const AdvisedLoad& a, const AdvisedLoad& b) {
    return std::tie(a.seconds, a.held) < std::tie(b.seconds, b.held);
  });
  if (advice.loads.size() > kMostAdvice) advice.loads.resize(kMostAdvice);
  return advice;
}

// Of each method the row that is least over.
std::vector<AskedLoad> asked_loads(std::span<const Row> rows, std::span<const OrderChoice> orders) {
  std::map<const Method*, std::size_t> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].refusal) continue;
    const auto [found, fresh] = best.try_emplace(rows[i].method, i);
    if (!fresh && row_over(rows[i]) < row_over(rows[found->second])) found->second = i;
  }
  std::vector<std::size_t> chosen;
  for (const auto& entry : best) chosen.push_back(entry.second);
  std::sort(chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(row_over(rows[a]), a) < std::tuple(row_over(rows[b]), b);
  });
  std::vector<AskedLoad> loads;
  for (const std::size_t row : chosen) loads.push_back({rows[row].method, orders[row % orders.size()]});
  return loads;
}

std::string figures(const AdvisedLoad& load) {
  std::string text;
  for (const Space space : {Space::device, Space::host, Space::staging, Space::page_cache}) {
    const std::uint64_t bytes = load.peaks[index(space)];
    if (bytes == 0 && space != Space::device) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        space == Space::page_cache ? "page cache" : space_name(space), format_bytes(bytes));
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

// How much it lacks, by budget.
std::string lack(const BudgetVerdict& verdict) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, std::uint64_t over) {
    if (over > 0) parts.push_back(fmt::format("{} {} over", name, format_bytes(over)));
  };
  add("device", verdict.device_over);
  add("host", verdict.host_over);
  add("memory", verdict.unified_over);
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Of these, one at a time.
bool places(std::string_view option) {
  return option == "--gpu-layers" || option == "--max-memory" || option == "--place";
}

std::string command(const AdvisedLoad& load, const std::string& path, std::span<const GivenOption> given) {
  constexpr std::array<std::string_view, 9> kShown = {
      "--json", "--html", "--svg", "--curve", "--explain", "--axis", "--method", "--order", "--measure"};
  std::string text = "loadline plan " + shell_word(path);
  for (const auto& [name, value] : load.arguments) text += fmt::format(" {} {}", name, shell_word(value));
  for (const GivenOption& option : given) {
    const bool changed = std::any_of(load.arguments.begin(), load.arguments.end(), [&](const auto& argument) {
      return argument.first == option.name || (places(argument.first) && places(option.name));
    });
    const bool shown = std::find(kShown.begin(), kShown.end(), option.name) != kShown.end();
    if (changed || shown || !takes(*load.method, option.name)) continue;
    if (option.values.empty()) text += " " + option.name;
    if (option.joined)
      text +=
          fmt::format(" {} {}", option.name, shell_word(fmt::format("{}", fmt::join(option.values, ","))));
    else
      for (const std::string& value : option.values)
        text += fmt::format(" {} {}", option.name, shell_word(value));
  }
  return text;
}

Json load_json(const AdvisedLoad& load, const std::string& command_line) {
  Json json = {
      {"changes", load.changes},   {"arguments", Json::array()},     {"command", json_text(command_line)},
      {"method", load.method->id}, {"order", json_text(load.order)}, {"peak", Json::object()},
      {"seconds", load.seconds},   {"fits", load.verdict.fits()}};
  for (const auto& [name, value] : load.arguments) {
    json["arguments"].push_back(name);
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

std::optional<PlanAdvice> plan_advice(const Context& context, const MetaGraph& graph,
                                      std::span<const Row> rows, std::span<const OrderChoice> orders,
                                      const MethodOptions& options, const ForwardPass* pass,
                                      const RowFrame& frame) {
  const auto with_figures = [](const Row& row) { return !row.refusal.has_value(); };
  const auto fails = [](const Row& row) { return !row.refusal && !row.fits(); };
  if (!frame.judged() || std::none_of(rows.begin(), rows.end(), fails)) return std::nullopt;
  const bool all_stream = std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
    return !with_figures(row) || row.method->traits.streams;
  });
  const bool some_fit = std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return row.fits() && (all_stream || !row.method->traits.streams);
  });
  if (some_fit) return all_stream ? std::nullopt : std::optional<PlanAdvice>({among_rows(rows), false, {}});
  AdviceRequest request{asked_loads(rows, orders), options, budget_of(frame), pass};
  Progress progress(context.stop);
  const ProgressLine line(context, "looking for what fits", progress);
  return PlanAdvice{advise(graph, request, progress), true, {}};
}

void name_commands(PlanAdvice& advice, const std::string& path, std::span<const GivenOption> given) {
  for (const AdvisedLoad& load : advice.advice.loads) advice.commands.push_back(command(load, path, given));
  if (advice.advice.nearest) advice.commands.push_back(command(*advice.advice.nearest, path, given));
}

std::string advice_text(const PlanAdvice& answer) {
  const Advice& advice = answer.advice;
  if (!answer.searched)
    return fmt::format("Fastest that fits: {}: {}.\n  ({})\n", what(advice.loads.front()),
                       figures(advice.loads.front()), answer.commands.front());
  const std::string search = fmt::format("{} projected{}", counted(advice.tried, "other load"),
                                         advice.complete ? "" : ", then the search ended");
  if (advice.loads.empty()) {
    if (!advice.nearest) return fmt::format("No change that is known helps ({}).\n", search);
    return fmt::format("No change that is known makes it fit ({}). Nearest: {}: {}; {}.\n  ({})\n", search,
                       what(*advice.nearest), figures(*advice.nearest), lack(advice.nearest->verdict),
                       answer.commands.front());
  }
  std::string text;
  for (std::size_t i = 0; i < advice.loads.size(); ++i)
    text += fmt::format("{}: {}: {}.\n  ({})\n", i == 0 ? "Cheapest change that fits" : "Or",
                        what(advice.loads[i]), figures(advice.loads[i]), answer.commands[i]);
  return text;
}

Json advice_json(const PlanAdvice& answer) {
  Json list = Json::array();
  const Advice& advice = answer.advice;
  for (std::size_t i = 0; i < advice.loads.size(); ++i)
    list.push_back(load_json(advice.loads[i], answer.commands[i]));
  if (advice.nearest) list.push_back(load_json(*advice.nearest, answer.commands.front()));
  return list;
}

}  // namespace loadline::cli
