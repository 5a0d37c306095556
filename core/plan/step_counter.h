// A machine that counts the steps it has done, for a thread that watches the run.
#pragma once

#include "core/plan/run.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

namespace loadline {

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

}  // namespace loadline
