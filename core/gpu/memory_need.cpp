// Sums of peaks against what is there.
#include "core/gpu/memory_need.h"

#include "core/base/error.h"
#include "core/base/text.h"

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
