// What others are measured against: the planner of TensorFlow Lite.
#pragma once

#include "core/packing/problem.h"

#include <cstdint>

namespace loadline {

// The height that it reaches: those that live throughout, then the largest, then the earliest, each at the
// lowest place that holds it. The highest of all arenas; UINT64_MAX where that passes
// 2^62. Throws as normal_form().
std::uint64_t greedy_by_size_height(const Problem& problem);

}  // namespace loadline
