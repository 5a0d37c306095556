// The table, JSON keys and plots of a rehearsal.
#include "app/cli/rehearse_table.h"

#include "app/cli/table.h"
#include "app/report/refusals.h"
#include "app/report/wrap.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

using report::near_enough;
using report::Rehearsal;
using report::RehearsedRow;
using report::too_small_to_judge;

constexpr std::size_t kGutter = 11;  // fits "306.74 MiB "

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

Json counters_json(const ProcessMemory& memory) {
  Json json;
  for (const MemoryCounter& counter : kMemoryCounters) json[std::string(counter.id)] = memory.*counter.count;
  return json;
}

std::string difference_cell(std::uint64_t projected, std::uint64_t measured) {
  if (projected == 0 && measured == 0) return "";
  const std::string_view sign = measured < projected ? "-" : "+";
  const std::string bytes = fmt::format("{}{}", sign, format_bytes(distance(projected, measured)));
  if (projected == 0 || too_small_to_judge(projected, measured)) return bytes;
  return fmt::format("{} ({:+.2f} %)", bytes,
                     100 * (static_cast<double>(measured) / static_cast<double>(projected) - 1));
}

std::string_view judgement(std::uint64_t projected, std::uint64_t measured) {
  if (too_small_to_judge(projected, measured)) return "too small to judge";
  return near_enough(projected, measured) ? "agrees" : "differs";
}

// Counts the loads that agree: "2 of 3 loads within 2 % or 16 MiB. 1 load is too small to judge: all counts
// are below 16 MiB."
std::string summary(const std::vector<RehearsedRow>& rows) {
  std::uint64_t agreeing = 0, small = 0;
  for (const RehearsedRow& row : rows) {
    const std::optional<bool> agrees = row.agrees();
    small += !agrees;
    agreeing += agrees.value_or(false);
  }
  const std::uint64_t judged = rows.size() - small;
  std::string text;
  if (judged > 0) text = fmt::format("{} of {} within 2 % or 16 MiB.", agreeing, counted(judged, "load"));
  if (small > 0)
    text += fmt::format("{}{} too small to judge: all counts are below 16 MiB.", text.empty() ? "" : " ",
                        counted(small, "load") + (small == 1 ? " is" : " are"));
  return text + "\n";
}

// Reduces `from` to fewer columns; each keeps the maximum of the columns it replaces.
std::vector<std::uint64_t> fewer(const std::vector<std::uint64_t>& from, std::size_t columns) {
  std::vector<std::uint64_t> to(columns, 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::uint64_t& most = to[i * columns / from.size()];
    most = std::max(most, from[i]);
  }
  return to;
}

std::string counter_plot(const CounterCurve& curve, const MemoryCounter& counter, std::size_t width,
                         const PlotStyle& style) {
  constexpr std::size_t kLines = 6;
  const std::uint64_t scale = std::max(report::most_of(curve), std::uint64_t{1 << 20});
  const auto projected = fewer(curve.projected, width), measured = fewer(curve.measured, width);
  const auto line_of = [&](std::uint64_t bytes) {
    const double share = static_cast<double>(bytes) / static_cast<double>(scale);
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(kLines)));
  };
  std::string text;
  for (std::size_t line = kLines; line > 0; --line) {
    std::string cells;
    std::size_t blanks = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const bool area = line_of(projected[i]) >= line, point = line_of(measured[i]) == line;
      if (!area && !point) {
        ++blanks;
        continue;
      }
      cells.append(std::exchange(blanks, 0), ' ');
      const std::string_view glyph = point ? (style.unicode ? "●" : "*") : style.unicode ? "░" : ".";
      cells += style.colour ? fmt::format("\033[{}m{}\033[0m", point ? 33 : 34, glyph) : std::string(glyph);
    }
    text += fmt::format("{:>{}}{}{}\n", line == kLines ? format_bytes(scale) + " " : "", kGutter,
                        style.unicode ? "│" : "|", cells);
  }
  std::string rule;
  for (std::size_t i = 0; i < width; ++i) rule += style.unicode ? "─" : "-";
  return text + fmt::format("{:>{}}{}{}\n", fmt::format("{} ", counter.name), kGutter,
                            style.unicode ? "└" : "+", rule);
}

}  // namespace

