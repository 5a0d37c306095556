// What no packing can undercut.
#pragma once

#include "core/packing/normal_form.h"

#include <cstdint>

namespace loadline {

// The most that any section needs: its boxes and obstacles on top of each other, at offsets that their
// common alignment leaves, and no obstacle above what stands over it.
struct LowerBound {
  std::uint64_t units = 0;
  std::uint32_t section = 0;  // the first that needs it
};
LowerBound lower_bound(const SectionModel& model);

}  // namespace loadline
