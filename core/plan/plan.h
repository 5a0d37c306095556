// A program that moves bytes into memory: three verbs (alloc, copy, free) over blocks in spaces.
#pragma once

#include "core/graph/meta_graph.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace loadline {

// host       anonymous memory of the process; counts against the commit limit
// page_cache file pages that the process maps; clean, so the system can drop them
// staging    pinned or mapped transfer memory, file pages that the device has imported among it
// device     the accelerator's memory
// Unified memory is the sum of all four, not a fifth space.
enum class Space : std::uint8_t { host, page_cache, staging, device };
inline constexpr std::size_t kSpaceCount = 4;
std::string_view space_name(Space space);

template <typename T>
using PerSpace = std::array<T, kSpaceCount>;
constexpr std::size_t index(Space space) { return static_cast<std::size_t>(space); }

enum class BlockId : std::uint32_t {};
enum class BlockUse : std::uint8_t { storage, value, ring_slot, temporary };

// One allocation. Its content is undefined until something is copied into it.
struct Block {
  Space space = Space::host;
  std::uint64_t bytes = 0;
  BlockUse use = BlockUse::storage;
  std::optional<StorageId> storage = {};  // whose bytes it holds, for labels and for selecting
  std::string label = {};                 // for blocks without a storage: "activations", "ring slot 2"
  bool operator==(const Block&) const = default;
};

enum class Verb : std::uint8_t { alloc, copy, free };

// A range of another block, or of a storage's bytes in its file.
using CopySource = std::variant<BlockId, StorageId>;

// Numbers become others on their way, element by element or block by block.
struct Cast {
  DType from = DType::opaque;
  DType to = DType::opaque;
  bool operator==(const Cast&) const = default;
};
// What `bytes` of whole `from` blocks become; nothing for opaque types, parts of a block or overflow.
std::optional<std::uint64_t> cast_bytes(const Cast& cast, std::uint64_t bytes);

// alloc, free: only `block` counts. copy: `bytes` bytes from `from` at `from_offset` to `block` at
// `offset`, as they are or cast; a cast writes cast_bytes() of them. A copy from a storage into a
// page_cache block touches the mapped pages: there it must be the same storage at the same offset.
struct Step {
  Verb verb = Verb::alloc;
  std::optional<Cast> cast = {};  // here it fills a gap: plans have a million steps
  BlockId block{};
  CopySource from{};
  std::uint64_t offset = 0;
  std::uint64_t from_offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Step&) const = default;

  // What a copy writes. The step must have passed check_plan.
  std::uint64_t written() const { return cast ? *cast_bytes(*cast, bytes) : bytes; }
};

// A named moment: everything before `step` has happened. "loaded" marks the end of a load.
struct Mark {
  std::size_t step = 0;
  std::string label;
  bool operator==(const Mark&) const = default;
};

struct Plan {
  std::vector<Block> blocks;
  std::vector<Step> steps;
  std::vector<Mark> marks;
  bool operator==(const Plan&) const = default;

  const Block& block(BlockId id) const { return blocks[index(id)]; }
};

// The verbs, as methods write them.
BlockId alloc(Plan& plan, Block block);
void copy(Plan& plan, BlockId to, std::uint64_t offset, CopySource from, std::uint64_t from_offset,
          std::uint64_t bytes, std::optional<Cast> cast = {});
void free(Plan& plan, BlockId block);
void mark(Plan& plan, std::string label);

// The first violation, in words, or nothing: every block is allocated exactly once before its use and
// freed at most once and not used after; copies lie inside both ends and cast whole elements;
// page_cache blocks only map their own storage; sums of live bytes fit in 63 bits.
std::optional<std::string> check_plan(const Plan& plan, const MetaGraph& graph);

// What a person calls the block: its storage's first tensor, or its label. Not escaped.
std::string block_label(const Block& block, const MetaGraph& graph,
                        const std::vector<std::optional<TensorId>>& owners);

}  // namespace loadline
