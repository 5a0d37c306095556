// Executes plans on a GPU: the staged upload and every other load method, for real.
#pragma once

#include "core/gpu/device.h"
#include "core/gpu/device_memory.h"
#include "core/gpu/transfer_queue.h"
#include "core/io/graph_reader.h"
#include "core/io/striped_reader.h"
#include "core/plan/host_machine.h"
#include "core/plan/run.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace loadline::gpu {

// Bytes of staging memory that a machine takes for itself while it runs the plan: its ring for copies from
// memory that the device cannot access.
std::uint64_t bounce_bytes(const Device& device, const plan::Plan& plan);
// The plan with that ring as a block of the host, from the step on that first needs it.
plan::Plan with_bounce(const Device& device, plan::Plan plan);

// The spaces (bit i = space i) whose blocks lie in the heap of the device's blocks: the device, and on a
// device with one memory for everything the staging memory too.
unsigned spaces_in_device_heap(const Device& device, const plan::Plan& plan);

struct MachineOptions {
  io::FileReads reads = {};
  // On a software device, whose memory is this process's: take the memory of a block when the block is made,
  // as a GPU does, and not page by page when it is first touched. What is measured then is what a GPU would
  // hold.
  bool take_at_once = false;
  // Where a plan copies a whole storage through a staging block of its own: the device imports the file's
  // pages, if it can, instead of copying from memory that they are read into.
  bool import_pages = false;
};

// Blocks by space:
//   device            ranges of large device allocations
//   staging           ranges of mapped memory; files are read straight into them
//   host, page_cache  blocks of a HostMachine
// Files are read by several threads, and copies from staging to the device and on the device run
// asynchronously: each copy begins when its bytes have been read. The host waits before it touches bytes that
// are being read or copied. Copies from memory that the device cannot access go through a small ring of the
// machine's own. Weights are packed by a shader that reads them from staging memory or from that ring, or by
// the host where the device memory is mapped. The ring is no block of the plan; it counts in reserved_peak().
// A plan that reads files straight to the device does not use the ring if all device memory can be mapped.
class VulkanMachine final : public plan::Machine {
 public:
  // `plan` is the plan that will run; it must have passed check_plan. Throws Error{no_fit}, before any of
  // its memory is allocated, if its peaks exceed the memory that the device or the system has available now.
  // Device and reader must outlive the machine.
  VulkanMachine(const Device& device, const io::StorageReader& reader, const plan::Plan& plan,
                const MachineOptions& options = {});

  void alloc(plan::BlockId id, const plan::Block& block) override;
  void copy(const plan::Step& step, const plan::Block& to) override;
  void free(plan::BlockId id, const plan::Block& block) override;
  double now() const override { return host_.now(); }
  void drain() override;
  std::optional<plan::PerSpace<std::uint64_t>> live_bytes() const override;
  std::optional<plan::PerSpace<std::uint64_t>> reserved_peak() const override { return reserved_peak_; }
  std::optional<plan::ProcessMemory> sample() const override { return host_.sample(); }

  // Calls `take` with consecutive chunks of a live device block, or of a part of it. Offsets count from the
  // start of the part.
  void read_back(plan::BlockId id, const Readback::Consume& take);
  void read_back(plan::BlockId id, std::uint64_t offset, std::uint64_t bytes, const Readback::Consume& take);
  // The peak growth of this process's memory by the driver's count; nothing without VK_EXT_memory_budget.
  std::optional<std::uint64_t> device_budget_peak() const { return budget_peak_; }
  // The growth now. Asks the driver; may be called from any thread.
  std::optional<std::uint64_t> device_budget_growth() const;
  // Bytes of files that the device has read in place.
  std::uint64_t imported_bytes() const { return imported_bytes_; }
  std::uint64_t submissions() const { return transfers_.submissions(); }

