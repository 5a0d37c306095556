// A small problem on which every greedy order fails.
#include "core/packing/trace.h"

namespace loadline {

// Cut from a square of 16 ticks by 16 units, so a solution wastes no space; found by trying seeds.
Problem teaching_problem() {
  constexpr std::uint64_t kUnit = kTeachingCapacity / 16;
  constexpr struct {
    const char* id;
    std::uint64_t lower, upper, units;
  } kRows[] = {{"A", 0, 13, 2}, {"B", 0, 3, 8},  {"C", 7, 9, 8}, {"D", 9, 16, 2}, {"E", 13, 16, 8},
               {"F", 3, 7, 8},  {"G", 9, 16, 6}, {"H", 0, 4, 6}, {"I", 4, 9, 6},  {"J", 9, 13, 6}};
  Problem problem;
  for (const auto& row : kRows) {
    problem.buffers.push_back({.lower = row.lower, .upper = row.upper, .size = row.units * kUnit});
    problem.ids.emplace_back(row.id);
  }
  return problem;
}

}  // namespace loadline
