// What is recorded for the device: copies in batches with barriers only where they are needed, and the shader
// that packs weights.
#pragma once

#include "core/convert/numbers/prepack.h"
#include "core/gpu/device.h"
#include "core/io/striped_reader.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

namespace loadline::gpu {

// --- Finds recorded copies that touch the same bytes, so that barriers stand only where they are needed.
// Contains no Vulkan.

// A set of bytes, stored as disjoint ranges; ranges that touch are merged.
class RangeSet {
 public:
  void insert(std::uint64_t begin, std::uint64_t end);
  bool overlaps(std::uint64_t begin, std::uint64_t end) const;
  void clear() { ranges_.clear(); }
  std::size_t size() const { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end
};

// The copies recorded since the last barrier. Any number may identify a buffer.
class HazardTracker {
 public:
  struct Range {
    std::uint64_t buffer = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // Whether the copy reads bytes that an added copy writes, or writes bytes that one reads or writes.
  bool conflicts(const Range& from, const Range& to) const;
  void add(const Range& from, const Range& to);
  void clear();

 private:
  std::map<std::uint64_t, RangeSet> reads_, writes_;
};

// Pending device accesses to one mapped block. The host asks it before touching the block.
class PendingUses {
 public:
  // The device's access is complete at timeline value `value`. Values never decrease.
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t value, bool writes);
  // The timeline value to wait for before the host reads or writes [begin, end); 0: none.
  std::uint64_t before_read(std::uint64_t begin, std::uint64_t end) const;
  std::uint64_t before_write(std::uint64_t begin, std::uint64_t end) const;
  // Forgets all accesses up to `value`, which are complete.
  void complete(std::uint64_t value);
  bool empty() const { return batches_.empty(); }

 private:
  struct Batch {
    std::uint64_t value = 0;
    RangeSet reads, writes;
  };
  std::vector<Batch> batches_;  // by increasing value; few, and an empty vector takes no memory
};

// --- Records buffer copies in batches and submits them behind one timeline semaphore, as soon as what they
// copy has been read.

struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool mapped = false;          // the host can see it
  VkDeviceAddress address = 0;  // of its first byte, for shaders; 0 without them

  BufferRange part(std::uint64_t at, std::uint64_t count) const {
    return {buffer, offset + at, count, mapped, address == 0 ? 0 : address + at};
  }
};

// Copies take effect in the order in which they are recorded. Used from one thread; a thread of its own
// submits the batches that wait for reads, so that recording goes on meanwhile. Device and reads must outlive
// the queue. The destructor waits for copies in flight. After an Error only destruction is allowed.
class TransferQueue {
 public:
  // A batch is closed automatically once it holds `flush_bytes`. `reads` may be null: then no copy needs any.
  TransferQueue(const Device& device, std::uint64_t flush_bytes, const io::StripedReader* reads = nullptr);
  TransferQueue(const TransferQueue&) = delete;
  TransferQueue& operator=(const TransferQueue&) = delete;
  ~TransferQueue();

  // Records a copy of from.bytes == to.bytes > 0 bytes between ranges that do not overlap. Returns the
  // timeline value for wait(). The copy sees bytes that the host wrote to a mapped range before this call,
  // and those of all reads up to `needs`.
  std::uint64_t copy(const BufferRange& from, const BufferRange& to, io::StripedReader::Ticket needs = 0);
  // Records a command of another kind that reads `from` and writes `to`, in order with the copies. The device
  // must have been opened for shaders. Waits and values are those of copy().
  using Record = std::function<void(VkCommandBuffer)>;
  std::uint64_t run(const BufferRange& from, const BufferRange& to, const Record& record,
                    io::StripedReader::Ticket needs = 0);
  // Closes the batch of the recorded copies: it is submitted once its reads are complete. Throws what a read
  // or an earlier submission has thrown.
  void flush();
  // The newest complete timeline value that is known.
  std::uint64_t completed();
  // Returns once `value` is complete and the host can read the mapped memory that its copies wrote.
  void wait(std::uint64_t value);
  void drain() { wait(recorded_); }

  // Batches that were closed.
  std::uint64_t submissions() const { return closed_; }

 private:
  struct Batch {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::uint64_t value = 0;
    io::StripedReader::Ticket needs = 0;  // the reads that come before it
  };
  // Before and after a command is recorded.
  void order(const BufferRange& from, const BufferRange& to);
  std::uint64_t note(const BufferRange& from, io::StripedReader::Ticket needs);
  void open_batch();
  void barrier();
  void memory_barrier(VkPipelineStageFlags to_stage, VkAccessFlags to_access);
  void barrier_before_work();
  void write_regions();
  VkCommandBuffer idle_command_buffer();
  void wait_for_closed(std::uint64_t value);
  void submit(const Batch& batch);
  void submit_when_read(const std::stop_token& stop);

  // What the recorded commands do to memory.
  struct Work {
    VkPipelineStageFlags stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkAccessFlags reads = VK_ACCESS_TRANSFER_READ_BIT;
    VkAccessFlags writes = VK_ACCESS_TRANSFER_WRITE_BIT;
  };

  const Device& device_;
  Work work_;
  std::uint64_t flush_bytes_;
  UniqueSemaphore timeline_;
  UniqueCommandPool pool_;
  std::deque<Batch> batches_;  // closed, oldest first
  VkCommandBuffer recording_ = VK_NULL_HANDLE;

  HazardTracker hazards_;              // of the batch being recorded, since its last barrier
  BufferRange from_ = {}, to_ = {};    // the buffers of regions_
  std::vector<VkBufferCopy> regions_;  // not yet a command
  std::uint64_t batch_bytes_ = 0;
  bool host_will_read_ = false;

  io::StripedReader::Ticket needs_ = 0;  // of the batch being recorded

  std::uint64_t recorded_ = 0;  // value of the newest copy
  std::uint64_t closed_ = 0;    // value of the newest closed batch
  std::uint64_t completed_ = 0;

  // Shared with the submitting thread. The Vulkan queue is used with the mutex held.
  const io::StripedReader* reads_;
  std::mutex mutex_;
  std::condition_variable_any waiting_, changed_;
  std::deque<Batch> unsubmitted_;  // the first stays until it has been submitted
  std::uint64_t submitted_ = 0;    // value of the newest submission
  std::exception_ptr failure_;
  std::jthread submitter_;  // joined first
};

// --- The compute shader that packs weights on the device (shaders/prepack.comp).

// Whole blocks of elements of one weight, beginning with element `first`. `source` is a multiple of 4.
struct PrepackPiece {
  convert::Prepack how;
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;  // as stored
  VkDeviceAddress source = 0;
  VkDeviceAddress target = 0;  // of the whole packed weight
};

// Makes each pipeline when it is first needed. The device must have been opened for shaders, and must outlive
// it. It must outlive the commands that it recorded.
class PrepackShader {
 public:
  explicit PrepackShader(const Device& device);

  // Throws Error{gpu} if the device refuses the pipeline.
  void record(VkCommandBuffer commands, const PrepackPiece& piece);

 private:
  VkPipeline pipeline_for(const convert::Prepack& how);

  const Device& device_;
  UniqueShaderModule module_;
  UniquePipelineLayout layout_;
  std::map<std::tuple<graph::DType, graph::DType, convert::PrepackLayout>, UniquePipeline> pipelines_;
};

}  // namespace loadline::gpu