Json rehearsal_json(const Rehearsal& rehearsal) {
  Json json = {{"model", json_text(model_name(rehearsal.graph))},
               {"bytes", storage_bytes(rehearsal.graph)},
               {"cold", rehearsal.cold},
               {"measured", Json::array()}};
  for (const RehearsedRow& row : rehearsal.rows) {
    const std::optional<bool> agrees = row.agrees();
    json["measured"].push_back({{"method", row.method->id},
                                {"order", json_text(row.order)},
                                {"projected_peak", counters_json(row.projected)},
                                {"measured_peak", counters_json(row.measured)},
                                {"agrees", agrees ? Json(*agrees) : Json()},
                                {"page_cache",
                                 {{"files", row.page_cache.files},
                                  {"before", row.page_cache.before},
                                  {"most", row.page_cache.most},
                                  {"after", row.page_cache.after}}},
                                {"seconds", row.seconds},
                                {"samples", row.samples}});
    Json& too_high = json["measured"].back()["samples_too_high"];
    for (std::size_t i = 0; i < row.beyond.size(); ++i)
      too_high[std::string(kMemoryCounters[i].id)] = row.beyond[i].samples;
  }
  for (const Rehearsal::Refused& row : rehearsal.refused)
    json["measured"].push_back(
        {{"method", row.method->id}, {"order", json_text(row.order)}, {"refused", json_text(row.why)}});
  return json;
}

std::string rehearsal_table(const Rehearsal& rehearsal, bool colour, std::size_t prose_columns) {
  const std::uint64_t weights = storage_bytes(rehearsal.graph);
  const std::string heading = fmt::format("{}: {}, W = {} ({}), our own plans run in ordinary memory\n\n",
                                          safe_display(model_name(rehearsal.graph), 80),
                                          counted(rehearsal.graph.tensors.size(), "tensor"),
                                          format_bytes(weights), counted(weights, "byte"));
  Table table({"method", "order", "counter", "projected", "measured", "difference", "verdict"},
              {kLeft, kLeft, kLeft, kRight, kRight, kRight, kLeft});
  for (const RehearsedRow& row : rehearsal.rows) {
    bool first = true;
    for (const MemoryCounter& counter : kMemoryCounters) {
      const std::uint64_t projected = row.projected.*counter.count, measured = row.measured.*counter.count;
      if (projected == 0 && too_small_to_judge(projected, measured)) continue;
      table.row({first ? std::string(row.method->id) : "", first ? safe_display(row.order, 40) : "",
                 std::string(counter.name), bytes_cell(projected), bytes_cell(measured),
                 difference_cell(projected, measured), std::string(judgement(projected, measured))});
      first = false;
    }
  }
  std::string text;
  for (const RehearsedRow& row : rehearsal.rows)
    text +=
        fmt::format("{} ({}): {}, {}; of {} in files the page cache held {} before, {} at most, {} after.\n",
                    row.method->id, safe_display(row.order, 40), format_seconds(row.seconds),
                    counted(row.samples, "sample"), format_bytes(row.page_cache.files),
                    format_bytes(row.page_cache.before), format_bytes(row.page_cache.most),
                    format_bytes(row.page_cache.after));
  for (const RehearsedRow& row : rehearsal.rows)
    for (std::size_t i = 0; i < row.beyond.size(); ++i)
      if (const RehearsedRow::Beyond& beyond = row.beyond[i]; beyond.samples > 0)
        text += fmt::format("{} ({}): {} was too high in {} of {}, first at step {} of {}.\n", row.method->id,
                            safe_display(row.order, 40), kMemoryCounters[i].name,
                            format_grouped(beyond.samples), counted(row.samples, "sample"),
                            format_grouped(std::min(beyond.first_step + 1, row.steps)),
                            format_grouped(row.steps));
  std::vector<report::Refusal> refusals;
  for (const Rehearsal::Refused& row : rehearsal.refused)
    refusals.push_back({row.method->id, safe_display(row.why)});
  text += report::refusals_text(refusals, "cannot be rehearsed");
  text +=
      "\nPeaks are differences to the state just before each load. RssAnon counts what the plan holds on the "
      "host. RssShmem counts what it holds on the device and in staging: shared memory stands in for both. "
      "RssFile counts its mapped pages.\n" +
      summary(rehearsal.rows);
  return heading + table.text(colour) + "\n" + report::reflowed(text, prose_columns);
}

std::string rehearsal_plots(const Rehearsal& rehearsal, const PlotStyle& style) {
  constexpr std::size_t kLeast = 20;
  const std::size_t width =
      std::min(std::max(style.columns, kGutter + 2 + kLeast) - kGutter - 2, report::kRehearsedColumns);
  std::string text;
  for (const RehearsedRow& row : rehearsal.rows) {
    text += fmt::format("\n{} ({})\n", row.method->id, safe_display(row.order, 40));
    for (std::size_t i = 0; i < kMemoryCounters.size(); ++i)
      if (row.shows(i)) text += counter_plot(row.curves[i], kMemoryCounters[i], width, style);
    if (row.steps == 0) {
      text += "  nothing is loaded\n";
      continue;
    }
    const std::string end = counted(row.steps, "step");
    text += fmt::format("{}0{:>{}}\n", std::string(kGutter + 1, ' '), end, width - 1);
  }
  return text +
         fmt::format("{} projected   {} measured\n", style.unicode ? "░" : ".", style.unicode ? "●" : "*");
}

}  // namespace loadline::cli
