// What allocators take from the system for what a plan asks of them.
#pragma once

#include "core/forward/torch_cache.h"
#include "core/plan/block_pool.h"
#include "core/plan/malloc_heap.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// Whose books are kept. Peaks count what is asked; this is what is taken for it.
enum class AllocatorModel : std::uint8_t {
  exact,   // what is asked
  torch,   // the device: PyTorch's caching allocator
  malloc,  // the host: glibc's malloc, which returns late
  vulkan,  // device and staging: blocks of 256 MiB, cut at multiples of 256 bytes, as the uploader does
  arena,   // every space but mappings: one range, whose offsets are planned ahead
};
struct AllocatorRow {
  std::string_view id;
  AllocatorModel model = AllocatorModel::exact;
  std::string_view summary;
};
std::span<const AllocatorRow> allocators();
// Throws Error{usage} that lists the ids.
AllocatorModel allocator_model(std::string_view id);
std::string_view allocator_id(AllocatorModel model);

// The books of one run. Spaces that the model says nothing about take what is asked; `arena` too: its offsets
// need the whole run (arena.h).
class AllocatorBooks {
 public:
  // `expected` are the padded_peaks of the plan that will run: the uploader knows them.
  AllocatorBooks(AllocatorModel model, const PerSpace<std::uint64_t>& expected);

  void alloc(BlockId id, const Block& block);
  void free(BlockId id, const Block& block);

  const PerSpace<std::uint64_t>& reserved() const { return reserved_; }
  const PerSpace<std::uint64_t>& reserved_peak() const { return peak_; }
  // The most that the allocator itself called given out on the device, where it rounds and keeps rests.
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

// Peak of the live bytes per space when every block is rounded up to `alignment`.
PerSpace<std::uint64_t> padded_peaks(const Plan& plan, std::uint64_t alignment);

}  // namespace loadline
