// The table, the sentences and the plots of measured loads.
#include "app/cli/plan/rehearsal.h"

#include "app/cli/base/terminal.h"
#include "app/report/refusals.h"
#include "app/report/write_file.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

using report::MeasuredCounter;
using report::MeasuredLoad;
using report::MeasuredLoads;
using report::near_enough;
using report::too_small_to_judge;

constexpr std::size_t kGutter = 11;  // fits "306.74 MiB "

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

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

// Reduces `from` to fewer columns; each keeps the maximum of the columns it replaces.
std::vector<std::uint64_t> fewer(const std::vector<std::uint64_t>& from, std::size_t columns) {
  std::vector<std::uint64_t> to(columns, 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::uint64_t& most = to[i * columns / from.size()];
    most = std::max(most, from[i]);
  }
  return to;
}

std::string counter_plot(const MeasuredCounter& counter, std::size_t width, const PlotStyle& style) {
  constexpr std::size_t kLines = 6;
  const CounterCurve& curve = counter.curve;
  const std::uint64_t scale = std::max(most_of(curve), std::uint64_t{1 << 20});
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

void PictureFlags::add(CLI::App& app) {
  app.add_flag("--curve", curve, "draw projection and measurement")->excludes(app.get_option("--json"));
  app.add_option("--svg", svg, "write the curves as one picture")->type_name("FILE.svg");
  app.add_option("--html", html, "write curves and table as one page")->type_name("FILE.html");
}

void PictureFlags::check() const {
  report::check_picture_path(svg, ".svg");
  report::check_picture_path(html, ".html");
}

void PictureFlags::write(const MeasuredLoads& loads, std::string_view text) const {
  if (!svg.empty()) report::write_file(svg, report::measured_svg(loads));
  if (!html.empty()) report::write_file(html, report::measured_page(loads, text));
}

std::string measured_table(const MeasuredLoads& loads, bool colour) {
  Table table({"method", "order", "counter", "projected", "measured", "difference", "verdict"},
              {kLeft, kLeft, kLeft, kRight, kRight, kRight, kLeft});
  for (const MeasuredLoad& row : loads.rows) {
    bool first = true;
    for (const MeasuredCounter& counter : row.counters) {
      const std::uint64_t projected = counter.projected, measured = counter.measured;
      if (projected == 0 && too_small_to_judge(projected, measured)) continue;
      table.row({first ? std::string(row.method->id) : "", first ? safe_display(row.order, 40) : "",
                 std::string(counter.name), bytes_cell(projected), bytes_cell(measured),
                 difference_cell(projected, measured),
                 std::string(counter.own_count ? "own count" : judgement(projected, measured))});
      first = false;
    }
  }
  return table.text(colour);
}

std::string too_high_text(const MeasuredLoads& loads) {
  std::string text;
  for (const MeasuredLoad& row : loads.rows)
    for (const MeasuredCounter& counter : row.counters)
      if (counter.beyond.samples > 0)
        text += fmt::format("{} ({}): {} was too high in {} of {}, first at step {} of {}.\n", row.method->id,
                            safe_display(row.order, 40), counter.name, format_grouped(counter.beyond.samples),
                            counted(row.samples, "sample"),
                            format_grouped(std::min(counter.beyond.first_step + 1, row.steps)),
                            format_grouped(row.steps));
  return text;
}

std::string refused_text(const MeasuredLoads& loads, std::string_view cannot) {
  std::vector<report::Refusal> refusals;
  for (const MeasuredLoads::Refused& row : loads.refused)
    refusals.push_back({row.method->id, safe_display(row.why)});
  return report::refusals_text(refusals, cannot);
}

void add_refused(Json& list, const MeasuredLoads& loads) {
  for (const MeasuredLoads::Refused& row : loads.refused)
    list.push_back(
        {{"method", row.method->id}, {"order", json_text(row.order)}, {"refused", json_text(row.why)}});
}

std::string measured_summary(const std::vector<MeasuredLoad>& rows) {
  std::uint64_t agreeing = 0, small = 0;
  for (const MeasuredLoad& row : rows) {
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

std::string measured_plots(const MeasuredLoads& loads, const PlotStyle& style) {
  constexpr std::size_t kLeast = 20;
  const std::size_t width =
      std::min(std::max(style.columns, kGutter + 2 + kLeast) - kGutter - 2, report::kMeasuredColumns);
  std::string text;
  for (const MeasuredLoad& row : loads.rows) {
    text += fmt::format("\n{} ({})\n", row.method->id, safe_display(row.order, 40));
    for (const MeasuredCounter& counter : row.counters)
      if (counter.shows()) text += counter_plot(counter, width, style);
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
