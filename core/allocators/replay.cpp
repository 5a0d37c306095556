// Replays allocations and frees in order on simulated buffers.
#include "core/allocators/replay.h"

#include "core/allocators/free_ranges.h"
#include "core/allocators/torch_cache.h"
#include "core/base/checked_arithmetic.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <vector>

namespace loadline {
namespace {

// Calls `allocate` and `release` with indices into `lives`, tick by tick.
void replay(std::span<const Allocation> lives, const std::function<void(std::size_t)>& allocate,
            const std::function<void(std::size_t)>& release) {
  std::uint32_t ticks = 0;
  for (const Allocation& life : lives) ticks = std::max(ticks, life.end);
  std::vector<std::vector<std::uint32_t>> begins(ticks + std::size_t{1}), ends(ticks + std::size_t{1});
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    if (lives[i].first >= lives[i].end || lives[i].bytes == 0) continue;
    begins[lives[i].first].push_back(i);
    ends[lives[i].end].push_back(i);
  }
  for (std::size_t tick = 0; tick < ticks; ++tick) {
    for (const std::uint32_t i : begins[tick]) allocate(i);
    for (const std::uint32_t i : ends[tick + 1]) release(i);
  }
}

std::uint64_t exact_bytes(std::span<const Allocation> lives) {
  std::uint64_t alive = 0, most = 0;
  replay(
      lives, [&](std::size_t i) { most = std::max(most, alive += lives[i].bytes); },
      [&](std::size_t i) { alive -= lives[i].bytes; });
  return most;
}

std::uint64_t best_fit_bytes(std::span<const Allocation> lives, std::uint64_t alignment, Holes::Of equals) {
  BestFit buffer(0, equals);
  std::uint64_t most = 0;
  std::vector<std::uint64_t> offsets(lives.size());
  const auto allocate = [&](std::size_t i) {
    offsets[i] = buffer.take(align_up(lives[i].bytes, alignment));
    most = std::max(most, buffer.end());
  };
  replay(lives, allocate,
         [&](std::size_t i) { buffer.give_back(offsets[i], align_up(lives[i].bytes, alignment)); });
  return most;
}

std::uint64_t pattern_bytes(std::span<const Allocation> lives) {
  constexpr std::uint64_t kAlignment = 256;
  std::vector<Allocation> planned, beside;
  for (const Allocation& life : lives) (life.planned ? planned : beside).push_back(life);
  return exact_bytes(beside) + best_fit_bytes(planned, kAlignment, Holes::Of::first);
}

std::uint64_t torch_bytes(std::span<const Allocation> lives) {
  TorchCache cache;
  std::vector<TorchCache::Block> blocks(lives.size());
  replay(
      lives, [&](std::size_t i) { blocks[i] = cache.allocate(lives[i].bytes); },
      [&](std::size_t i) { cache.release(blocks[i]); });
  return cache.reserved();
}

}  // namespace

std::uint64_t reserved_bytes(std::span<const Allocation> lives, AllocatorModel model) {
  constexpr std::uint64_t kGgmlAlignment = 32;
  switch (model) {
    case AllocatorModel::ggml:
      return best_fit_bytes(lives, kGgmlAlignment, Holes::Of::last);
    case AllocatorModel::onnxruntime:
      return pattern_bytes(lives);
    case AllocatorModel::torch:
      return torch_bytes(lives);
    default:
      assert(model == AllocatorModel::exact && "not an allocator of forward passes");
      return exact_bytes(lives);
  }
}

}  // namespace loadline
