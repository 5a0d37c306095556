// Sums of peaks against what is there.
#include "core/gpu/memory_need.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::gpu {
namespace {

void require(std::uint64_t need, std::uint64_t there, std::string_view what) {
  if (need <= there) return;
  throw Error(ErrorCode::no_fit,
              fmt::format("does not fit: needs {} ({} bytes) of {}, {} ({} bytes) are available",
                          format_bytes(need), need, what, format_bytes(there), there));
}

}  // namespace

PerSpace<std::uint64_t> padded_peaks(const Plan& plan, std::uint64_t alignment) {
  PerSpace<std::uint64_t> live = {}, peaks = {};
  for (const Step& step : plan.steps) {
    if (step.verb == Verb::copy) continue;
    const Block& block = plan.block(step.block);
    const std::size_t space = index(block.space);
    const std::uint64_t bytes = align_up(block.bytes, alignment);
    if (step.verb == Verb::alloc)
      live[space] += bytes;
    else
      live[space] -= bytes;
    peaks[space] = std::max(peaks[space], live[space]);
  }
  return peaks;
}

void require_fit(const PerSpace<std::uint64_t>& peaks, const MemorySupply& supply, std::string_view device) {
  const std::uint64_t on_device = peaks[index(Space::device)];
  const std::uint64_t staging = peaks[index(Space::staging)];
  const std::uint64_t host = peaks[index(Space::host)];
  if (supply.device_is_system) {
    if (supply.system)
      require(on_device + staging + host, *supply.system,
              fmt::format("system memory ({} has no other)", device));
    return;
  }
  if (supply.same_heap) {
    require(on_device + staging, supply.device, fmt::format("memory that {} shares with the host", device));
  } else {
    require(on_device, supply.device, fmt::format("device memory on {}", device));
    require(staging, supply.staging, fmt::format("transfer memory for {}", device));
  }
  if (supply.system) require(host + staging, *supply.system, "system memory");
}

}  // namespace loadline::gpu
