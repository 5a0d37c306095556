// A lower bound for the height of every packing.
#pragma once

#include "core/packing/normal_form.h"

#include <cstdint>

namespace loadline {

// The greatest bound of any section. The boxes of a section need the sum of their sizes, rounded up to the
// common alignment of all boxes except for one box. Obstacles need the height of their highest end.
struct LowerBound {
  std::uint64_t units = 0;
  std::uint32_t section = 0;  // the first section with that need
};
LowerBound lower_bound(const SectionModel& model);

}  // namespace loadline
