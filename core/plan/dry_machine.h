// The projection: a machine that moves nothing and keeps a modelled clock.
#pragma once

#include "core/forward/torch_cache.h"
#include "core/plan/run.h"

#include <cstdint>
#include <string_view>
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

// How the device's allocator keeps books. Peaks count what is asked; this is what is taken for it.
enum class AllocatorModel : std::uint8_t {
  exact,  // what is asked
  torch,  // PyTorch's caching allocator
};
// "exact", "torch". Throws Error{usage} that lists them.
AllocatorModel allocator_model(std::string_view name);

// Copies from staging to the device run on a link engine beside the reader, everything else takes
// the reader's time; touching a block waits for what is in flight on it, as on a real machine.
class DryMachine final : public Machine {
 public:
  explicit DryMachine(CostModel costs = {}, AllocatorModel allocator = AllocatorModel::exact)
      : costs_(costs), allocator_(allocator) {}

  void alloc(BlockId id, const Block& block) override;
  void copy(const Step& step, const Block& to) override;
  void free(BlockId id, const Block& block) override;
  double now() const override { return reader_; }
  void drain() override;
  std::optional<PerSpace<std::uint64_t>> reserved_peak() const override;
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
  AllocatorModel allocator_;
  std::vector<TorchCache::Block> torch_blocks_;  // parallel to blocks_ with the torch model, else empty
  TorchCache torch_;
  std::uint64_t torch_peak_ = 0;
  PerSpace<std::uint64_t> live_ = {}, peak_ = {};  // of the other spaces, with the torch model
};

}  // namespace loadline
