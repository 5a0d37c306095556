// The one interpreter of plans, the interface of the machines that execute them, and their rates.
#pragma once

#include "core/base/progress.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace loadline::plan {

// Executes single steps. Copies may run asynchronously: alloc, copy and free of a block wait for the copies
// in flight on it; drain() waits for all. After an exception the machine may only be destroyed: the
// destructor waits for copies in flight and frees all memory.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  virtual void alloc(BlockId id, const Block& block) = 0;
  // `to` is the destination block of the copy.
  virtual void copy(const Step& step, const Block& to) = 0;
  virtual void free(BlockId id, const Block& block) = 0;
  // Seconds since the machine was made, on its own clock (modeled or real).
  virtual double now() const = 0;
  virtual void drain() = 0;

  // Whether a machine provides each of the following figures does not change while it runs.

  // Bytes of the blocks that the machine holds now, from its own records: allocated minus freed. Absent on a
  // machine that holds no memory.
  virtual std::optional<PerSpace<std::uint64_t>> live_bytes() const { return std::nullopt; }
  // Peak bytes that the allocator reserved per space; absent if they always equal the requested bytes.
  virtual std::optional<PerSpace<std::uint64_t>> reserved_peak() const { return std::nullopt; }
  // Bytes that the allocator holds now per space, in use or not; absent if the machine cannot tell at any
  // time.
  virtual std::optional<PerSpace<std::uint64_t>> reserved() const { return std::nullopt; }
  // Peak of the bytes that the device's allocator counts as given out; absent if they always equal the
  // requested bytes. An allocator may round sizes up and leave the remainder with the block.
  virtual std::optional<std::uint64_t> allocated_peak() const { return std::nullopt; }
  // The kernel's memory counters of this process, relative to the machine's start; absent if they mean
  // nothing for this machine.
  virtual std::optional<ProcessMemory> sample() const { return std::nullopt; }
};

// Runs every step in order and drains. Progress counts the bytes of copies (total included). Throws
// Error{canceled} between steps, and whatever the machine throws. The plan must have passed check_plan.
// Usage counts requested bytes: from the machine's live_bytes() if it has them (measurement), else from the
// plan (projection). The timeline takes over the memory of `used`, whose contents are dropped.
Timeline run(const Plan& plan, Machine& machine, Progress& progress, Timeline used = {});
Timeline run(const Plan& plan, Machine& machine);

class DryMachine;  // dry_machine.h

// --- Projects a plan while it is made: no memory holds its steps, nor its usage.

// Checks the steps, runs them on the machine and counts their reads. `name` begins messages. The timeline
// says which step first exceeds one of `limits`. `used` as for run().
class StreamedRun final : public StepTaker {
 public:
  StreamedRun(std::string_view name, const graph::MetaGraph& graph, DryMachine& machine,
              const SumLimits& limits, Progress& progress, Timeline used = {});
  ~StreamedRun() override;
  // Throws Error{limit} with the first violation of the rules, Error{canceled}.
  void take(std::span<const Block> blocks, std::span<const Step> steps, std::size_t first) override;
  // When all steps have been taken.
  Timeline finish();
  const ReadPattern& reads() const { return reads_.pattern(); }

 private:
  class Impl;
  const std::string_view name_;
  PlanChecker checker_;
  ReadCounter reads_;
  std::unique_ptr<Impl> run_;
};

// --- A machine that counts the steps it has done, for a thread that watches the run.

// Hands every step to `machine`, which must outlive it. Takes no samples of its own accord: the watching
// thread does.
class StepCounter final : public Machine {
 public:
  explicit StepCounter(Machine& machine) : machine_(machine) {}
  // Calls `look` before a large block is freed: the peak that the free ends may be newer than the watching
  // thread's last sample. Called from the thread that runs the steps.
  void look_before_release(std::function<void()> look) { look_ = std::move(look); }

  void alloc(BlockId id, const Block& block) override {
    machine_.alloc(id, block);
    ++done_;
  }
  void copy(const Step& step, const Block& to) override {
    machine_.copy(step, to);
    ++done_;
  }
  void free(BlockId id, const Block& block) override {
    constexpr std::uint64_t worth = std::uint64_t{1} << 20;  // freeing it takes longer than a sample
    if (block.bytes >= worth && look_) look_();
    machine_.free(id, block);
    ++done_;
  }
  double now() const override { return machine_.now(); }
  void drain() override { machine_.drain(); }
  std::optional<PerSpace<std::uint64_t>> live_bytes() const override { return machine_.live_bytes(); }
  std::optional<PerSpace<std::uint64_t>> reserved_peak() const override { return machine_.reserved_peak(); }
  std::optional<PerSpace<std::uint64_t>> reserved() const override { return machine_.reserved(); }
  std::optional<std::uint64_t> allocated_peak() const override { return machine_.allocated_peak(); }

  // The step that is running; the number of steps if all are done. May be called from any thread.
  std::size_t step() const { return done_; }

 private:
  Machine& machine_;
  std::function<void()> look_;
  std::atomic<std::size_t> done_ = 0;
};

// --- The rates of a machine, by which a projection keeps its clock.

// Bytes per second, except the seek. The defaults are round figures for a desktop with an NVMe disk and a
// PCIe 4 card. They decide which methods look faster and how curves are spaced in time. Peaks do not depend
// on them.
struct CostModel {
  double disk_read = 3.0e9;
  double memory_copy = 8.0e9;
  double link = 20.0e9;          // staging to device, asynchronous
  double pageable_link = 6.0e9;  // host memory to device and back, synchronous
  double device_copy = 200.0e9;
  double seek_seconds = 80e-6;  // before a jump (plan.h): random read of an NVMe disk
  double disk_write = 1.5e9;    // until the bytes are durable: for conversions, no load writes
  // Memory that the system gives: its pages are found and cleared, or pinned. The defaults count nothing.
  double host_pages = kUncounted;     // ordinary memory: each block of weights is given, and taken back
  double staging_pages = kUncounted;  // that the device reads, and
  double device_pages =
      kUncounted;  // of the device: kept for the next block, so only what exceeds the most so far

  static constexpr double kUncounted = std::numeric_limits<double>::infinity();
};

// The same rates where the page cache holds `share` of the bytes of the files, 0 to 1: those come at the rate
// of a copy in memory and need no seeks. `imported`: they are not copied at all, as for
// with_imported_pages().
CostModel with_cached_files(CostModel costs, double share, bool imported = false);
// The same rates where the device reads file pages in place: staging memory is those pages, and needs no
// others.
CostModel with_imported_pages(CostModel costs);

}  // namespace loadline::plan
