// What an allocator takes from the system for a plan, block by block or as one packed arena.
#pragma once

#include "core/allocators/allocator_models.h"
#include "core/allocators/allocator_rules.h"
#include "core/allocators/block_pool.h"
#include "core/base/progress.h"
#include "core/packing/problem.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline::plan {

// --- The bytes that an allocator reserves from the system for a plan's allocations.

// The reserved bytes of one run, by space. A space that the model does not cover reserves what is requested.
// So does the model `arena`: its offsets need the whole run (arena.h).
class AllocatorBooks {
 public:
  // `expected`: pool_forecasts() of the plan that will run; the uploader knows them too.
  AllocatorBooks(allocators::AllocatorModel model, const PerSpace<allocators::PoolForecast>& expected);

  void alloc(BlockId id, const Block& block);
  void free(BlockId id, const Block& block);

  const PerSpace<std::uint64_t>& reserved() const { return reserved_; }
  const PerSpace<std::uint64_t>& reserved_peak() const { return peak_; }
  // Peak of the device bytes that the allocator counts as given out, rounding included; only for allocators
  // that round.
  std::optional<std::uint64_t> allocated_peak() const;

 private:
  struct State {
    allocators::TorchCache::Block torch = {};
    allocators::MallocHeap::Chunk chunk = {};
    allocators::BlockPool::Range range = {};
  };
  void note(Space space, std::uint64_t reserved);

  allocators::AllocatorModel model_;
  allocators::TorchCache torch_;
  std::uint64_t torch_peak_ = 0;
  allocators::MallocHeap heap_;
  allocators::BlockPool device_pool_, staging_pool_;
  std::vector<State> blocks_;
  PerSpace<std::uint64_t> reserved_ = {}, peak_ = {};
};

// Per space: the peak of the live bytes and the allocations, when every block is rounded up to `alignment`.
// Blocks without bytes are left out. Blocks of a pool end with a request unless it would reserve more so: in
// a load that frees, other requests would use the gaps again.
PerSpace<allocators::PoolForecast> pool_forecasts(const Plan& plan, std::uint64_t alignment);

// The most that glibc's malloc keeps of a plan's host blocks if no freed one is used again: small objects of
// the process split the holes, so that the next block does not fit. Blocks of 32 MiB and more have mappings
// of their own, which are returned. The other mode, with every hole as good as new, is the model `malloc`.
std::uint64_t unreused_heap_peak(const Plan& plan);

// --- Turns the blocks of one memory space of a run into an arena packing problem.

struct SpaceProblem {
  packing::Problem problem = {};     // time in steps of the plan; buffers have no ids
  std::vector<BlockId> blocks = {};  // by buffer
};

// Every block of `space` that the run allocates with at least one byte, in plan order. Sizes are rounded up
// to multiples of `alignment`, as offsets are, so that any two blocks can be neighbors. Blocks that outlive
// the plan live until one tick after its last step.
SpaceProblem space_problem(const Plan& plan, const Timeline& timeline, Space space,
                           std::uint64_t alignment = 256);

// --- Places the blocks of one memory space of a run at fixed offsets in one range.

struct Arena {
  std::uint64_t height = 0;            // bytes of the range
  std::uint64_t lower_bound = 0;       // at least the most bytes alive at once; no placement is lower
  std::vector<std::uint64_t> offsets;  // by block; 0 for blocks of other spaces or never allocated
};

// Offsets for the blocks of `space`, at multiples of `alignment`; blocks alive together do not overlap. Packs
// space_problem() without a time limit, so that the same run gives the same arena on every machine. Throws
// Error{limit} for sizes over 2^62 bytes, Error{canceled}.
Arena plan_arena(const Plan& plan, const Timeline& timeline, Space space, Progress& progress,
                 std::uint64_t alignment = 256);

// --- Reads packing problems from the user's files; here because core/packing opens no files.

// As read_packing_csv(); the problem has passed check_problem(). Also throws Error{io}, and Error{limit} for
// a file over 1 GiB.
packing::Problem read_packing_file(const std::string& path);

}  // namespace loadline::plan
