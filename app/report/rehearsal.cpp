// Reduces rehearsed loads to rows, and draws them.
#include "app/report/rehearsal.h"

#include "app/report/markup.h"
#include "core/base/text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace loadline::report {
namespace {

constexpr std::uint64_t kNear = 16 << 20;
constexpr std::uint64_t kNothing = 1 << 20;

// Draws one counter of one row in a panel of the given size; the plot's corner is at the origin.
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

RehearsedRow::Beyond beyond(const HostMeasurement& measurement, const MemoryCounter& counter) {
  RehearsedRow::Beyond found;
  const std::uint64_t projected = measurement.projected.*counter.count;
  for (std::size_t i = 0; i < measurement.timeline.measured.size(); ++i) {
    const std::uint64_t measured = measurement.timeline.measured[i].memory.*counter.count;
    if (measured <= projected || near_enough(projected, measured)) continue;
    if (found.samples++ == 0) found.first_step = measurement.steps[i];
  }
  return found;
}

}  // namespace

bool too_small_to_judge(std::uint64_t projected, std::uint64_t measured) {
  return projected < kNear && measured < kNear;
}

bool near_enough(std::uint64_t projected, std::uint64_t measured) {
  const std::uint64_t distance = projected > measured ? projected - measured : measured - projected;
  return distance <= std::max(kNear, projected / 50);
}

std::uint64_t most_of(const CounterCurve& curve) {
  std::uint64_t most = 0;
  for (const auto* list : {&curve.projected, &curve.measured})
    for (const std::uint64_t bytes : *list) most = std::max(most, bytes);
  return most;
}

std::optional<bool> RehearsedRow::agrees() const {
  std::optional<bool> agrees;
  for (const MemoryCounter& counter : kMemoryCounters) {
    const std::uint64_t expected = projected.*counter.count, found = measured.*counter.count;
    if (!too_small_to_judge(expected, found)) agrees = agrees.value_or(true) && near_enough(expected, found);
  }
  return agrees;
}

bool RehearsedRow::shows(std::size_t counter) const {
  return projected.*kMemoryCounters[counter].count > 0 || most_of(curves[counter]) > kNear;
}

RehearsedRow rehearsed_row(const Method& method, std::string order, const Plan& plan,
                           const HostMeasurement& measurement) {
  RehearsedRow row;
  row.method = &method;
  row.order = std::move(order);
  row.projected = measurement.projected;
  row.measured = measurement.measured;
  row.page_cache = measurement.page_cache;
  row.seconds = measurement.timeline.seconds;
  row.samples = measurement.timeline.measured.size();
  row.steps = plan.steps.size();
  for (const MemoryCounter& counter : kMemoryCounters) {
    row.beyond.push_back(beyond(measurement, counter));
    row.curves.push_back(counter_curve(measurement, plan, counter, kRehearsedColumns));
  }
  return row;
}

std::string rehearsal_svg(const Rehearsal& rehearsal) {
  constexpr double kWidth = 1280, kMargin = 40, kHead = 84, kRow = 132, kPlot = 76, kGap = 28;
  constexpr double kNames = 180;
  const double panel = (kWidth - 2 * kMargin - kNames - 2 * kGap) / 3;
  const double height = kHead + kRow * static_cast<double>(rehearsal.rows.size()) + kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n<style>{4}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text class=\"title\" x=\"{2:.0f}\" y=\"42\">{3}</text>\n"
      "<text class=\"small\" x=\"{2:.0f}\" y=\"66\">Areas: projected. Lines: what the system counted, a "
      "thousand times a second, over the steps of each load.</text>\n",
      kWidth, height, kMargin,
      markup_text(fmt::format("{}: {} loaded in ordinary memory", model_name(rehearsal.graph),
                              format_bytes(storage_bytes(rehearsal.graph))),
                  80),
      style_sheet("rehearsal"));
  for (std::size_t r = 0; r < rehearsal.rows.size(); ++r) {
    const RehearsedRow& row = rehearsal.rows[r];
    const double top = kHead + kRow * static_cast<double>(r) + 30;
    svg += fmt::format(
        "<text class=\"method\" x=\"{0:.0f}\" y=\"{1:.0f}\">{2}</text>\n<text class=\"small\" x=\"{0:.0f}\" "
        "y=\"{3:.0f}\">{4}, {5}</text>\n",
        kMargin, top + 14, row.method->id, top + 34, markup_text(row.order, 16), format_seconds(row.seconds));
    for (std::size_t i = 0; i < kMemoryCounters.size(); ++i) {
      if (!row.shows(i)) continue;
      svg += fmt::format("<g transform=\"translate({:.1f},{:.1f})\">",
                         kMargin + kNames + static_cast<double>(i) * (panel + kGap), top);
      svg += counter_panel(row.curves[i], kMemoryCounters[i], panel, kPlot) + "</g>\n";
    }
  }
  return svg + "</svg>\n";
}

std::string rehearsal_page(const Rehearsal& rehearsal, std::string_view text) {
  // line ends must survive, so each line is escaped by itself
  std::string lines;
  for (const std::string_view line : lines_of(text)) lines += markup_text(line) + "\n";
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{} rehearsed</title>\n"
      "<style>{}</style></head>\n<body>{}<pre>{}</pre></body></html>\n",
      markup_text(model_name(rehearsal.graph)), style_sheet("rehearsal_page"), rehearsal_svg(rehearsal),
      lines);
}

}  // namespace loadline::report
