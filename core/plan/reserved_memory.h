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
#include <span>
#include <string>
#include <utility>
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

// --- What the heap of a process takes for a plan's host blocks that starts as most do: with glibc's malloc
// as it comes, and nothing in MALLOC_MMAP_THRESHOLD_.

// What a framework does to the heap besides.
struct HeapUse {
  // From which size requests are mapped once the framework is imported: that freed files of its own.
  std::uint64_t threshold = 128 << 10;
  // Threads that each bring one storage at a time; other blocks are the main thread's. 0: all are.
  std::uint32_t workers = 0;
  // Sizes of the parameters of a model that is built, moved to the meta device and never touched before the
  // load begins: they raise the threshold.
  std::vector<std::uint64_t> built_empty = {};
  // Whether other pieces than those of the plan take parts of the freed blocks: then figures are 6 % wider.
  bool scattered = false;
  std::uint64_t object_bytes = 0;  // of modules, parameters and wrappers, for all tensors
  bool fixed = false;              // MALLOC_MMAP_THRESHOLD_ is set: what is freed goes back

  // The files that the framework maps, privately and writable. A file is mapped while a block of its pages
  // lives, or from beginning to end.
  struct MappedFile {
    std::uint64_t bytes = 0;
    bool stays = false;
  };
  std::vector<MappedFile> files = {};
  std::vector<std::uint32_t> file_of = {};  // by storage; none of `files` for what is not mapped
};

// Bytes of memory that is resident at the peak.
struct HeapRange {
  std::uint64_t low = 0, high = 0;
  std::uint64_t fixed = 0;  // where MALLOC_MMAP_THRESHOLD_ is set: the blocks, and the objects besides
  bool operator==(const HeapRange&) const = default;
};
struct HeapFigures {
  HeapRange resident = {};
  // What the system has promised at the peak, the commit charge: the heap with its holes, files that are
  // mapped writable, touched or not, and a stack of 8 MiB for each worker.
  std::uint64_t committed = 0;
};

// With PyTorch's own requests: a host block is a tensor of 64 aligned bytes whose small objects live as long;
// those of a device tensor live longer than the host block that it was copied from, and lie in what aligning
// it cut off. So the hole that a freed tensor leaves is too small for the next of its size (glibc before
// 2.39). Up to 20,000 blocks are replayed request by request; for more the range is that between the
// requested bytes and a heap in which no hole fits again.
class HeapForecast {
 public:
  explicit HeapForecast(HeapUse use);
  // The next steps of a plan, as StepTaker::take() gives them.
  void take(std::span<const Block> blocks, std::span<const Step> steps);
  // When all have been taken. `blocks`: all of the plan.
  HeapFigures finish(std::span<const Block> blocks) const;

 private:
  // An allocation or a free of a block of the host, the device or the page cache.
  struct Event {
    BlockId block{};
    std::uint32_t thread = 0;
    bool free = false;
  };
  using Events = std::vector<Event>;
  // Which files are mapped, and the bytes of all of them.
  struct Mappings {
    std::vector<std::uint32_t> blocks = {};  // by file: of its pages, alive
    std::uint64_t bytes = 0;
  };
  Mappings mappings() const;
  void map(Mappings& mappings, const Block& block, bool free) const;
  bool counts(const Block& block) const;
  HeapFigures replay(std::span<const Block> blocks, const Events& events, std::uint64_t phase) const;
  // What one worker does at a time.
  struct Item {
    BlockId block{};      // the storage's, on the host
    Events events = {};   // its allocation, and what goes with it
    bool passes = false;  // the plan frees it before the main thread goes on
  };
  // The events that workers do, and in `rest` those of the main thread after them.
  std::vector<Item> worker_items(std::span<const Block> blocks, Events& rest) const;
  Events by_workers(std::span<const Block> blocks, double spread, std::uint32_t seed) const;
  // Bytes that the system counts for the heap once parameters were built empty.
  std::uint64_t built_bytes() const;
  std::vector<Events> earlier_fusions(std::span<const Block> blocks, const Events& events) const;

  HeapUse use_;
  Events events_;
  bool too_many_ = false, fuses_ = false;
  std::uint64_t live_ = 0, most_live_ = 0;
  // If no hole fits again: the bytes that the heap has given out so far, and those in mappings.
  std::uint64_t heap_ = 0, mapped_ = 0, most_kept_ = 0;
  std::uint64_t threshold_ = 0;
  Mappings mappings_;
  std::uint64_t most_committed_ = 0;
  std::vector<bool> is_mapped_;  // by block
};

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
