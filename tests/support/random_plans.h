// Random plans that obey check_plan.
#pragma once

#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>

namespace loadline::testing {

// Blocks of all four spaces, copies between every pair that is allowed, from storages and blocks.
Plan random_plan(const MetaGraph& graph, std::uint64_t seed, std::size_t steps);

}  // namespace loadline::testing
