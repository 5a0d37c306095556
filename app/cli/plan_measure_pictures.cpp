// Measured loads over their projection, with characters and as SVG.
#include "app/cli/plan_measure.h"
#include "app/report/markup.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace loadline::cli {
namespace {

// `from` in fewer columns, the most of each.
std::vector<std::uint64_t> fewer(const std::vector<std::uint64_t>& from, std::size_t columns) {
  std::vector<std::uint64_t> to(columns, 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::uint64_t& most = to[i * columns / from.size()];
    most = std::max(most, from[i]);
  }
  return to;
}

std::uint64_t most_of(const CounterCurve& curve) {
  std::uint64_t most = 0;
  for (const auto* list : {&curve.projected, &curve.measured})
    for (const std::uint64_t bytes : *list) most = std::max(most, bytes);
  return most;
}

constexpr std::size_t kGutter = 11;  // "306.74 MiB "
constexpr std::uint64_t kNothing = 1 << 20;

bool shown(const MeasuredRow& row, std::size_t counter) {
  return row.projected.*kMemoryCounters[counter].count > 0 || most_of(row.curves[counter]) > 16 * kNothing;
}

std::string counter_plot(const CounterCurve& curve, const MemoryCounter& counter, std::size_t width,
                         const PlotStyle& style) {
  constexpr std::size_t kLines = 6;
  const std::uint64_t scale = std::max(most_of(curve), kNothing);
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

// One counter of one row in a panel of that size, the plot's corner at the origin.
std::string counter_panel(const CounterCurve& curve, const MemoryCounter& counter, double width,
                          double height) {
  const auto scale = static_cast<double>(std::max(most_of(curve), kNothing));
  const auto columns = static_cast<double>(curve.projected.size());
  const auto x = [&](std::size_t i) { return static_cast<double>(i) / columns * width; };
  const auto y = [&](std::uint64_t bytes) { return height - static_cast<double>(bytes) / scale * height; };
  const auto path = [&](const std::vector<std::uint64_t>& levels, bool area) {
    std::string d = fmt::format("M0,{:.1f}", area ? height : y(levels.front()));
    for (std::size_t i = 0; i < levels.size(); ++i)
      if (i == 0 || levels[i] != levels[i - 1]) d += fmt::format("H{:.1f}V{:.1f}", x(i), y(levels[i]));
    return d + fmt::format("H{:.1f}", width) + (area ? fmt::format("V{:.1f}Z", height) : "");
  };
  return fmt::format(
      "<text class=\"name\" y=\"-6\">{}</text><text class=\"most\" x=\"{:.0f}\" y=\"-6\">{}</text>"
      "<path class=\"area\" d=\"{}\"/><path class=\"line\" d=\"{}\"/>"
      "<path class=\"axis\" d=\"M0,{:.1f}H{:.1f}\"/>\n",
      counter.name, width, format_bytes(most_of(curve)), path(curve.projected, true),
      path(curve.measured, false), height, width);
}

}  // namespace

std::string measure_plots(const MeasureAnswer& answer, const PlotStyle& style) {
  constexpr std::size_t kLeast = 20;
  const std::size_t width =
      std::min(std::max(style.columns, kGutter + 2 + kLeast) - kGutter - 2, kMeasuredColumns);
  std::string text;
  for (const MeasuredRow& row : answer.rows) {
    text += fmt::format("\n{} ({})\n", row.method->id, safe_display(row.order, 40));
    for (std::size_t i = 0; i < kMemoryCounters.size(); ++i)
      if (shown(row, i)) text += counter_plot(row.curves[i], kMemoryCounters[i], width, style);
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

std::string measure_svg(const MeasureAnswer& answer) {
  constexpr double kWidth = 1280, kMargin = 40, kHead = 84, kRow = 132, kPlot = 76, kGap = 28;
  constexpr double kNames = 180;
  const double panel = (kWidth - 2 * kMargin - kNames - 2 * kGap) / 3;
  const double height = kHead + kRow * static_cast<double>(answer.rows.size()) + kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n<style>text{{font:13px "
      "system-ui,sans-serif;fill:#1c2733}}.title{{font-size:22px;font-weight:"
      "600}}.method{{font-size:15px;font-weight:600}}.small,.most{{fill:#5b6b7b}}.most{{text-anchor:end}}."
      "area"
      "{{fill:#bcd3ea}}.line{{fill:none;stroke:#c2410c;stroke-width:1.6}}.axis{{stroke:#8a98a6}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text class=\"title\" x=\"{2:.0f}\" y=\"42\">{3}</text>\n"
      "<text class=\"small\" x=\"{2:.0f}\" y=\"66\">Areas: projected. Lines: what the system counted, a "
      "thousand times a second, over the steps of each load.</text>\n",
      kWidth, height, kMargin,
      markup_text(fmt::format("{}: {} loaded in ordinary memory", model_name(answer.graph),
                              format_bytes(storage_bytes(answer.graph))),
                  80));
  for (std::size_t r = 0; r < answer.rows.size(); ++r) {
    const MeasuredRow& row = answer.rows[r];
    const double top = kHead + kRow * static_cast<double>(r) + 30;
    svg += fmt::format(
        "<text class=\"method\" x=\"{0:.0f}\" y=\"{1:.0f}\">{2}</text>\n<text class=\"small\" x=\"{0:.0f}\" "
        "y=\"{3:.0f}\">{4}, {5}</text>\n",
        kMargin, top + 14, row.method->id, top + 34, markup_text(row.order, 16), format_seconds(row.seconds));
    for (std::size_t i = 0; i < kMemoryCounters.size(); ++i) {
      if (!shown(row, i)) continue;
      svg += fmt::format("<g transform=\"translate({:.1f},{:.1f})\">",
                         kMargin + kNames + static_cast<double>(i) * (panel + kGap), top);
      svg += counter_panel(row.curves[i], kMemoryCounters[i], panel, kPlot) + "</g>\n";
    }
  }
  return svg + "</svg>\n";
}

std::string measure_page(const MeasureAnswer& answer) {
  // the table is text whose lines mean something: each is escaped by itself
  std::string lines;
  const std::string table = measure_table(answer, false);
  for (std::size_t at = 0; at < table.size();) {
    const std::size_t end = std::min(table.find('\n', at), table.size());
    lines += markup_text(std::string_view(table).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{} measured</title>\n"
      "<style>body{{margin:24px auto;max-width:1280px;font-family:system-ui,sans-serif;background:#fff;color:"
      "#1c2733}}svg{{width:100%;height:auto}}pre{{overflow-x:auto}}</style></head>\n<body>{}<pre>{}</pre></"
      "body>"
      "</html>\n",
      markup_text(model_name(answer.graph)), measure_svg(answer), lines);
}

}  // namespace loadline::cli
