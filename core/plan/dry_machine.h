// The projecting machine: moves no bytes and keeps a modeled clock.
#pragma once

#include "core/plan/reserved_memory.h"
#include "core/plan/run.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline::plan {

// Allocations take the reader's time too. Copies from staging to the device run on a link engine in parallel
// with the reader; all other work takes the reader's time. Access to a block waits for the copies in flight
// on it, as on a real machine. A read from a file straight to the device takes the longer of disk time and
// link time: the system reads ahead while the bytes are written through the device's mapped memory at the
// link's rate, or through a small ring if that memory cannot be mapped.
class DryMachine final : public Machine {
 public:
  // `expected`: pool_forecasts() of the plan, for the simulation of `allocator`.
  explicit DryMachine(CostModel costs = {},
                      allocators::AllocatorModel allocator = allocators::AllocatorModel::exact,
                      const PerSpace<allocators::PoolForecast>& expected = {});

  void alloc(BlockId id, const Block& block) override;
  void copy(const Step& step, const Block& to) override;
  void free(BlockId id, const Block& block) override;
  double now() const override { return reader_; }
  void drain() override;
  std::optional<PerSpace<std::uint64_t>> reserved_peak() const override;
  std::optional<PerSpace<std::uint64_t>> reserved() const override;
  std::optional<std::uint64_t> allocated_peak() const override;

 private:
  // When the copies in flight on a block end; 0 for a block that never had any.
  double busy_until(BlockId id) const {
    return graph::index(id) < busy_until_.size() ? busy_until_[graph::index(id)] : 0;
  }
  void set_busy(BlockId id, double until);
  void wait_for(BlockId id);
  double rate(Space from, Space to) const;
  double pages_seconds(const Block& block);
  double cast_seconds(const Step& step) const;

  CostModel costs_;
  double reader_ = 0;          // the clock of the thread that runs the plan
  double link_ = 0;            // when the transfer engine is free again
  std::vector<Space> spaces_;  // by block
  PerSpace<std::uint64_t> live_ = {}, most_live_ = {};
  std::vector<double> busy_until_;       // by block, up to the last that was ever in flight
  std::optional<AllocatorBooks> books_;  // absent for AllocatorModel::exact
};

}  // namespace loadline::plan
