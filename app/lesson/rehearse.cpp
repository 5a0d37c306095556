// Loads a small model for real, method by method.
#include "app/lesson/runs.h"
#include "app/report/measured_loads.h"
#include "core/base/text.h"
#include "core/load/request/load_options.h"

#include <fmt/format.h>

namespace loadline::lesson {

RunResult run_rehearse(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), false, call);
  const MetaGraph& graph = *model.graph();
  LoadRequest request;
  request.methods = call.list("method", "sequential");
  request.orders = call.list("order", "file");
  if (const std::string ring = call.text("staging", ""); !ring.empty())
    set_load_option(request, "staging", ring);
  const BoundRequest bound = bind_request(graph, request, call.environment);
  RunResult result;
  result.figures["W"] = run_bytes(storage_bytes(graph));
  result.lines.push_back(
      fmt::format("{}: {} of random weights", model_name(graph), format_bytes(storage_bytes(graph))));
  result.lines.push_back(fmt::format("{:<22}{:<12}{:<10}  {:>11}  {:>11}", "method", "order", "counter",
                                     "projected", "measured"));
  for (const Method* const method : bound.methods)
    for (const OrderChoice& order : bound.orders) {
      const Plan plan = make_plan(
          graph, *method, make_order(graph, order, *method, bound.inputs, call.progress), bound.inputs);
      const HostMeasurement measurement = measure_on_host(model.graph(), plan, false, call.progress);
      const report::MeasuredLoad row = report::rehearsed_load(*method, order.name, plan, measurement);
      const std::string stem = std::string(method->id) + (bound.orders.size() > 1 ? "." + order.name : "");
      const auto add_line = [&](std::string_view counter, std::uint64_t projected, std::uint64_t measured) {
        result.lines.push_back(fmt::format("{:<22}{:<12}{:<10}  {:>11}  {:>11}", method->id,
                                           safe_display(order.name, 11), counter, format_bytes(projected),
                                           format_bytes(measured)));
      };
      for (const report::MeasuredCounter& counter : row.counters) {
        result.figures[fmt::format("{}.{}", stem, counter.id)] = run_bytes(counter.measured);
        if (!report::too_small_to_judge(counter.projected, counter.measured))
          add_line(counter.name, counter.projected, counter.measured);
      }
      // the counters' own peaks may be at different moments
      add_line("at once", measurement.projected_held, measurement.measured_held);
      result.figures[stem + ".projected"] = run_bytes(measurement.projected_held);
      result.figures[stem + ".measured"] = run_bytes(measurement.measured_held);
      result.figures[stem + ".seconds"] = Datum(row.seconds);
    }
  return result;
}

}  // namespace loadline::lesson
