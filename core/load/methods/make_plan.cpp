// Checks that a method supports the request, then makes its plan.
#include "core/base/error.h"
#include "core/load/methods/builder.h"
#include "core/load/request/method.h"

#include <utility>

namespace loadline {
std::uint32_t loading_threads(const LoadInputs& inputs) {
  return inputs.placement.leaves_on_disk() ? 1 : inputs.request.workers;
}

Plan make_plan(const MetaGraph& graph, const Method& method, const StorageOrder& order,
               const LoadInputs& inputs, Plan used) {
  check_request(inputs.request);
  if (inputs.request.cast && !method.traits.casts)
    throw Error(ErrorCode::unsupported, "weights are loaded as they are stored");
  if (!inputs.placement.all_on_device() && !method.traits.offloads)
    throw Error(ErrorCode::unsupported, "weights can go nowhere but to the device");
  if (!supports_placement(method, inputs.request))
    throw Error(ErrorCode::unsupported, inputs.request.gpu_layers
                                            ? "only llama.cpp counts layers on the device"
                                            : "no automatic map of this loader");
  if (!method.traits.disk && inputs.placement.leaves_on_disk())
    throw Error(ErrorCode::unsupported, "weights cannot stay on disk");
  MethodBuilder builder(graph, order, inputs, std::move(used));
  Plan plan = method.make(builder);
  return inputs.request.prepack ? with_prepacks(std::move(plan), graph, *inputs.request.prepack) : plan;
}

}  // namespace loadline
