// Does a plan fit on this machine: asked before a byte of memory is taken. No Vulkan in it.
#pragma once

#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <array>
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

// What must be had: by mask of spaces (space_bit), the most that they hold together at one moment. It can be
// far less than their peaks together: a load that moves weights holds each once.
using MemoryNeeds = std::array<std::uint64_t, kAllSpaces + 1>;
// Every block rounded up to `alignment`, and `staging` bytes more wherever staging memory counts.
MemoryNeeds padded_needs(const Plan& plan, std::uint64_t alignment, std::uint64_t staging = 0);
MemoryNeeds needs_of(const Timeline& timeline);

// Throws Error{no_fit} with both numbers unless the needs are there. Mapped file pages do not count: the
// system can drop them.
void require_fit(const MemoryNeeds& needs, const MemorySupply& supply, std::string_view device);

}  // namespace loadline::gpu
