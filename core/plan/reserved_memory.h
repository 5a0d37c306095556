// The bytes that an allocator reserves from the system for a plan's allocations.
#pragma once

#include "core/allocators/allocator.h"
#include "core/allocators/allocator_models.h"
#include "core/allocators/block_pool.h"
#include "core/allocators/torch_cache.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

// The reserved bytes of one run, by space. A space that the model does not cover reserves what is requested.
// So does the model `arena`: its offsets need the whole run (arena.h).
class AllocatorBooks {
 public:
  // `expected`: pool_forecasts() of the plan that will run; the uploader knows them too.
  AllocatorBooks(AllocatorModel model, const PerSpace<PoolForecast>& expected);

  void alloc(BlockId id, const Block& block);
  void free(BlockId id, const Block& block);

  const PerSpace<std::uint64_t>& reserved() const { return reserved_; }
  const PerSpace<std::uint64_t>& reserved_peak() const { return peak_; }
  // Peak of the device bytes that the allocator counts as given out, rounding included; only for allocators
  // that round.
  std::optional<std::uint64_t> allocated_peak() const;

 private:
  struct State {
    TorchCache::Block torch = {};
    MallocHeap::Chunk chunk = {};
    BlockPool::Range range = {};
  };
  void note(Space space, std::uint64_t reserved);

  AllocatorModel model_;
  TorchCache torch_;
  std::uint64_t torch_peak_ = 0;
  MallocHeap heap_;
  BlockPool device_pool_, staging_pool_;
  std::vector<State> blocks_;
  PerSpace<std::uint64_t> reserved_ = {}, peak_ = {};
};

// Per space: the peak of the live bytes and the allocations, when every block is rounded up to `alignment`.
// Blocks without bytes are left out. Blocks of a pool end with a request unless it would reserve more so: in
// a load that frees, other requests would use the gaps again.
PerSpace<PoolForecast> pool_forecasts(const Plan& plan, std::uint64_t alignment);

// The most that glibc's malloc keeps of a plan's host blocks if no freed one is used again: small objects of
// the process split the holes, so that the next block does not fit. Blocks of 32 MiB and more have mappings
// of their own, which are returned. The other mode, with every hole as good as new, is the model `malloc`.
std::uint64_t unreused_heap_peak(const Plan& plan);

}  // namespace loadline
