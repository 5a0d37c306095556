// Executes plans on a GPU: the staged upload and every other load method, for real.
#pragma once

#include "core/gpu/bounce.h"
#include "core/gpu/device.h"
#include "core/gpu/device_memory.h"
#include "core/gpu/hazards.h"
#include "core/gpu/transfer_queue.h"
#include "core/io/storage_reader.h"
#include "core/plan/host_machine.h"
#include "core/plan/run.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline::gpu {

// device blocks are ranges of large device allocations, staging blocks ranges of mapped memory that
// files are read straight into, host and page_cache blocks those of a HostMachine. Copies from staging
// to the device and on the device run asynchronously; the host waits where it touches bytes that are
// in flight. What the device cannot see goes through a small ring of the machine's own, which is no
// block of the plan and shows in reserved_peak(); of a plan that reads files straight to the device nothing
// does where all of the device's memory can be mapped.
class VulkanMachine final : public Machine {
 public:
  // `plan` is the one that will run; it must have passed check_plan. Throws Error{no_fit}, before any
  // memory is taken, when its peaks exceed what the device or the system has available now. Device and
  // reader must outlive the machine.
  VulkanMachine(const Device& device, const StorageReader& reader, const Plan& plan);

  void alloc(BlockId id, const Block& block) override;
  void copy(const Step& step, const Block& to) override;
  void free(BlockId id, const Block& block) override;
  double now() const override { return host_.now(); }
  void drain() override { transfers_.drain(); }
  std::optional<PerSpace<std::uint64_t>> live_bytes() const override;
  std::optional<PerSpace<std::uint64_t>> reserved_peak() const override { return reserved_peak_; }
  std::optional<ProcessMemory> sample() const override { return host_.sample(); }

  // Calls `take` with consecutive chunks of a device block that is alive, or of a part of it; offsets count
  // from the part's start.
  void read_back(BlockId id, const Readback::Take& take);
  void read_back(BlockId id, std::uint64_t offset, std::uint64_t bytes, const Readback::Take& take);
  // How far the driver's count of this process rose; nothing without VK_EXT_memory_budget.
  std::optional<std::uint64_t> device_budget_peak() const { return budget_peak_; }
  std::uint64_t submissions() const { return transfers_.submissions(); }

 private:
  struct BlockState {
    Space space = Space::host;
    std::uint64_t bytes = 0;
    std::optional<StorageId> storage;  // that a page_cache block maps
    Allocation memory;                 // of a device or staging block
    PendingUses uses;                  // of a staging block
    std::uint64_t last_use = 0;        // value that ends the newest use by the device
  };
  VulkanMachine(const Device& device, const StorageReader& reader, std::size_t blocks,
                MemoryUse device_memory, const PerSpace<std::uint64_t>& peaks);

  BlockState& state(BlockId id) { return blocks_[index(id)]; }
  // Where blocks of this space lie; null for those of the host machine.
  MemoryPool* pool_of(Space space);

  // Both ends are memory that the device sees: recorded, not waited for.
  void copy_on_device(const Step& step, BlockState& from, BlockState& to);
  // From memory that only the host sees: through the bounce ring, or written in place where the device's
  // memory is mapped.
  void copy_to_device(const Step& step, BlockState& to);
  // Into host memory from anywhere, into staging from what the device does not see.
  void copy_to_host(const Step& step, BlockState& to);
  // Bytes of a file or a block, once the device is done with them.
  void fetch(const CopySource& from, std::uint64_t offset, std::span<std::byte> out);
  // A part of a host or staging block as the host sees it.
  std::span<std::byte> host_bytes(BlockId id, std::uint64_t offset, std::uint64_t bytes);
  void wait_for(BlockState& block, std::uint64_t value);
  void note_reserved();

  const Device& device_;
  const StorageReader& reader_;
  HostMachine host_;                            // also the clock and the process counters
  MemoryPool device_memory_, staging_memory_;   // of the plan's blocks
  MemoryPool bounce_memory_, readback_memory_;  // of the machine's own rings
  TransferQueue transfers_;                     // destroyed, and so drained, before the memory it uses
  UploadBounce upload_bounce_;
  Readback readback_;
  std::vector<BlockState> blocks_;

  PerSpace<std::uint64_t> live_ = {};      // device and staging: ranges that were handed out
  PerSpace<std::uint64_t> reserved_ = {};  // host and page_cache: whole pages
  PerSpace<std::uint64_t> reserved_peak_ = {};
  std::uint32_t device_heap_ = 0;
  std::uint64_t budget_start_ = 0;
  std::optional<std::uint64_t> budget_peak_;
};

}  // namespace loadline::gpu
