// The uploader's block policy, without the memory: which block serves a request, when blocks are allocated
// and when they are released.
#pragma once

#include "core/allocators/suballocator.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace loadline {

// What a pool will be asked for, rounding to the alignment included.
struct PoolForecast {
  std::uint64_t peak = 0;                    // the most bytes in use at once
  std::vector<std::uint64_t> requests = {};  // in order; empty: not known
  bool ends_blocks = true;                   // whether a block ends with a request (BlockPool)
};

struct BlockPoolRules {
  std::uint64_t alignment = 256;  // a power of two
  PoolForecast expected = {};
  std::uint64_t block = 256ull << 20;  // usual size of a block; less if less is expected
  std::uint64_t most = UINT64_MAX;     // upper limit for one block
};

// A block as the source made it: the bytes that can be used, and the bytes that it reserves.
struct PoolBlock {
  std::uint64_t bytes = 0;
  std::uint64_t reserved = 0;
};

// A request larger than rules.block gets a block of its own. Other blocks end with the last of the following
// requests that fit them whole, so that a load that frees nothing leaves no gap. Until the last request one
// empty block is kept against thrashing; all others are released to the source.
class BlockPool {
 public:
  // `take` makes block `id` with `wanted` bytes, or fewer but at least `exact`; both are multiples of the
  // alignment. It may throw. `give` releases a block that `take` made.
  using Take = std::function<PoolBlock(std::uint32_t id, std::uint64_t wanted, std::uint64_t exact)>;
  using Give = std::function<void(std::uint32_t id)>;
  BlockPool(const BlockPoolRules& rules, Take take, Give give)
      : rules_(rules), take_(std::move(take)), give_(std::move(give)) {}

  struct Range {
    std::uint32_t block = 0;
    std::uint64_t offset = 0;
  };
  // `bytes` must be > 0 and, rounded up, at most rules.most.
  Range allocate(std::uint64_t bytes);
  void free(const Range& range);

  std::uint64_t reserved() const { return reserved_; }

 private:
  struct Block {
    std::uint32_t id = 0;
    std::uint64_t reserved = 0, usable = 0;
    Suballocator ranges;
  };
  Block& add_block(std::uint64_t least);
  // The bytes of the request that is being served and of those that follow it, as far as they fit one block.
  // The usual size of a block if the requests are not known.
  std::uint64_t together(std::uint64_t exact) const;
  void release_empty(std::size_t keep);

  BlockPoolRules rules_;
  Take take_;
  Give give_;
  std::uint32_t made_ = 0;
  std::uint64_t reserved_ = 0, usable_ = 0;  // of the blocks
  std::size_t served_ = 0;                   // requests
  std::vector<Block> blocks_;
};

}  // namespace loadline
