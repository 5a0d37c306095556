// Memory that the device can access: pools, file pages imported in place, rings of transfer slots for uploads
// and readbacks.
#pragma once

#include "core/allocators/block_pool.h"
#include "core/gpu/device.h"
#include "core/gpu/transfer_queue.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace loadline::gpu {

// --- Pools of device and transfer memory. A pool takes large VkDeviceMemory blocks, each with one VkBuffer,
// and hands out ranges of them.

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
  allocators::BlockPool::Range place = {};
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
  MemoryPool(const Device& device, MemoryUse use, allocators::PoolForecast expected,
             bool take_at_once = false);
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
  allocators::PoolBlock take_block(std::uint32_t id, std::uint64_t wanted, std::uint64_t exact);

  const Device& device_;
  MemoryUse use_;
  bool take_at_once_;
  std::uint64_t alignment_;
  std::map<std::uint32_t, std::unique_ptr<MemoryBlock>> blocks_;
  allocators::BlockPool pool_;
};

// The alignment of a pool's ranges. It suits copies and shader bindings.
std::uint64_t pool_alignment(const Device& device);

// --- File pages that the device reads where they are (VK_EXT_external_memory_host).

// A mapped range of a file, as a buffer that copies may read. It must not be destroyed while one does. The
// device reads the mapping itself: if the file becomes shorter meanwhile, a software device ends the process
// with SIGBUS; a GPU either has pinned the pages or fails the copy.
class ImportedPages {
 public:
  // Null if the device cannot import pages at all, was opened for shaders (the buffer has no address), or
  // refuses these. Throws Error{io} if they cannot be read.
  static std::unique_ptr<ImportedPages> make(const Device& device, const io::SourceFile& file,
                                             std::uint64_t offset, std::uint64_t bytes);

  const BufferRange& range() const { return range_; }
  std::uint64_t whole_bytes() const { return mapping_.bytes; }  // of the pages

 private:
  struct Mapping {
    Mapping(const io::SourceFile& file, std::uint64_t offset, std::uint64_t length);
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();
    void* base = nullptr;  // null if the file cannot be mapped there
    std::size_t bytes = 0;
  };
  ImportedPages(const io::SourceFile& file, std::uint64_t offset, std::uint64_t length)
      : mapping_(file, offset, length) {}
  bool bind(const Device& device);

  Mapping mapping_;  // unmapped last
  UniqueMemory memory_;
  UniqueBuffer buffer_;
  BufferRange range_;
};

// Whether the device reads pages of this file when it is told to copy them. Some drivers take the pages, and
// lose the device when it first uses them: a device of its own tries, with bytes at the beginning of the
// range. Throws Error{io} if the file cannot be read.
bool can_import_pages(const Device& device, const io::SourceFile& file, std::uint64_t offset,
                      std::uint64_t bytes);

// --- The state machine of a ring of transfer slots: decides which slot may be filled now. Contains no
// Vulkan.

// A slot goes free -> filling -> in flight -> free. Slots take turns in one fixed order. The owner fills a
// slot with several pieces (take), records their copies, and submits the slot with the timeline value at
// which the last copy is complete. Values never decrease. Calls out of order are a caller's bug and asserted.
class StagingRing {
 public:
  StagingRing(std::uint32_t slots, std::uint64_t slot_bytes);

  struct Piece {
    std::uint32_t slot = 0;
    std::uint64_t offset = 0;  // from the start of the whole ring
    std::uint64_t bytes = 0;
  };

  std::uint32_t slots() const { return static_cast<std::uint32_t>(busy_until_.size()); }
  std::uint64_t slot_bytes() const { return slot_bytes_; }

  bool filling() const { return filling_; }
  // The timeline value that must be complete before the next slot may be begun; 0 if the slot was never used.
  std::uint64_t next_needs() const { return busy_until_[next_]; }
  // Opens the next slot in turn. `completed` is the timeline's current value.
  void begin(std::uint64_t completed);
  // Bytes left in the slot being filled.
  std::uint64_t room() const;
  // Hands out at most `most` (> 0) bytes of the slot being filled, which must have room. Pieces start on
  // multiples of `alignment`, a power of two that divides slot_bytes.
  Piece take(std::uint64_t most, std::uint64_t alignment);
  // Closes the slot being filled: it is in flight until `value` is complete.
  void submit(std::uint64_t value);

 private:
  std::uint64_t slot_bytes_;
  std::vector<std::uint64_t> busy_until_;  // per slot; 0 = never submitted
  std::uint32_t next_ = 0;                 // the slot being filled, or the one whose turn it is
  bool filling_ = false;
  std::uint64_t used_ = 0;  // bytes taken of the slot being filled
  std::uint64_t last_value_ = 0;
};

// --- Transfer memory of VulkanMachine itself: copies between the device and host memory that the device
// cannot access.

inline constexpr std::uint32_t kBounceSlots = 4;
inline constexpr std::uint64_t kBounceSlotBytes = 4ull << 20;

// Copies host bytes to the device through a ring of mapped slots: filling one slot overlaps with the
// transfer of the others, and small copies share a slot. Takes its memory when first used. Pool and
// queue must outlive it.
class UploadBounce {
 public:
  UploadBounce(MemoryPool& memory, TransferQueue& transfers);

  // Writes the source's bytes from `offset` on into `out`.
  using Fill = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;
  // Returns the timeline value at which `to` is complete. `fill` is called before copy() returns.
  std::uint64_t copy(const Fill& fill, const BufferRange& to);
  // Records what is done with the bytes from `offset` on, which are in `slot`; returns its timeline value.
  using Send = std::function<std::uint64_t(std::uint64_t offset, const BufferRange& slot)>;
  // The same for `bytes` bytes that are sent in multiples of `unit`.
  std::uint64_t send(const Fill& fill, std::uint64_t bytes, std::uint64_t unit, const Send& send);

 private:
  MemoryPool& memory_;
  TransferQueue& transfers_;
  StagingRing ring_;
  Allocation slots_;
  std::uint64_t newest_ = 0;  // value of the newest copy out of the slot being filled
};

// Copies device bytes to the host in order, chunk by chunk. The device already copies the next chunks
// meanwhile.
class Readback {
 public:
  Readback(MemoryPool& memory, TransferQueue& transfers);

  using Consume = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;
  // Calls `take` for consecutive chunks of `from`. Returns after the last call.
  void read(const BufferRange& from, const Consume& take);

 private:
  MemoryPool& memory_;
  TransferQueue& transfers_;
  Allocation slots_;
};

}  // namespace loadline::gpu
