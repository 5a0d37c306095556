// Device and transfer memory: large VkDeviceMemory blocks, one VkBuffer each, cut into ranges.
#pragma once

#include "core/allocators/block_pool.h"
#include "core/gpu/device.h"
#include "core/gpu/transfer_queue.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace loadline::gpu {

// What memory is taken for.
enum class MemoryUse : std::uint8_t {
  device,    // the accelerator's own
  direct,    // the same, mapped: the host writes to where it stays
  upload,    // mapped, written by the host
  readback,  // mapped, read by the host: cached where there is such memory
};

// Whether all of the device's own memory can be mapped: unified memory, or a window as large as the heap. As
// for choose_memory_type(), of the types that `allowed` has a bit for.
bool can_map_device_memory(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed);
// The types that a pool's buffers for this use may lie in, whatever their size; and the same question of what
// MemoryUse::direct may use there. Throw Error{gpu} when the device refuses a buffer to ask with.
std::uint32_t buffer_memory_types(const Device& device, MemoryUse use);
bool can_map_device_memory(const Device& device);

// The memory type to use among those that `allowed` has a bit for. device: the largest local heap,
// and there a type that is not mapped. direct: the largest local heap, mapped. upload, readback: coherent,
// outside the device's heap when possible (a small mapped window into it is scarce), cached only for
// readback. Throws Error{gpu} when there is none.
std::uint32_t choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed,
                                 MemoryUse use);

class MemoryBlock;

// Cheap to copy; valid until freed. `mapped` holds the same bytes, empty for device memory that is not
// mapped.
struct Allocation {
  BlockPool::Range place = {};
  BufferRange range = {};
  std::span<std::byte> mapped = {};
};

// Not thread-safe. The device must outlive it, and nothing may be in flight when it is destroyed. Blocks as
// BlockPool takes them: where the device refuses what would be convenient, what is needed.
class MemoryPool {
 public:
  // `expected` bytes are taken at most at a time, each block rounded up to the alignment.
  MemoryPool(const Device& device, MemoryUse use, std::uint64_t expected);
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  // Throws Error{gpu} with sizes when the device refuses, or when `bytes` are more than it allows in
  // one allocation.
  Allocation allocate(std::uint64_t bytes);
  // The range must not be in use by the device.
  void free(const Allocation& allocation);

  std::uint64_t reserved() const { return pool_.reserved(); }  // bytes taken from Vulkan
  std::uint64_t alignment() const { return alignment_; }

 private:
  PoolBlock take_block(std::uint32_t id, std::uint64_t wanted, std::uint64_t exact);

  const Device& device_;
  MemoryUse use_;
  std::uint64_t alignment_;
  std::map<std::uint32_t, std::unique_ptr<MemoryBlock>> blocks_;
  BlockPool pool_;
};

// Where ranges of a pool start: a multiple that suits copies and shader bindings alike.
std::uint64_t pool_alignment(const Device& device);

}  // namespace loadline::gpu
