// The projecting machine: moves no bytes and keeps a modeled clock.
#pragma once

#include "core/plan/reserved_memory.h"
#include "core/plan/run.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace loadline::plan {

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
