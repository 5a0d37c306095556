// Measures the transfer rate to a device and the device's own copy rate.
#pragma once

#include "core/base/progress.h"
#include "core/gpu/device.h"
#include "core/load/request/rates.h"

#include <cstdint>
#include <optional>

namespace loadline::gpu {

// Measures the rates link, pageable_link and device_copy: medians of seven copies of a block of `bytes` on a
// VulkanMachine, moved as an upload moves them. Also staging_pages and device_pages: medians of seven
// allocations. Sets rates.device. Throws Error{no_fit | gpu | canceled},
// and has set nothing then.
void measure_link(const Device& device, std::uint64_t bytes, load::MeasuredRates& rates, Progress& progress);

// The same for the device that `wanted` names, on the queue that an upload would take. Measures the link on
// each family of queues that copies, computes or draws, if the device has several, and sets rates.queues. A
// family on which the measurement fails is left out.
void measure_device(const DeviceOptions& wanted, std::uint64_t bytes, load::MeasuredRates& rates,
                    Progress& progress);

// What measure_device() found about queues.
QueueRates queue_rates(const std::optional<load::MeasuredRates>& rates);

}  // namespace loadline::gpu
