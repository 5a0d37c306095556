// Tables and figures of measured loads.
#include "app/cli/plan_measure.h"

#include "app/cli/table.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

constexpr std::size_t kColumns = 480;
constexpr std::uint64_t kNear = 16 << 20;

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

bool near(std::uint64_t projected, std::uint64_t measured) {
  return distance(projected, measured) <= std::max(kNear, projected / 50);
}

Json counters_json(const ProcessMemory& memory) {
  Json json;
  for (const MemoryCounter& counter : kMemoryCounters) json[std::string(counter.id)] = memory.*counter.count;
  return json;
}

std::string bytes_cell(std::uint64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

std::string difference_cell(std::uint64_t projected, std::uint64_t measured) {
  if (projected == 0 && measured == 0) return "";
  const std::string_view sign = measured < projected ? "-" : "+";
  const std::string bytes = fmt::format("{}{}", sign, format_bytes(distance(projected, measured)));
  if (projected == 0) return bytes;
  return fmt::format("{} ({:+.2f} %)", bytes,
                     100 * (static_cast<double>(measured) / static_cast<double>(projected) - 1));
}

}  // namespace

bool MeasuredRow::agrees() const {
  return std::all_of(kMemoryCounters.begin(), kMemoryCounters.end(), [&](const MemoryCounter& counter) {
    return near(projected.*counter.count, measured.*counter.count);
  });
}

MeasuredRow measured_row(const Method& method, std::string order, const Plan& plan,
                         const HostMeasurement& measurement) {
  MeasuredRow row;
  row.method = &method;
  row.order = std::move(order);
  row.projected = measurement.projected;
  row.measured = measurement.measured;
  row.page_cache = measurement.page_cache;
  row.seconds = measurement.timeline.seconds;
  row.samples = measurement.timeline.measured.size();
  row.steps = plan.steps.size();
  for (const MemoryCounter& counter : kMemoryCounters)
    row.curves.push_back(counter_curve(measurement, plan, counter, kColumns));
  return row;
}

Json measure_json(const MeasureAnswer& answer) {
  Json json = {{"model", json_text(model_name(answer.graph))},
               {"bytes", storage_bytes(answer.graph)},
               {"cold", answer.cold},
               {"measured", Json::array()}};
  for (const MeasuredRow& row : answer.rows)
    json["measured"].push_back({{"method", row.method->id},
                                {"order", json_text(row.order)},
                                {"projected_peak", counters_json(row.projected)},
                                {"measured_peak", counters_json(row.measured)},
                                {"agrees", row.agrees()},
                                {"page_cache",
                                 {{"files", row.page_cache.files},
                                  {"before", row.page_cache.before},
                                  {"most", row.page_cache.most},
                                  {"after", row.page_cache.after}}},
                                {"seconds", row.seconds},
                                {"samples", row.samples}});
  return json;
}

std::string measure_table(const MeasureAnswer& answer, bool colour) {
  const std::uint64_t weights = storage_bytes(answer.graph);
  std::string text = fmt::format(
      "{}: {}, W = {} ({} bytes), loaded in ordinary memory\n\n", safe_display(model_name(answer.graph), 80),
      counted(answer.graph.tensors.size(), "tensor"), format_bytes(weights), format_grouped(weights));
  Table table({"method", "order", "counter", "projected", "measured", "difference", ""},
              {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right, Align::left});
  for (const MeasuredRow& row : answer.rows) {
    bool first = true;
    for (const MemoryCounter& counter : kMemoryCounters) {
      const std::uint64_t projected = row.projected.*counter.count, measured = row.measured.*counter.count;
      if (projected == 0 && measured < kNear) continue;
      table.row({first ? std::string(row.method->id) : "", first ? safe_display(row.order, 40) : "",
                 std::string(counter.name), bytes_cell(projected), bytes_cell(measured),
                 difference_cell(projected, measured), near(projected, measured) ? "" : "differs"});
      first = false;
    }
  }
  text += table.text(colour) + "\n";
  for (const MeasuredRow& row : answer.rows)
    text += fmt::format("{}: {}, {}; of {} in files the page cache held {} before, {} at most, {} after.\n",
                        row.method->id, format_seconds(row.seconds), counted(row.samples, "sample"),
                        format_bytes(row.page_cache.files), format_bytes(row.page_cache.before),
                        format_bytes(row.page_cache.most), format_bytes(row.page_cache.after));
  const auto agreeing = static_cast<std::uint64_t>(
      std::count_if(answer.rows.begin(), answer.rows.end(), [](const MeasuredRow& r) { return r.agrees(); }));
  return text +
         fmt::format(
             "\nPeaks as differences to just before each load. RssAnon is what the plan holds on the host, "
             "RssShmem what it\nholds on the device and in staging (shared memory stands in for both), "
             "RssFile "
             "its mapped pages.\n{} of {} within 2 % or 16 MiB.\n",
             agreeing, counted(answer.rows.size(), "load"));
}

}  // namespace loadline::cli
