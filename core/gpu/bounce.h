// Transfer memory of VulkanMachine itself: copies between the device and host memory that the device cannot
// access.
#pragma once

#include "core/gpu/device_memory.h"
#include "core/gpu/staging_ring.h"
#include "core/gpu/transfer_queue.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace loadline::gpu {

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

  using Take = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;
  // Calls `take` for consecutive chunks of `from`. Returns after the last call.
  void read(const BufferRange& from, const Take& take);

 private:
  MemoryPool& memory_;
  TransferQueue& transfers_;
  Allocation slots_;
};

}  // namespace loadline::gpu
