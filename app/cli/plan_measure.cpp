// Tables and figures of measured loads.
#include "app/cli/plan_measure.h"

#include "app/cli/refusals.h"
#include "app/cli/table.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

constexpr std::uint64_t kNear = 16 << 20;

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

// What lies below the floor would agree with anything that does.
bool too_small(std::uint64_t projected, std::uint64_t measured) {
  return projected < kNear && measured < kNear;
}

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
  if (projected == 0 || too_small(projected, measured)) return bytes;
  return fmt::format("{} ({:+.2f} %)", bytes,
                     100 * (static_cast<double>(measured) / static_cast<double>(projected) - 1));
}

std::string_view judgement(std::uint64_t projected, std::uint64_t measured) {
  if (too_small(projected, measured)) return "too small to judge";
  return near(projected, measured) ? "agrees" : "differs";
}

// "2 of 3 loads within 2 % or 16 MiB. 1 load is too small to judge: all counts are below 16 MiB."
std::string summary(const std::vector<MeasuredRow>& rows) {
  std::uint64_t agreeing = 0, small = 0;
  for (const MeasuredRow& row : rows) {
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

}  // namespace

std::optional<bool> MeasuredRow::agrees() const {
  std::optional<bool> agrees;
  for (const MemoryCounter& counter : kMemoryCounters) {
    const std::uint64_t expected = projected.*counter.count, found = measured.*counter.count;
    if (!too_small(expected, found)) agrees = agrees.value_or(true) && near(expected, found);
  }
  return agrees;
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
    row.curves.push_back(counter_curve(measurement, plan, counter, kMeasuredColumns));
  return row;
}

Json measure_json(const MeasureAnswer& answer) {
  Json json = {{"model", json_text(model_name(answer.graph))},
               {"bytes", storage_bytes(answer.graph)},
               {"cold", answer.cold},
               {"measured", Json::array()}};
  for (const MeasuredRow& row : answer.rows) {
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
  }
  for (const MeasureAnswer::Refused& row : answer.refused)
    json["measured"].push_back(
        {{"method", row.method->id}, {"order", json_text(row.order)}, {"refused", json_text(row.why)}});
  return json;
}

std::string measure_table(const MeasureAnswer& answer, bool colour) {
  const std::uint64_t weights = storage_bytes(answer.graph);
  std::string text = fmt::format(
      "{}: {}, W = {} ({}), loaded in ordinary memory\n\n", safe_display(model_name(answer.graph), 80),
      counted(answer.graph.tensors.size(), "tensor"), format_bytes(weights), counted(weights, "byte"));
  Table table({"method", "order", "counter", "projected", "measured", "difference", "verdict"},
              {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right, Align::left});
  for (const MeasuredRow& row : answer.rows) {
    bool first = true;
    for (const MemoryCounter& counter : kMemoryCounters) {
      const std::uint64_t projected = row.projected.*counter.count, measured = row.measured.*counter.count;
      if (projected == 0 && measured < kNear) continue;
      table.row({first ? std::string(row.method->id) : "", first ? safe_display(row.order, 40) : "",
                 std::string(counter.name), bytes_cell(projected), bytes_cell(measured),
                 difference_cell(projected, measured), std::string(judgement(projected, measured))});
      first = false;
    }
  }
  text += table.text(colour) + "\n";
  for (const MeasuredRow& row : answer.rows)
    text +=
        fmt::format("{} ({}): {}, {}; of {} in files the page cache held {} before, {} at most, {} after.\n",
                    row.method->id, safe_display(row.order, 40), format_seconds(row.seconds),
                    counted(row.samples, "sample"), format_bytes(row.page_cache.files),
                    format_bytes(row.page_cache.before), format_bytes(row.page_cache.most),
                    format_bytes(row.page_cache.after));
  std::vector<Refusal> refusals;
  for (const MeasureAnswer::Refused& row : answer.refused)
    refusals.push_back({row.method->id, safe_display(row.why)});
  text += refusals_text(refusals, "cannot be measured");
  return text +
         std::string(
             "\nPeaks as differences to just before each load. RssAnon is what the plan holds on the host, "
             "RssShmem what it\nholds on the device and in staging (shared memory stands in for both), "
             "RssFile "
             "its mapped pages.\n") +
         summary(answer.rows);
}

}  // namespace loadline::cli
