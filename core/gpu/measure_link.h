// Measures the transfer rate to a device and the device's own copy rate.
#pragma once

#include "core/base/progress.h"
#include "core/gpu/device.h"
#include "core/load/rates.h"

#include <cstdint>

namespace loadline::gpu {

// Measures the rates link, pageable_link and device_copy: medians of seven copies of a block of `bytes` on a
// VulkanMachine, moved as an upload moves them. Sets rates.device. Throws Error{no_fit | gpu | cancelled}.
void measure_link(const Device& device, std::uint64_t bytes, MeasuredRates& rates, Progress& progress);

}  // namespace loadline::gpu
