// The one interpreter of plans, and the interface of what executes them.
#pragma once

#include "core/base/progress.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

namespace loadline {

// Executes single steps. Copies may run asynchronously: alloc, copy and free of a block wait for what
// is in flight on it; drain() waits for everything. After an exception only destruction is allowed:
// the destructor waits for what is in flight and gives all memory back.
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
  // Seconds since the machine was made, on its own clock (modelled or real).
  virtual double now() const = 0;
  virtual void drain() = 0;

  // What a machine has of the following does not change while it runs.

  // Bytes of the blocks that the machine holds now, from its own books: what it mapped or was given,
  // less what it gave back. Nothing on a machine that holds nothing.
  virtual std::optional<PerSpace<std::uint64_t>> live_bytes() const { return std::nullopt; }
  // Peak of what the allocator took per space, if that can differ from what was asked.
  virtual std::optional<PerSpace<std::uint64_t>> reserved_peak() const { return std::nullopt; }
  // What the allocator holds now per space, given out or not, where the machine can tell that at any time.
  virtual std::optional<PerSpace<std::uint64_t>> reserved() const { return std::nullopt; }
  // The most that the device's allocator counted as given out, if that can differ from what was asked: it
  // rounds, and keeps rests with their block.
  virtual std::optional<std::uint64_t> allocated_peak() const { return std::nullopt; }
  // The system's own count of this process, as differences to the machine's start, where it means
  // something.
  virtual std::optional<ProcessMemory> sample() const { return std::nullopt; }
};

// Runs every step in order and drains. Progress counts the bytes of copies (total included).
// Throws Error{cancelled} between steps, and whatever the machine throws. The plan must have passed
// check_plan. Usage counts requested bytes: by the plan on a machine without books of its own (the
// projection), else by the machine's live_bytes() (the ledger).
Timeline run(const Plan& plan, Machine& machine, Progress& progress);
Timeline run(const Plan& plan, Machine& machine);

}  // namespace loadline
