// The baseline for comparisons: TensorFlow Lite's planner.
#pragma once

#include "core/packing/problem.h"
#include "core/packing/search_control.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// The planner's height in each arena. It places boxes alive throughout first, then the largest, then the
// earliest, each in the tightest gap that is large enough. Absent if the height exceeds 2^62 or `rule` is
// due. Throws as check_problem() and normal_form().
std::vector<std::optional<std::uint64_t>> greedy_by_size_heights(const Problem& problem,
                                                                 const StopRule& rule = {});
// The greatest height of all arenas.
std::optional<std::uint64_t> greedy_by_size_height(const Problem& problem, const StopRule& rule = {});

}  // namespace loadline
