// Which block of memory a request comes from, when blocks are taken and when they go back: the uploader's
// policy, without the memory.
#pragma once

#include "core/allocators/suballocator.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace loadline {

struct BlockPoolRules {
  std::uint64_t alignment = 256;       // a power of two
  std::uint64_t expected = 0;          // what will be taken at most at a time, rounding included
  std::uint64_t block = 256ull << 20;  // of which blocks are, unless less is missing
  std::uint64_t most = UINT64_MAX;     // that one block can have
};

// What the source gave for a block: what can be used of it, and what it counts as.
struct PoolBlock {
  std::uint64_t bytes = 0;
  std::uint64_t reserved = 0;
};

// Larger requests than rules.block get a block of their own. One empty block is kept against thrashing, all
// others go back to the source.
class BlockPool {
 public:
  // `take` makes the block called `id` of `wanted` bytes, or of less but at least `exact`; both are multiples
  // of the alignment. It may throw. `give` takes back one that take() made.
  using Take = std::function<PoolBlock(std::uint32_t id, std::uint64_t wanted, std::uint64_t exact)>;
  using Give = std::function<void(std::uint32_t id)>;
  BlockPool(const BlockPoolRules& rules, Take take, Give give)
      : rules_(rules), take_(std::move(take)), give_(std::move(give)) {}

  struct Range {
    std::uint32_t block = 0;
    std::uint64_t offset = 0;
  };
  // `bytes` > 0, and with rounding at most rules.most.
  Range allocate(std::uint64_t bytes);
  void free(const Range& range);

  std::uint64_t reserved() const { return reserved_; }

 private:
  struct Block {
    std::uint32_t id = 0;
    std::uint64_t reserved = 0;
    Suballocator ranges;
  };
  Block& add_block(std::uint64_t least);
  void release_empty(std::size_t keep);

  BlockPoolRules rules_;
  Take take_;
  Give give_;
  std::uint32_t made_ = 0;
  std::uint64_t reserved_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace loadline
