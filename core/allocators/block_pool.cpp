// Keeps the number of blocks small and makes none larger than the bytes still expected.
#include "core/allocators/block_pool.h"

#include "core/base/checked_arithmetic.h"

#include <algorithm>

namespace loadline::allocators {
namespace {

// If fragmentation needs more than was expected, each further block is at least this large.
constexpr std::uint64_t kLeastExtraBlock = 16ull << 20;
// Smaller blocks cost a driver more than they hold.
constexpr std::uint64_t kLeastBlock = 1ull << 20;

}  // namespace

BlockPool::Range BlockPool::allocate(std::uint64_t bytes) {
  ++served_;
  const std::uint64_t exact = align_up(bytes, rules_.alignment);
  const PoolRequest* const request = forecast(exact);
  const bool stays = request != nullptr && request->stays;
  // newest first: while a model is loaded only the newest block has room
  const auto roomy = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const Block& block) {
    return block.stays == stays && block.ranges.largest_gap() >= bytes;
  });
  if (roomy != blocks_.rend())
    if (const auto offset = roomy->ranges.allocate(bytes)) return {roomy->id, *offset};
  Block& made = add_block(exact, request);
  return {made.id, *made.ranges.allocate(bytes)};
}

const PoolRequest* BlockPool::forecast(std::uint64_t exact) const {
  const std::vector<PoolRequest>& requests = rules_.expected.requests;
  if (served_ > requests.size() || requests[served_ - 1].bytes != exact) return nullptr;
  return &requests[served_ - 1];
}

BlockPool::Block& BlockPool::add_block(std::uint64_t exact, const PoolRequest* request) {
  release_empty(0);  // the empty block, if any, was too small
  const bool stays = request != nullptr && request->stays;
  std::uint64_t wanted = rules_.block;  // another load than expected
  if (stays) {
    wanted = together(stays);
  } else if (request != nullptr) {
    const std::uint64_t missing = missing_of(request->passing_peak);
    wanted = missing <= rules_.expected.passing_block ? missing : together(stays);
  } else if (rules_.expected.peak > 0) {
    wanted = std::min(wanted, missing_of(rules_.expected.peak));
  }
  wanted = std::max(exact, std::min(align_up(wanted, rules_.alignment), rules_.most));
  const std::uint32_t id = made_++;
  const PoolBlock block = reserve_(id, wanted, exact);
  reserved_ += block.reserved;
  if (!stays) passing_usable_ += block.bytes;
  return blocks_.emplace_back(
      Block{id, stays, block.reserved, block.bytes, Suballocator(block.bytes, rules_.alignment)});
}

std::uint64_t BlockPool::missing_of(std::uint64_t expected) const {
  return std::max({expected > passing_usable_ ? expected - passing_usable_ : 0,
                   std::min(expected, kLeastExtraBlock), std::min(rules_.expected.peak, kLeastBlock)});
}

std::uint64_t BlockPool::together(bool stays) const {
  const std::vector<PoolRequest>& requests = rules_.expected.requests;
  const std::uint64_t most = std::min(stays ? rules_.block : rules_.expected.passing_block, rules_.most);
  std::uint64_t bytes = 0;
  for (std::size_t i = served_ - 1; i < requests.size(); ++i) {
    if (requests[i].stays != stays || requests[i].bytes > most)
      continue;  // large ones have blocks of their own
    if (requests[i].bytes > most - bytes) break;
    bytes += requests[i].bytes;
  }
  return bytes;
}

void BlockPool::free(const Range& range) {
  const auto block = std::ranges::lower_bound(blocks_, range.block, {}, &Block::id);
  block->ranges.free(range.offset);
  if (!block->ranges.empty()) return;
  const std::vector<PoolRequest>& requests = rules_.expected.requests;
  if (requests.empty()) return release_empty(block->usable);  // one of the size that is in use
  if (served_ >= requests.size()) return release_empty(0);
  release_empty(std::max(kLeastBlock, 2 * requests[served_].passing_peak));
}

void BlockPool::release_empty(std::uint64_t most) {
  std::uint64_t kept = 0;
  std::erase_if(blocks_, [&](const Block& block) {
    if (!block.ranges.empty()) return false;
    if (block.usable <= most - kept) {
      kept += block.usable;
      return false;
    }
    reserved_ -= block.reserved;
    if (!block.stays) passing_usable_ -= block.usable;
    give_(block.id);
    return true;
  });
}

}  // namespace loadline::allocators
