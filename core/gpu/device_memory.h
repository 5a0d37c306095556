// Device and transfer memory: large VkDeviceMemory blocks, one VkBuffer each, cut into ranges.
#pragma once

#include "core/gpu/device.h"
#include "core/gpu/suballocator.h"
#include "core/gpu/transfer_queue.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace loadline::gpu {

enum class MemoryKind : std::uint8_t {
  device,    // the accelerator's own
  upload,    // mapped, written by the host
  readback,  // mapped, read by the host: cached where there is such memory
};

// The memory type to use among those that `allowed` has a bit for. device: the largest local heap,
// and there a type that is not mapped. upload, readback: coherent, outside the device's heap when
// possible (a small mapped window into it is scarce), cached only for readback. Throws Error{gpu} when
// there is none.
std::uint32_t choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed,
                                 MemoryKind kind);

class MemoryBlock;

// Cheap to copy; valid until freed. `mapped` holds the same bytes, empty for device memory.
struct Allocation {
  MemoryBlock* block = nullptr;  // null = no bytes
  BufferRange range = {};
  std::span<std::byte> mapped = {};
};

inline constexpr std::uint64_t kPoolBlockBytes = 256ull << 20;

// Not thread-safe. The device must outlive it, and nothing may be in flight when it is destroyed.
class MemoryPool {
 public:
  // Takes memory in blocks of kPoolBlockBytes, or of what is still missing to `expected` bytes if that is
  // less; larger requests get a block of their own.
  MemoryPool(const Device& device, MemoryKind kind, std::uint64_t expected);
  ~MemoryPool();

  // Throws Error{gpu} with sizes when the device refuses, or when `bytes` are more than it allows in
  // one allocation.
  Allocation allocate(std::uint64_t bytes);
  // The range must not be in use by the device. One empty block is kept against thrashing, all others
  // go back to the system.
  void free(const Allocation& allocation);

  std::uint64_t reserved() const { return reserved_; }  // bytes taken from Vulkan
  std::uint64_t alignment() const { return alignment_; }

 private:
  std::uint64_t next_block_bytes(std::uint64_t least) const;
  MemoryBlock& add_block(std::uint64_t least);
  void release_empty(std::size_t keep);

  const Device& device_;
  MemoryKind kind_;
  std::uint64_t alignment_;
  std::uint64_t expected_;
  std::uint64_t reserved_ = 0;
  std::vector<std::unique_ptr<MemoryBlock>> blocks_;
};

// Where ranges of a pool start: a multiple that suits copies and shader bindings alike.
std::uint64_t pool_alignment(const Device& device);

}  // namespace loadline::gpu