 private:
  struct BlockState {
    plan::Space space = plan::Space::host;
    std::uint64_t bytes = 0;
    std::optional<graph::StorageId> storage;  // mapped by a page_cache block
    Allocation memory;                        // of a device or staging block
    PendingUses uses;                         // of a staging block
    bool imports = false;                     // a staging block of file pages, which may yet be refused
    std::uint64_t last_use = 0;               // timeline value at which the device's newest use is complete
    PendingUses fills;  // of mapped memory: by the threads that read files; values are tickets
  };
  VulkanMachine(const Device& device, const io::StorageReader& reader, std::size_t blocks,
                MemoryUse device_memory, const plan::PerSpace<allocators::PoolForecast>& expected,
                std::vector<bool> importable, const MachineOptions& options);

  BlockState& state(plan::BlockId id) { return blocks_[graph::index(id)]; }
  // The pool of this space's blocks; null for a space of the host machine.
  MemoryPool* pool_of(plan::Space space);

  // The block's file pages become device memory; false if the device refuses them. Then the block is like any
  // other.
  bool import_pages(plan::BlockId id, BlockState& to);
  // Both blocks are memory that the device can access. The copy is recorded, not waited for.
  void copy_on_device(const plan::Step& step, BlockState& from, BlockState& to);
  // From memory that only the host can access: through the bounce ring, or written in place if the device
  // memory is mapped.
  void copy_to_device(const plan::Step& step, BlockState& to);
  // Into a packed block.
  void pack(const plan::Step& step, const convert::Prepack& how, BlockState& to);
  // The stored bytes lie in `from`; the first is byte `at` of the weight.
  std::uint64_t pack_from(const convert::Prepack& how, std::uint64_t at, const BufferRange& from,
                          const BlockState& to, io::StripedReader::Ticket needs = 0);
  // Into host memory from anywhere, or into staging memory from memory that the device cannot access.
  void copy_to_host(const plan::Step& step, BlockState& to);
  // Reads bytes of a file or a block, once the device is done with these bytes.
  void fetch(const plan::CopySource& from, std::uint64_t offset, std::span<std::byte> out);
  // Begins to read a file's bytes into mapped memory of a block, which the device does not use any more.
  void read_into(const plan::Step& step, BlockState& to, std::span<std::byte> out);
  void wait_for_fills(BlockState& block, io::StripedReader::Ticket ticket);
  // A part of a host or staging block as host memory.
  std::span<std::byte> host_bytes(plan::BlockId id, std::uint64_t offset, std::uint64_t bytes);
  void wait_for(BlockState& block, std::uint64_t value);
  void note_reserved();

  const Device& device_;
  const io::StorageReader& reader_;
  plan::HostMachine host_;                      // also the clock and the process counters
  MemoryPool device_memory_, staging_memory_;   // for the plan's blocks
  MemoryPool bounce_memory_, readback_memory_;  // for the machine's own rings
  std::map<plan::BlockId, std::unique_ptr<ImportedPages>> imported_;
  bool past_cache_;                      // files may have to be read past the page cache: only reads_ can
  io::StripedReader reads_;              // destroyed, and so ended, before the memory they fill
  std::optional<PrepackShader> shader_;  // of a device that was opened for shaders; outlives its commands
  TransferQueue transfers_;              // likewise, and before the reads that it waits for
  UploadBounce upload_bounce_;
  Readback readback_;
  std::vector<BlockState> blocks_;
  std::vector<bool> importable_;  // by block; empty: none
  std::uint64_t imported_bytes_ = 0;

  plan::PerSpace<std::uint64_t> live_ = {};      // device and staging: bytes of the ranges in use
  plan::PerSpace<std::uint64_t> reserved_ = {};  // host and page_cache: whole pages
  plan::PerSpace<std::uint64_t> reserved_peak_ = {};
  std::uint32_t device_heap_ = 0;
  std::uint64_t budget_start_ = 0;
  std::optional<std::uint64_t> budget_peak_;
};

}  // namespace loadline::gpu
