// Reduces measured loads to rows, draws them, and words their times.
#include "app/report/measured_loads.h"

#include "app/report/page_parts.h"
#include "core/base/text.h"
#include "core/load/answer/projection.h"
#include "core/view/curves.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace loadline::report {

// --- Reduces measured loads to rows, and draws them.

namespace {

constexpr std::uint64_t kNear = 16 << 20;
constexpr std::uint64_t kNothing = 1 << 20;

// Draws one counter of one row in a panel of the given size; the plot's corner is at the origin.
std::string counter_panel(const MeasuredCounter& counter, std::uint64_t most, double width, double height) {
  const auto scale = static_cast<double>(std::max(most, kNothing));
  const auto columns = static_cast<double>(counter.curve.projected.size());
  const auto x = [&](std::size_t i) { return static_cast<double>(i) / columns * width; };
  const auto y = [&](std::uint64_t bytes) { return height - static_cast<double>(bytes) / scale * height; };
  const auto path = [&](const std::vector<std::uint64_t>& levels, bool area) {
    std::string d = fmt::format("M0,{:.1f}", area ? height : y(levels.front()));
    for (std::size_t i = 0; i < levels.size(); ++i)
      if (i == 0 || levels[i] != levels[i - 1]) d += fmt::format("H{:.1f}V{:.1f}", x(i), y(levels[i]));
    return d + fmt::format("H{:.1f}", width) + (area ? fmt::format("V{:.1f}Z", height) : "");
  };
  return fmt::format(
      "<text class=\"name\" y=\"-6\">{}</text><text class=\"most\" x=\"{:.0f}\" y=\"-6\">projected {}, "
      "measured {}</text>"
      "<path class=\"area\" d=\"{}\"/><path class=\"line\" d=\"{}\"/>"
      "<path class=\"axis\" d=\"M0,{:.1f}H{:.1f}\"/>\n",
      counter.name, width, format_bytes(counter.projected), format_bytes(counter.measured),
      path(counter.curve.projected, true), path(counter.curve.measured, false), height, width);
}

// The counters that some row shows, by name in the order of the rows, and the scale of each.
std::vector<std::pair<std::string_view, std::uint64_t>> shown_counters(const MeasuredLoads& loads) {
  std::vector<std::pair<std::string_view, std::uint64_t>> shown;
  for (const MeasuredLoad& row : loads.rows)
    for (const MeasuredCounter& counter : row.counters) {
      if (!counter.shows()) continue;
      const std::uint64_t most = counter.curve.most();
      const auto known = std::ranges::find(shown, counter.name, [](const auto& one) { return one.first; });
      if (known == shown.end())
        shown.emplace_back(counter.name, most);
      else
        known->second = std::max(known->second, most);
    }
  return shown;
}

std::vector<std::uint64_t> maxima_of(std::span<const view::CurvePoint> curve, std::size_t steps) {
  std::vector<std::uint64_t> maxima;
  const auto end = static_cast<double>(std::max<std::size_t>(steps, 1));
  for (const view::CurveColumn& column : view::step_columns(curve, 0, end, kMeasuredColumns))
    maxima.push_back(static_cast<std::uint64_t>(column.high));
  return maxima;
}

}  // namespace

bool too_small_to_judge(std::uint64_t projected, std::uint64_t measured) {
  return projected < kNear && measured < kNear;
}

bool near_enough(std::uint64_t projected, std::uint64_t measured) {
  const std::uint64_t distance = projected > measured ? projected - measured : measured - projected;
  return distance <= std::max(kNear, projected / 50);
}

std::uint64_t CounterCurve::most() const {
  std::uint64_t most = 0;
  for (const auto* list : {&projected, &measured})
    for (const std::uint64_t bytes : *list) most = std::max(most, bytes);
  return most;
}

bool MeasuredCounter::shows() const { return projected > 0 || curve.most() > kNear; }

MeasuredCounter measured_counter(std::uint64_t projected, std::span<const plan::UsagePoint> usage,
                                 unsigned spaces, std::span<const StepCount> counted, std::size_t steps) {
  MeasuredCounter counter;
  counter.projected = projected;
  for (const StepCount& count : counted) {
    counter.measured = std::max(counter.measured, count.bytes);
    if (count.bytes <= projected || near_enough(projected, count.bytes)) continue;
    if (counter.beyond.samples++ == 0) counter.beyond.first_step = count.step;
  }
  std::vector<view::CurvePoint> projection, counts;
  for (const plan::UsagePoint& point : usage)
    projection.push_back(
        {static_cast<double>(point.step), static_cast<double>(plan::sum_over(point.bytes, spaces))});
  for (const StepCount& count : counted)
    counts.push_back({static_cast<double>(count.step), static_cast<double>(count.bytes)});
  counter.curve = {maxima_of(projection, steps), maxima_of(counts, steps)};
  return counter;
}

std::optional<bool> MeasuredLoad::agrees() const {
  std::optional<bool> agrees;
  for (const MeasuredCounter& counter : counters)
    if (!counter.own_count && !too_small_to_judge(counter.projected, counter.measured))
      agrees = agrees.value_or(true) && near_enough(counter.projected, counter.measured);
  return agrees;
}

