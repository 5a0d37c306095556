// Records buffer copies in batches and submits them behind one timeline semaphore.
#pragma once

#include "core/gpu/device.h"
#include "core/gpu/hazards.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace loadline::gpu {

struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool mapped = false;  // the host can see it

  BufferRange part(std::uint64_t at, std::uint64_t count) const {
    return {buffer, offset + at, count, mapped};
  }
};

// Copies take effect in the order in which they are recorded. The device must outlive the queue. The
// destructor waits for copies in flight. After an Error only destruction is allowed.
class TransferQueue {
 public:
  // A batch is submitted automatically once it holds `flush_bytes`.
  TransferQueue(const Device& device, std::uint64_t flush_bytes);
  TransferQueue(const TransferQueue&) = delete;
  TransferQueue& operator=(const TransferQueue&) = delete;
  ~TransferQueue();

  // Records a copy of from.bytes == to.bytes > 0 bytes between ranges that do not overlap. Returns the
  // timeline value for wait(). The copy sees bytes that the host wrote to a mapped range before this call.
  std::uint64_t copy(const BufferRange& from, const BufferRange& to);
  // Submits the recorded copies.
  void flush();
  // The newest complete timeline value that is known.
  std::uint64_t completed();
  // Returns once `value` is complete and the host can read the mapped memory that its copies wrote.
  void wait(std::uint64_t value);
  void drain() { wait(recorded_); }

  std::uint64_t submissions() const { return submitted_; }

 private:
  struct Batch {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::uint64_t value = 0;
  };
  void open_batch();
  void barrier();
  void write_regions();
  VkCommandBuffer idle_command_buffer();
  void wait_for_submitted(std::uint64_t value);

  const Device& device_;
  std::uint64_t flush_bytes_;
  UniqueSemaphore timeline_;
  UniqueCommandPool pool_;
  std::deque<Batch> batches_;  // submitted, oldest first
  VkCommandBuffer recording_ = VK_NULL_HANDLE;

  HazardTracker hazards_;              // of the batch being recorded, since its last barrier
  BufferRange from_ = {}, to_ = {};    // the buffers of regions_
  std::vector<VkBufferCopy> regions_;  // not yet a command
  std::uint64_t batch_bytes_ = 0;
  bool host_will_read_ = false;

  std::uint64_t recorded_ = 0;   // value of the newest copy
  std::uint64_t submitted_ = 0;  // value of the newest submission
  std::uint64_t completed_ = 0;
};

}  // namespace loadline::gpu
