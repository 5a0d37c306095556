// Lowers an architecture's operators to a forward graph with sizes, as one profile runs them.
#pragma once

#include "core/forward/family/bind.h"
#include "core/forward/pass/profile.h"
#include "core/graph/forward_graph.h"

namespace loadline {

// Every dimension is a polynomial in B, S and P (and min(T, window)). Cached keys and values are in
// Lane::cache; temporaries belong to their operator. Weights are the tensors that `model` found. Throws
// Error{malformed} at the asset's line if operators do not fit together, and at the profile's expression if
// it gives no size.
ForwardGraph lower(const BoundModel& model, const Profile& profile);

}  // namespace loadline
