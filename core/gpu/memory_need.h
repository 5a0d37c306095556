// Does a plan fit on this machine: asked before a byte of memory is taken. No Vulkan in it.
#pragma once

#include "core/plan/plan.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace loadline::gpu {

// Bytes that can be taken now.
struct MemorySupply {
  std::uint64_t device = 0;                  // in the heap that device blocks come from
  std::uint64_t staging = 0;                 // in the heap of mapped memory
  bool same_heap = false;                    // the two are one heap
  std::optional<std::uint64_t> system = {};  // memory of the machine
  bool device_is_system = false;             // a CPU-type device: everything is system memory
};

// Throws Error{no_fit} with both numbers unless the peaks fit. Mapped file pages do not count: the
// system can drop them.
void require_fit(const PerSpace<std::uint64_t>& peaks, const MemorySupply& supply, std::string_view device);

}  // namespace loadline::gpu
