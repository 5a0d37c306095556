// From an architecture's operators to values with sizes, as one profile runs them.
#pragma once

#include "core/forward/bind.h"
#include "core/forward/profile.h"
#include "core/graph/forward_graph.h"

namespace loadline {

// Every value's shape is a polynomial in B, S and P (and min(T, window)). Cached keys and values have a lane
// of their own; temporaries belong to their operator. Weights are those that `model` found. Throws
// Error{malformed} at the asset's line for operators that do not fit together, at the profile's expression
// for one that is no size.
ForwardGraph lower(const BoundModel& model, const Profile& profile);

}  // namespace loadline
