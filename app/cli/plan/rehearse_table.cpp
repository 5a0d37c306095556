// The text and the JSON keys of a rehearsal.
#include "app/cli/plan/rehearse_table.h"

#include "app/cli/plan/rehearsal.h"
#include "app/report/wrap.h"
#include "core/base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

using report::MeasuredCounter;
using report::MeasuredLoad;
using report::MeasuredLoads;

}  // namespace

Json rehearsal_json(const MeasuredLoads& loads, bool cold) {
  Json json = {{"model", json_text(model_name(loads.graph))},
               {"bytes", storage_bytes(loads.graph)},
               {"cold", cold},
               {"measured", Json::array()}};
  for (const MeasuredLoad& row : loads.rows) {
    const std::optional<bool> agrees = row.agrees();
    Json one = {{"method", row.method->id},
                {"order", json_text(row.order)},
                {"projected_peak", Json::object()},
                {"measured_peak", Json::object()},
                {"agrees", agrees ? Json(*agrees) : Json()},
                {"page_cache",
                 {{"files", row.page_cache->files},
                  {"before", row.page_cache->before},
                  {"most", row.page_cache->most},
                  {"after", row.page_cache->after}}},
                {"seconds", row.seconds},
                {"samples", row.samples},
                {"samples_too_high", Json::object()}};
    for (const MeasuredCounter& counter : row.counters) {
      const std::string id(counter.id);
      one["projected_peak"][id] = counter.projected;
      one["measured_peak"][id] = counter.measured;
      one["samples_too_high"][id] = counter.beyond.samples;
    }
    json["measured"].push_back(std::move(one));
  }
  add_refused(json["measured"], loads);
  return json;
}

std::string rehearsal_table(const MeasuredLoads& loads, bool colour, std::size_t prose_columns) {
  const std::uint64_t weights = storage_bytes(loads.graph);
  const std::string heading =
      fmt::format("{}: {}, W = {} ({}), our own plans run in ordinary memory\n\n",
                  safe_display(model_name(loads.graph), 80), counted(loads.graph.tensors.size(), "tensor"),
                  format_bytes(weights), counted(weights, "byte"));
  std::string text;
  for (const MeasuredLoad& row : loads.rows)
    text +=
        fmt::format("{} ({}): {}, {}; of {} in files the page cache held {} before, {} at most, {} after.\n",
                    row.method->id, safe_display(row.order, 40), format_seconds(row.seconds),
                    counted(row.samples, "sample"), format_bytes(row.page_cache->files),
                    format_bytes(row.page_cache->before), format_bytes(row.page_cache->most),
                    format_bytes(row.page_cache->after));
  text += too_high_text(loads);
  text += refused_text(loads, "cannot be rehearsed");
  text +=
      "\nPeaks are differences to the state just before each load. RssAnon counts what the plan holds on the "
      "host. RssShmem counts what it holds on the device and in staging: shared memory stands in for both. "
      "RssFile counts its mapped pages.\n" +
      measured_summary(loads.rows);
  return heading + measured_table(loads, colour) + "\n" + report::reflowed(text, prose_columns);
}

}  // namespace loadline::cli
