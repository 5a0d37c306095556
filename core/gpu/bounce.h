// The machine's own transfer memory, for copies between the device and memory that it cannot see.
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

  // Writes the bytes from `offset` of whatever is being copied into `out`.
  using Fill = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;
  // Returns the value after which `to` is complete. `fill` is called before it returns.
  std::uint64_t copy(const Fill& fill, const BufferRange& to);

 private:
  MemoryPool& memory_;
  TransferQueue& transfers_;
  StagingRing ring_;
  Allocation slots_;
  std::uint64_t newest_ = 0;  // value of the newest copy out of the slot being filled
};

// Copies device bytes to the host in order, a chunk at a time, reading ahead on the device.
class Readback {
 public:
  Readback(MemoryPool& memory, TransferQueue& transfers);

  using Take = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;
  // Calls `take` for consecutive chunks of `from`; returns when all were taken.
  void read(const BufferRange& from, const Take& take);

 private:
  MemoryPool& memory_;
  TransferQueue& transfers_;
  Allocation slots_;
};

}  // namespace loadline::gpu
