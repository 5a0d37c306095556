// The uploader's block policy, without the memory: which block serves a request, when blocks are allocated
// and when they are released.
#pragma once

#include "core/allocators/free_ranges.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace loadline::allocators {

// What a pool will be asked for. All sizes are rounded up to the alignment.
struct PoolRequest {
  std::uint64_t bytes = 0;
  bool stays = true;  // it is never freed
  // The most bytes that requests which do not stay use at once, from this request on.
  std::uint64_t passing_peak = 0;
};
struct PoolForecast {
  std::uint64_t peak = 0;                  // the most bytes in use at once
  std::vector<PoolRequest> requests = {};  // in order; empty: not known
  // Usual size of a block for what passes: small blocks are given back early, large ones have fewer gaps.
  std::uint64_t passing_block = 256ull << 20;
};

struct BlockPoolRules {
  std::uint64_t alignment = 256;  // a power of two
  PoolForecast expected = {};
  std::uint64_t block = 256ull << 20;  // usual size of a block; less if less is expected
  std::uint64_t most = UINT64_MAX;     // upper limit for a block of several requests
};

// A block as the source made it: the bytes that can be used, and the bytes that it reserves.
struct PoolBlock {
  std::uint64_t bytes = 0;
  std::uint64_t reserved = 0;
};

// Requests that stay and requests that pass have blocks of their own, so that what passes leaves no holes
// among what stays. A request larger than a usual block or rules.most gets a block of its own. Other blocks
// end with the last of the following requests that fit them whole: what only grows has no gaps. Blocks for
// what passes are no larger than what passes at once from then on. Empty blocks are kept against thrashing,
// as long as they are together not far larger than that; all others are released to the source.
class BlockPool {
 public:
  // `take` makes block `id` with `wanted` bytes, or fewer but at least `exact`; both are multiples of the
  // alignment. It may throw. `give` releases a block that `take` made.
  using Reserve = std::function<PoolBlock(std::uint32_t id, std::uint64_t wanted, std::uint64_t exact)>;
  using Give = std::function<void(std::uint32_t id)>;
  BlockPool(const BlockPoolRules& rules, Reserve take, Give give)
      : rules_(rules), reserve_(std::move(take)), give_(std::move(give)) {}

  struct Range {
    std::uint32_t block = 0;
    std::uint64_t offset = 0;
  };
  // `bytes` must be > 0.
  Range allocate(std::uint64_t bytes);
  void free(const Range& range);

  std::uint64_t reserved() const { return reserved_; }

 private:
  struct Block {
    std::uint32_t id = 0;
    bool stays = false;
    std::uint64_t reserved = 0, usable = 0;
    Suballocator ranges;
  };
  // The forecast of the request that is being served; null for one that was not expected.
  const PoolRequest* forecast(std::uint64_t exact) const;
  Block& add_block(std::uint64_t exact, const PoolRequest* request);
  // The bytes of the request that is being served and of those after it of its kind, as far as they fit one
  // block.
  std::uint64_t together(bool stays) const;
  // The bytes that are missing of `expected`, which the blocks for passing requests must hold.
  std::uint64_t missing_of(std::uint64_t expected) const;
  // Releases the empty blocks but the first that have at most `most` bytes together.
  void release_empty(std::uint64_t most);

  BlockPoolRules rules_;
  Reserve reserve_;
  Give give_;
  std::uint32_t made_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t passing_usable_ = 0;  // of the blocks for passing requests
  std::size_t served_ = 0;            // requests
  std::vector<Block> blocks_;
};

}  // namespace loadline::allocators
