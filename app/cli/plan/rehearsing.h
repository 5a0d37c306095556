// Rehearses the methods of a request.
#pragma once

#include "app/cli/base/command.h"
#include "app/report/measured_loads.h"
#include "core/load/request/bind_request_2.h"

namespace loadline::cli {

// Row by row: parallel loads would count each other's memory. Throws the first refusal if all are refused.
report::MeasuredLoads rehearse_all(const Context& context, const MetaGraphPtr& graph,
                                   const BoundRequest& bound, bool cold);

}  // namespace loadline::cli
