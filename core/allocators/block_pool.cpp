// Keeps the number of blocks small and makes none larger than the bytes still expected.
#include "core/allocators/block_pool.h"

#include "core/base/checked.h"

#include <algorithm>

namespace loadline {
namespace {

// If fragmentation needs more than was expected, each further block is at least this large.
constexpr std::uint64_t kLeastExtraBlock = 16ull << 20;

}  // namespace

BlockPool::Range BlockPool::allocate(std::uint64_t bytes) {
  ++served_;
  // newest first: while a model is loaded only the newest block has room
  const auto roomy = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                  [&](const Block& block) { return block.ranges.largest_gap() >= bytes; });
  if (roomy != blocks_.rend())
    if (const auto offset = roomy->ranges.allocate(bytes)) return {roomy->id, *offset};
  Block& made = add_block(bytes);
  return {made.id, *made.ranges.allocate(bytes)};
}

BlockPool::Block& BlockPool::add_block(std::uint64_t least) {
  release_empty(0);  // the empty block, if any, was too small
  const std::uint64_t exact = align_up(least, rules_.alignment);
  const std::uint64_t expected = rules_.expected.peak;
  const std::uint64_t missing =
      std::max(expected > usable_ ? expected - usable_ : 0, std::min(expected, kLeastExtraBlock));
  const std::uint64_t wanted =
      std::max(exact, std::min({align_up(missing, rules_.alignment), together(exact), rules_.most}));
  const std::uint32_t id = made_++;
  const PoolBlock block = take_(id, wanted, exact);
  reserved_ += block.reserved;
  usable_ += block.bytes;
  return blocks_.emplace_back(
      Block{id, block.reserved, block.bytes, Suballocator(block.bytes, rules_.alignment)});
}

std::uint64_t BlockPool::together(std::uint64_t exact) const {
  const std::vector<std::uint64_t>& requests = rules_.expected.requests;
  const std::size_t first = served_ - 1;
  if (first >= requests.size() || requests[first] != exact)
    return rules_.block;  // another load than expected
  const std::uint64_t most = std::min(rules_.block, rules_.most);
  std::uint64_t bytes = 0;
  for (std::size_t i = first; i < requests.size(); ++i) {
    if (requests[i] > rules_.block) continue;  // these have blocks of their own
    if (requests[i] > most - bytes) break;
    bytes += requests[i];
  }
  return bytes;
}

void BlockPool::free(const Range& range) {
  const auto block = std::ranges::lower_bound(blocks_, range.block, {}, &Block::id);
  block->ranges.free(range.offset);
  if (!block->ranges.empty()) return;
  const std::vector<std::uint64_t>& requests = rules_.expected.requests;
  release_empty(requests.empty() || served_ < requests.size() ? 1 : 0);
}

void BlockPool::release_empty(std::size_t keep) {
  std::erase_if(blocks_, [&](const Block& block) {
    if (!block.ranges.empty()) return false;
    if (keep > 0) {
      --keep;
      return false;
    }
    reserved_ -= block.reserved;
    usable_ -= block.usable;
    give_(block.id);
    return true;
  });
}

}  // namespace loadline
