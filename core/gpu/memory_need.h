// Checks that a plan fits on this machine before any memory is allocated. Contains no Vulkan.
#pragma once

#include "core/gpu/device_info.h"
#include "core/graph/meta_graph.h"
#include "core/load/request/bind_request.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace loadline::gpu {

// What this machine can give now, with the device that uploads choose of these; a software device is none.
load::MachineMemory machine_memory(std::span<const DeviceInfo> devices);

// Bytes that can be allocated now.
struct MemorySupply {
  std::uint64_t device = 0;                  // in the heap that device blocks come from
  std::uint64_t staging = 0;                 // in the heap of mapped memory
  bool same_heap = false;                    // the two are one heap
  std::optional<std::uint64_t> system = {};  // memory of the machine
  bool shares_system = false;                // the device's memory is the machine's: DeviceInfo::unified
  bool is_system = false;                    // a CPU-type device: its heaps mean nothing
  std::uint64_t set_aside = 0;               // DeviceInfo::set_aside
};

// Peak bytes for each combination of memory spaces, indexed by a mask of space_bit()s: the most that the
// spaces hold together at one moment. This can be far below the sum of their separate peaks, because a load
// that moves weights holds each weight once.
using MemoryNeeds = std::array<std::uint64_t, plan::kAllSpaces + 1>;
// The needs of a plan, with every block rounded up to `alignment` and `staging` extra bytes of staging
// memory.
MemoryNeeds padded_needs(const plan::Plan& plan, std::uint64_t alignment, std::uint64_t staging = 0);
MemoryNeeds needs_of(const plan::Timeline& timeline);

// Throws Error{no_fit} with both numbers if a need exceeds the supply. Mapped file pages do not count,
// because the system can drop them. `device` is the device's name for the message.
void require_fit(const MemoryNeeds& needs, const MemorySupply& supply, std::string_view device);

// Whether blocks of this space are memory that the device can access.
constexpr bool device_sees(plan::Space space) {
  return space == plan::Space::device || space == plan::Space::staging;
}

// Throws Error{no_fit} with the tensor and both numbers for a device or staging block that the device cannot
// have in one piece.
void require_pieces(const plan::Plan& plan, const graph::MetaGraph& graph, const DeviceInfo& device,
                    std::uint64_t alignment);
// The largest block of the space that needs more in one piece than the driver promises.
std::optional<plan::BlockId> largest_unpromised(const plan::Plan& plan, plan::Space space,
                                                const DeviceInfo& device, std::uint64_t alignment);
// Throws Error{no_fit}: the device gives at most `most` bytes in one piece. `why`: what it said of more.
[[noreturn]] void refuse_piece(const plan::Block& block, const graph::MetaGraph& graph,
                               const DeviceInfo& device, std::uint64_t most, std::string_view why = {});
// Throws Error{no_fit} with both numbers if the pools of the uploader need more allocations at once than the
// device allows.
void require_allocations(const plan::Plan& plan, const DeviceInfo& device, std::uint64_t alignment);

// Whether the plan packs weights on the device.
bool packs_weights(const plan::Plan& plan);
// Throws Error{unsupported} if the device's shaders cannot pack.
void require_packing(const DeviceInfo& device);

// The tensors of which a shader cannot see all bytes at once, in the size that the plan packs them to.
struct Unbindable {
  std::uint64_t count = 0;
  std::optional<graph::TensorId> largest = {};
  std::uint64_t most = 0;  // bytes of the largest
};
Unbindable unbindable_tensors(const graph::MetaGraph& graph, const plan::Plan& plan,
                              const DeviceInfo& device);

}  // namespace loadline::gpu
