// Pools of device and transfer memory. A pool takes large VkDeviceMemory blocks, each with one VkBuffer, and
// hands out ranges of them.
#pragma once

#include "core/allocators/block_pool.h"
#include "core/gpu/device.h"
#include "core/gpu/transfer_queue.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

namespace loadline::gpu {

// The purpose of an allocation.
enum class MemoryUse : std::uint8_t {
  device,   // device-local memory
  direct,   // mapped device-local memory: the host writes weights to their final place
  staging,  // mapped, for copies to and from the device
};

// Whether all device-local memory can be mapped: unified memory, or a window as large as the heap. Considers
// only the memory types whose bits are set in `allowed`, as choose_memory_type() does.
bool can_map_device_memory(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed);
// The memory types (one bit each) that a pool's buffers for this use may lie in, whatever their size. The
// second function answers can_map_device_memory() for the types of MemoryUse::direct. Both create a small
// buffer to ask the driver, and throw Error{gpu} if the device refuses it.
std::uint32_t buffer_memory_types(const Device& device, MemoryUse use);
bool can_map_device_memory(const Device& device);

// The best memory type among those whose bits are set in `allowed`:
//   device            in the largest device-local heap, preferably not mappable
//   direct            in the largest device-local heap, mappable
//   staging           mappable and coherent, preferably outside the device-local heap, because a small mapped
//                     window into that heap is scarce; preferably cached: the host reads it back when it
//                     casts, decodes or verifies, and reads of uncached memory are slower by a factor of 100
// Absent if no type serves.
std::optional<std::uint32_t> find_memory_type(const VkPhysicalDeviceMemoryProperties& memory,
                                              std::uint32_t allowed, MemoryUse use);
// The same; throws Error{gpu} if no type serves.
std::uint32_t choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed,
                                 MemoryUse use);

class MemoryBlock;

// A range of a pool. Cheap to copy, valid until freed. `mapped` views the same bytes from the host; it is
// empty for memory that is not mapped.
struct Allocation {
  BlockPool::Range place = {};
  BufferRange range = {};
  std::span<std::byte> mapped = {};
};

// Not thread-safe. The device must outlive it. No copy may be in flight when it is destroyed. BlockPool
// decides when blocks are taken; if the device refuses a block of the usual size, one of the exact size is
// tried. A pool for MemoryUse::direct whose memory cannot be mapped at the moment, because the window onto it
// is full, takes memory that is not mapped.
class MemoryPool {
 public:
  // `expected`: rounded up to pool_alignment().
  // `take_at_once`: MachineOptions::take_at_once.
  MemoryPool(const Device& device, MemoryUse use, PoolForecast expected, bool take_at_once = false);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  // Throws Error{gpu} with sizes if the device refuses, or if `bytes` exceeds its limit for one allocation.
  Allocation allocate(std::uint64_t bytes);
  // The range must not be in use by the device.
  void free(const Allocation& allocation);

  std::uint64_t reserved() const { return pool_.reserved(); }  // bytes allocated from Vulkan
  std::uint64_t alignment() const { return alignment_; }

 private:
  PoolBlock take_block(std::uint32_t id, std::uint64_t wanted, std::uint64_t exact);

  const Device& device_;
  MemoryUse use_;
  bool take_at_once_;
  std::uint64_t alignment_;
  std::map<std::uint32_t, std::unique_ptr<MemoryBlock>> blocks_;
  BlockPool pool_;
};

// The alignment of a pool's ranges. It suits copies and shader bindings.
std::uint64_t pool_alignment(const Device& device);

}  // namespace loadline::gpu
