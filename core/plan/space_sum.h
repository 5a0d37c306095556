// Sums the memory spaces in a mask: one space, several, or all of unified memory.
#pragma once

#include "core/plan/plan.h"

namespace loadline {

// `mask` has bit 1 << index(space) set for each space to add. The sum must fit in 64 bits; this holds for the
// bytes of any plan that passed check_plan.
constexpr std::uint64_t sum_over(const PerSpace<std::uint64_t>& bytes, unsigned mask) {
  std::uint64_t sum = 0;
  for (std::size_t space = 0; space < kSpaceCount; ++space)
    if ((mask & (1u << space)) != 0) sum += bytes[space];
  return sum;
}

}  // namespace loadline
