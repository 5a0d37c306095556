// Measures each method, and keeps the reasons of those that cannot be done.
#include "app/cli/rehearsing.h"

#include "app/cli/load_flags.h"
#include "core/base/error.h"
#include "core/load/order_file.h"

#include <optional>

#include <fmt/format.h>

namespace loadline::cli {

report::Rehearsal rehearse_all(const Context& context, const MetaGraphPtr& graph, const BoundRequest& bound,
                               bool cold) {
  report::Rehearsal rehearsal{*graph, cold, {}, {}};
  std::optional<Error> refusal;
  for (const Method* const method : bound.methods)
    for (const OrderChoice& order : bound.orders) {
      Progress progress(context.stop);
      try {
        require_importable(*graph, *method);
        const Plan plan = make_plan(*graph, *method,
                                    make_order(*graph, order, *method, bound.inputs, progress), bound.inputs);
        const ProgressLine line(context, fmt::format("rehearsing {}", method->id), progress);
        rehearsal.rows.push_back(
            report::rehearsed_row(*method, order.name, plan, measure_on_host(graph, plan, cold, progress)));
      } catch (const Error& error) {
        // a load that cannot be done here does not stop the others
        if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::limit &&
            error.code() != ErrorCode::no_fit)
          throw;
        if (!refusal) refusal = error;
        rehearsal.refused.push_back({method, order.name, error.what()});
      }
    }
  if (rehearsal.rows.empty()) throw *refusal;
  return rehearsal;
}

}  // namespace loadline::cli
