// Replays allocations in order on the holes that they leave.
#include "core/forward/memory_model.h"

#include "core/base/checked.h"
#include "core/base/holes.h"
#include "core/forward/torch_cache.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace loadline {
namespace {

// Calls `allocate` and `release` with positions of values, in the order in which operators ask.
void replay(const ForwardGraph& graph, std::span<const OpRange> lives,
            std::span<const std::optional<std::uint64_t>> sizes,
            const std::function<void(std::size_t)>& allocate,
            const std::function<void(std::size_t)>& release) {
  std::vector<std::vector<std::uint32_t>> begins(graph.ops.size() + 1), ends(graph.ops.size() + 1);
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    if (lives[i].empty() || sizes[i].value_or(0) == 0) continue;
    begins[lives[i].first].push_back(i);
    ends[lives[i].end].push_back(i);
  }
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    for (const std::uint32_t value : begins[op]) allocate(value);
    for (const std::uint32_t value : ends[op + 1]) release(value);
  }
}

// One buffer without an end: its holes, and where nothing has been used yet.
class BestFit {
 public:
  std::uint64_t allocate(std::uint64_t bytes) {
    if (const auto hole = holes_.take(bytes)) {
      const std::uint64_t offset = hole->place.offset;
      if (hole->bytes > bytes) holes_.add({{0, offset + bytes}, hole->bytes - bytes});
      return offset;
    }
    const std::uint64_t offset = end_;
    end_ += bytes;
    extent_ = std::max(extent_, end_);
    return offset;
  }

  void release(std::uint64_t offset, std::uint64_t bytes) {
    const Hole hole = holes_.add({{0, offset}, bytes});
    if (hole.end() != end_) return;
    holes_.remove(hole.place);  // what was never used lies behind
    end_ = hole.place.offset;
  }

  std::uint64_t extent() const { return extent_; }

 private:
  Holes holes_;
  std::uint64_t end_ = 0;
  std::uint64_t extent_ = 0;
};

std::uint64_t best_fit_bytes(const ForwardGraph& graph, std::span<const OpRange> lives,
                             std::span<const std::optional<std::uint64_t>> sizes, std::uint64_t alignment) {
  BestFit buffer;
  std::vector<std::uint64_t> offsets(lives.size());
  replay(
      graph, lives, sizes,
      [&](std::size_t i) { offsets[i] = buffer.allocate(align_up(*sizes[i], alignment)); },
      [&](std::size_t i) { buffer.release(offsets[i], align_up(*sizes[i], alignment)); });
  return buffer.extent();
}

// What a run plans ahead is one buffer; what the caller sees, and what operators need for themselves, comes
// beside it when it is needed.
std::uint64_t pattern_bytes(const ForwardGraph& graph, std::span<const OpRange> lives,
                            std::span<const std::optional<std::uint64_t>> sizes) {
  constexpr std::uint64_t kAlignment = 256;
  std::vector<OpRange> inside(lives.begin(), lives.end()), beside(lives.begin(), lives.end());
  std::vector<bool> is_beside(lives.size());
  for (std::size_t i = 0; i < lives.size(); ++i) is_beside[i] = graph.values[i].lane == Lane::temporary;
  for (const auto* ids : {&graph.inputs, &graph.outputs})
    for (const ValueId id : *ids) is_beside[static_cast<std::size_t>(id)] = true;
  for (std::size_t i = 0; i < lives.size(); ++i) (is_beside[i] ? inside : beside)[i] = {};
  return forward_peak(graph, forward_usage(graph, beside, sizes), sizes).bytes +
         best_fit_bytes(graph, inside, sizes, kAlignment);
}

}  // namespace

std::optional<MemoryModel> memory_model(std::string_view name) {
  if (name == "sum") return MemoryModel::sum;
  if (name == "best_fit") return MemoryModel::best_fit;
  if (name == "pattern") return MemoryModel::pattern;
  if (name == "torch") return MemoryModel::torch;
  return std::nullopt;
}

std::uint64_t reserved_bytes(const ForwardGraph& graph, std::span<const OpRange> lives,
                             std::span<const std::optional<std::uint64_t>> sizes, MemoryModel model) {
  if (model == MemoryModel::sum) return forward_peak(graph, forward_usage(graph, lives, sizes), sizes).bytes;
  if (model == MemoryModel::best_fit) {
    constexpr std::uint64_t kAlignment = 32;
    return best_fit_bytes(graph, lives, sizes, kAlignment);
  }
  if (model == MemoryModel::pattern) return pattern_bytes(graph, lives, sizes);
  TorchCache cache;
  std::vector<TorchCache::Block> blocks(lives.size());
  replay(
      graph, lives, sizes, [&](std::size_t i) { blocks[i] = cache.allocate(*sizes[i]); },
      [&](std::size_t i) { cache.release(blocks[i]); });
  return cache.reserved();
}

}  // namespace loadline
