// How fast a device takes bytes, and copies its own.
#pragma once

#include "core/base/progress.h"
#include "core/gpu/device.h"
#include "core/load/rates.h"

#include <cstdint>

namespace loadline::gpu {

// Measures link, pageable_link and device_copy with blocks of `bytes` on a VulkanMachine, medians of seven,
// as an upload would move them; sets rates.device. Throws Error{no_fit | gpu | cancelled}.
void measure_link(const Device& device, std::uint64_t bytes, MeasuredRates& rates, Progress& progress);

}  // namespace loadline::gpu