MeasuredLoad rehearsed_load(const load::Method& method, std::string order, const plan::Plan& plan,
                            const load::HostMeasurement& measurement) {
  MeasuredLoad load;
  load.method = &method;
  load.order = std::move(order);
  load.page_cache = measurement.page_cache;
  load.seconds = measurement.timeline.seconds;
  load.samples = measurement.timeline.measured.size();
  load.steps = plan.steps.size();
  std::vector<StepCount> counted(load.samples);
  for (const load::MemoryCounter& counter : load::kMemoryCounters) {
    for (std::size_t i = 0; i < counted.size(); ++i)
      counted[i] = {measurement.steps[i], measurement.timeline.measured[i].memory.*counter.count};
    load.counters.push_back(measured_counter(measurement.projected.*counter.count, measurement.timeline.usage,
                                             counter.spaces, counted, load.steps));
    load.counters.back().name = counter.name;
    load.counters.back().id = counter.id;
  }
  return load;
}

std::string measured_svg(const MeasuredLoads& loads) {
  constexpr double kWidth = 1280, kMargin = 40, kHead = 84, kRow = 132, kPlot = 76, kGap = 28;
  constexpr double kNames = 180;
  const auto shown = shown_counters(loads);
  const auto columns = static_cast<double>(std::max<std::size_t>(shown.size(), 1));
  const double panel = (kWidth - 2 * kMargin - kNames - (columns - 1) * kGap) / columns;
  const double height = kHead + kRow * static_cast<double>(loads.rows.size()) + kMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n<style>{4}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text class=\"title\" x=\"{2:.0f}\" y=\"42\">{3}</text>\n"
      "<text class=\"small\" x=\"{2:.0f}\" y=\"66\">Areas: projected. Lines: counted a thousand times a "
      "second, over the steps of each load. Each column has one scale.</text>\n",
      kWidth, height, kMargin,
      markup_text(fmt::format("{}: {} {}", graph::model_name(loads.graph),
                              format_bytes(graph::storage_bytes(loads.graph)), loads.how),
                  100),
      style_sheet("measured"));
  for (std::size_t r = 0; r < loads.rows.size(); ++r) {
    const MeasuredLoad& row = loads.rows[r];
    const double top = kHead + kRow * static_cast<double>(r) + 30;
    svg += fmt::format(
        "<text class=\"method\" x=\"{0:.0f}\" y=\"{1:.0f}\">{2}</text>\n<text class=\"small\" x=\"{0:.0f}\" "
        "y=\"{3:.0f}\">{4}, {5}</text>\n",
        kMargin, top + 14, row.method->id, top + 34, markup_text(row.order, 16), format_seconds(row.seconds));
    for (const MeasuredCounter& counter : row.counters) {
      if (!counter.shows()) continue;
      const auto column = std::ranges::find(shown, counter.name, [](const auto& one) { return one.first; });
      svg +=
          fmt::format("<g transform=\"translate({:.1f},{:.1f})\">",
                      kMargin + kNames + static_cast<double>(column - shown.begin()) * (panel + kGap), top);
      svg += counter_panel(counter, column->second, panel, kPlot) + "</g>\n";
    }
  }
  return svg + "</svg>\n";
}

std::string measured_page(const MeasuredLoads& loads, std::string_view text) {
  // line ends must survive, so each line is escaped by itself
  std::string lines;
  for (const std::string_view line : lines_of(text)) lines += markup_text(line) + "\n";
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{} measured</title>\n"
      "<style>{}</style></head>\n<body>{}<pre>{}</pre></body></html>\n",
      markup_text(graph::model_name(loads.graph)), style_sheet("measured_page"), measured_svg(loads), lines);
}

// --- Words for two times and the rates behind one of them.

namespace {

std::string cache_text(const UploadTime& time) {
  if (!time.cached_bytes)
    return "The share of the files in the page cache is unknown: projected from the disk.";
  if (*time.cached_bytes == 0) return "The files come from the disk.";
  constexpr double kNearlyAll = 0.999;
  const bool all =
      static_cast<double>(*time.cached_bytes) >= kNearlyAll * static_cast<double>(time.file_bytes);
  const std::string held = all ? "The files were in the page cache"
                               : fmt::format("{} of {} were in the page cache",
                                             format_bytes(*time.cached_bytes), format_bytes(time.file_bytes));
  return fmt::format("{}; from the disk it would be {}.", held, format_seconds(time.from_disk));
}

}  // namespace

bool measured_for(const std::optional<load::MeasuredRates>& rates, std::string_view device) {
  return rates && rates->values.contains("disk_read") && rates->values.contains("link") &&
         (rates->device.empty() || rates->device == safe_display(device));
}

std::string upload_time_text(const UploadTime& time) {
  std::string text =
      fmt::format("{} projected, {} measured", format_seconds(time.projected), format_seconds(time.measured));
  if (time.by_measured_rates && !time.packs)
    text += fmt::format(" ({:+.1f} %)", error_percent(time.projected, time.measured));
  return text + ".";
}

std::string upload_rates_text(const UploadTime& time, const std::optional<load::MeasuredRates>& rates,
                              std::string_view device) {
  std::string text =
      cache_text(time) + (time.packs ? " Packing is not projected." : "") + " " + load::rates_line(rates);
  if (!rates)
    text += " `loadline devices --measure` measures this machine's.";
  else if (!rates->values.contains("host_pages"))
    text += " They do not count page faults of new memory: `loadline devices --measure` measures that too.";
  else if (!rates->device.empty() && rates->device != safe_display(device))
    text += fmt::format(" The device's rates are those of {}.", safe_display(rates->device, 60));
  return text;
}

}  // namespace loadline::report
