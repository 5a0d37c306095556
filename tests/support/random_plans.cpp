// Generates random plans.
#include "tests/support/random_plans.h"

#include <algorithm>
#include <random>
#include <vector>

namespace loadline::testing {
namespace {

class Generator {
 public:
  Generator(const MetaGraph& graph, std::uint64_t seed) : graph_(graph), random_(seed) {}

  Plan make(std::size_t steps) {
    while (plan_.steps.size() < steps) {
      const std::uint64_t dice = below(10);
      if (alive_.size() < 2 || dice < 3)
        add_block();
      else if (dice == 9)
        drop_block();
      else
        add_copy();
    }
    return std::move(plan_);
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void add_block() {
    const auto space = static_cast<Space>(below(kSpaceCount));
    const StorageId storage{static_cast<std::uint32_t>(below(graph_.storages.size()))};
    const std::uint64_t whole = graph_.storage(storage).bytes;
    const std::uint64_t bytes = space == Space::page_cache ? whole
                                : below(3) == 0            ? whole
                                                           : 1 + below(20'000);
    alive_.push_back(
        alloc(plan_, {.space = space, .bytes = bytes, .use = BlockUse::storage, .storage = storage}));
  }

  void drop_block() {
    const std::size_t at = below(alive_.size());
    free(plan_, alive_[at]);
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void add_copy() {
    const BlockId to = alive_[below(alive_.size())], from = alive_[below(alive_.size())];
    const Block& target = plan_.block(to);
    if (target.space == Space::page_cache || below(2) == 0) return read_storage(to, target);
    if (from == to) return;
    const std::uint64_t have = plan_.block(from).bytes;
    const std::uint64_t offset = below(target.bytes + 1), from_offset = below(have + 1);
    const std::uint64_t bytes = below(std::min(target.bytes - offset, have - from_offset) + 1);
    if (below(4) == 0) return add_cast(to, offset, from, from_offset, bytes);
    copy(plan_, to, offset, from, from_offset, bytes);
  }

  // As many whole numbers as fit where a plain copy of `bytes` would.
  void add_cast(BlockId to, std::uint64_t offset, CopySource from, std::uint64_t from_offset,
                std::uint64_t bytes) {
    constexpr Cast kCasts[] = {
        {DType::bf16, DType::f32}, {DType::f32, DType::bf16}, {DType::f16, DType::f32}};
    const Cast cast = kCasts[below(3)];
    const std::uint64_t wide = *byte_size(cast.from, 1), narrow = *byte_size(cast.to, 1);
    const std::uint64_t lead = (wide - from_offset % wide) % wide;
    const std::uint64_t elements = bytes < lead ? 0 : (bytes - lead) / std::max(wide, narrow);
    if (elements > 0) copy(plan_, to, offset, from, from_offset + lead, elements * wide, cast);
  }

  void read_storage(BlockId to, const Block& target) {
    const bool mapped = target.space == Space::page_cache;
    const StorageId storage =
        mapped ? *target.storage : StorageId{static_cast<std::uint32_t>(below(graph_.storages.size()))};
    const std::uint64_t have = graph_.storage(storage).bytes;
    const std::uint64_t from_offset = below(have + 1);
    const std::uint64_t offset = mapped ? from_offset : below(target.bytes + 1);
    const std::uint64_t bytes = below(std::min(target.bytes - offset, have - from_offset) + 1);
    if (!mapped && below(4) == 0) return add_cast(to, offset, storage, from_offset, bytes);
    copy(plan_, to, offset, storage, from_offset, bytes);
  }

  const MetaGraph& graph_;
  std::mt19937_64 random_;
  Plan plan_;
  std::vector<BlockId> alive_;
};

}  // namespace

Plan random_plan(const MetaGraph& graph, std::uint64_t seed, std::size_t steps) {
  return Generator(graph, seed).make(steps);
}

}  // namespace loadline::testing
