// The projection: a machine that moves nothing and keeps a modelled clock.
#pragma once

#include "core/plan/allocator_books.h"
#include "core/plan/run.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// Bytes per second, but for the seek. The defaults are round figures of a desktop with an NVMe disk and a
// PCIe 4 card; they order methods and pace the curves. Peaks do not depend on them.
struct CostModel {
  double disk_read = 3.0e9;
  double memory_copy = 8.0e9;
  double link = 20.0e9;          // staging to device, asynchronous
  double pageable_link = 6.0e9;  // host memory to device and back, synchronous
  double device_copy = 200.0e9;
  double seek_seconds = 80e-6;  // before a read elsewhere (read_pattern.h): an NVMe disk's random read
};

// Copies from staging to the device run on a link engine beside the reader, everything else takes
// the reader's time; touching a block waits for what is in flight on it, as on a real machine. What is read
// from a file straight to the device takes the longer of the disk's and the link's time: the system reads
// ahead while the bytes are written through the device's mapped memory, at the rate of the link, or through a
// small ring where that memory cannot be mapped.
class DryMachine final : public Machine {
 public:
  // Keeps the books of `allocator` for a plan with these padded_peaks.
  explicit DryMachine(CostModel costs = {}, AllocatorModel allocator = AllocatorModel::exact,
                      const PerSpace<std::uint64_t>& expected = {});

  void alloc(BlockId id, const Block& block) override;
  void copy(const Step& step, const Block& to) override;
  void free(BlockId id, const Block& block) override;
  double now() const override { return reader_; }
  void drain() override;
  std::optional<PerSpace<std::uint64_t>> reserved_peak() const override;
  std::optional<PerSpace<std::uint64_t>> reserved() const override;
  std::optional<std::uint64_t> allocated_peak() const override;

 private:
  struct BlockState {
    Space space = Space::host;
    double busy_until = 0;
  };
  void wait_for(BlockId id);
  double rate(Space from, Space to) const;
  double cast_seconds(const Step& step) const;

  CostModel costs_;
  double reader_ = 0;  // the clock of the thread that runs the plan
  double link_ = 0;    // when the transfer engine is free again
  std::vector<BlockState> blocks_;
  std::optional<AllocatorBooks> books_;  // none for exact
};

}  // namespace loadline
