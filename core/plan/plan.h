// A program that moves bytes into memory: three verbs (alloc, copy, free) over blocks in spaces.
#pragma once

#include "core/convert/numbers/prepack.h"
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
// staging    pinned or mapped transfer memory, including file pages that the device has imported
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
  std::optional<StorageId> storage = {};  // the storage whose bytes it holds; for labels and selection
  std::string label = {};                 // for blocks without a storage: "activations", "ring slot 2"
  // Device blocks only: the block holds a weight packed. Offsets and sizes of copies into it count the stored
  // bytes; the machine converts them. Nothing is copied out of it.
  std::optional<Prepack> prepack = {};
  bool operator==(const Block&) const = default;

  // The bytes that copies into it may address.
  std::uint64_t addressed_bytes() const { return prepack ? stored_bytes(*prepack) : bytes; }
};

enum class Verb : std::uint8_t { alloc, copy, free };

// A range of another block, or of a storage's bytes in its file.
using CopySource = std::variant<BlockId, StorageId>;

// A conversion of numbers during a copy, element by element or block by block.
struct Cast {
  DType from = DType::opaque;
  DType to = DType::opaque;
  bool operator==(const Cast&) const = default;
};
// The size after the cast of `bytes` bytes; nothing for opaque types, partial blocks or overflow.
std::optional<std::uint64_t> cast_bytes(const Cast& cast, std::uint64_t bytes);

// alloc and free use only `block`. copy moves `bytes` bytes from `from` at `from_offset` to `block` at
// `offset`; with a cast it writes cast_bytes() of them. A copy from a storage into a page_cache block touches
// the mapped pages: it must be the block's own storage at the same offset.
struct Step {
  Verb verb = Verb::alloc;
  std::optional<Cast> cast = {};  // placed here to fill padding: plans have a million steps
  BlockId block{};
  CopySource from{};
  std::uint64_t offset = 0;
  std::uint64_t from_offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Step&) const = default;

  // The number of bytes that a copy writes, before the block packs them. The step must have passed
  // check_plan.
  std::uint64_t written() const { return cast ? *cast_bytes(*cast, bytes) : bytes; }
};

// A named moment: every step before `step` has run. "loaded" marks the end of a load.
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

// Append one step or mark to a plan; used by methods.
BlockId alloc(Plan& plan, Block block);
void copy(Plan& plan, BlockId to, std::uint64_t offset, CopySource from, std::uint64_t from_offset,
          std::uint64_t bytes, std::optional<Cast> cast = {});
void free(Plan& plan, BlockId block);
void mark(Plan& plan, std::string label);

// The first violation of the rules, in words; nothing if there is none. Every block is allocated exactly once
// before its use, freed at most once and not used afterwards. Copies lie inside source and destination and
// cast whole elements. page_cache blocks map only their own storage. Sums of live bytes fit in 63 bits.
std::optional<std::string> check_plan(const Plan& plan, const MetaGraph& graph);

// The block's display name: its storage's first tensor, or its label. Not escaped.
std::string block_label(const Block& block, const MetaGraph& graph,
                        const std::vector<std::optional<TensorId>>& owners);

}  // namespace loadline
