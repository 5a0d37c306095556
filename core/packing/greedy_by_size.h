// What others are measured against: the planner of TensorFlow Lite.
#pragma once

#include "core/packing/problem.h"
#include "core/packing/stop_rule.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// The height that it reaches in each arena: those that live throughout come first, then the largest, then the
// earliest, each in the tightest gap that holds it. Nothing where that passes 2^62, or where `rule` is due.
// Throws as check_problem() and normal_form().
std::vector<std::optional<std::uint64_t>> greedy_by_size_heights(const Problem& problem,
                                                                 const StopRule& rule = {});
// The highest of all arenas.
std::optional<std::uint64_t> greedy_by_size_height(const Problem& problem, const StopRule& rule = {});

}  // namespace loadline
