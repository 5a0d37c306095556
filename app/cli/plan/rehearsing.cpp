// Measures each method, and keeps the reasons of those that cannot be done.
#include "app/cli/plan/rehearsing.h"

#include "app/cli/plan/load_flags.h"
#include "core/base/error.h"
#include "core/load/request/order_file.h"

#include <optional>

#include <fmt/format.h>

namespace loadline::cli {

report::MeasuredLoads rehearse_all(const Context& context, const MetaGraphPtr& graph,
                                   const BoundRequest& bound, bool cold) {
  report::MeasuredLoads loads{*graph, "loaded in ordinary memory", {}, {}};
  std::optional<Error> refusal;
  for (const Method* const method : bound.methods)
    for (const OrderChoice& order : bound.orders) {
      Progress progress(context.stop);
      try {
        require_importable(*graph, *method);
        const Plan plan = make_plan(*graph, *method,
                                    make_order(*graph, order, *method, bound.inputs, progress), bound.inputs);
        const ProgressLine line(context, fmt::format("rehearsing {}", method->id), progress);
        loads.rows.push_back(
            report::rehearsed_load(*method, order.name, plan, measure_on_host(graph, plan, cold, progress)));
      } catch (const Error& error) {
        // a load that cannot be done here does not stop the others
        if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::limit &&
            error.code() != ErrorCode::no_fit)
          throw;
        if (!refusal) refusal = error;
        loads.refused.push_back({method, order.name, error.what()});
      }
    }
  if (loads.rows.empty()) throw *refusal;
  return loads;
}

}  // namespace loadline::cli
