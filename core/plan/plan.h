// The program: blocks in spaces, the steps alloc, copy and free, its rules, its reads, a forward pass as
// steps.
#pragma once

#include "core/convert/numbers/prepack.h"
#include "core/graph/forward_graph.h"
#include "core/graph/meta_graph.h"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::plan {

// --- A program that moves bytes into memory: three verbs (alloc, copy, free) over blocks in spaces.

// host       anonymous memory of the process; counts against the commit limit
// page_cache file pages that the process maps; clean, so the system can drop them
// staging    pinned or mapped transfer memory, including file pages that the device has imported
// device     the accelerator's memory
// Unified memory is the sum of all four, not a fifth space.
enum class Space : std::uint8_t { host, page_cache, staging, device };
inline constexpr std::size_t kSpaceCount = 4;
std::string_view space_name(Space space);   // in JSON and options: "page_cache"
std::string_view space_title(Space space);  // in sentences and tables: "page cache"

template <typename T>
using PerSpace = std::array<T, kSpaceCount>;
constexpr std::size_t index(Space space) { return static_cast<std::size_t>(space); }

// The order in which spaces are listed, and stacked from the bottom: lasting memory below temporary memory.
// Mapped pages, which no budget counts, come last.
inline constexpr PerSpace<Space> kSpaceOrder = {Space::device, Space::host, Space::staging,
                                                Space::page_cache};

// Sets of spaces: a mask with the bit of each.
constexpr unsigned space_bit(Space space) { return 1u << index(space); }
inline constexpr unsigned kAllSpaces = (1u << kSpaceCount) - 1;
inline constexpr unsigned kHeldSpaces = kAllSpaces & ~space_bit(Space::page_cache);  // what cannot be dropped
std::vector<Space> spaces_in(unsigned mask);                                         // in kSpaceOrder

enum class BlockId : std::uint32_t {};
enum class BlockUse : std::uint8_t { storage, value, ring_slot, temporary };

// A value that few of many have: no larger than a pointer where there is none. Copies are deep.
template <typename T>
class Rare {
 public:
  Rare() = default;
  template <typename From>
  requires std::is_constructible_v<T, From> Rare(From&& value)
      : value_(std::make_unique<T>(std::forward<From>(value))) {}
  Rare(const Rare& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Rare(Rare&& other) noexcept = default;
  Rare& operator=(Rare other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Rare() = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  friend bool operator==(const Rare& a, const Rare& b) {
    return a && b ? *a == *b : a.has_value() == b.has_value();
  }

 private:
  std::unique_ptr<T> value_;
};

// A storage or none, in four bytes.
class MaybeStorage {
 public:
  MaybeStorage() = default;
  MaybeStorage(graph::StorageId id) : id_(id) {}
  MaybeStorage(std::optional<graph::StorageId> id) : id_(id.value_or(kNone)) {}

  explicit operator bool() const { return id_ != kNone; }
  graph::StorageId operator*() const { return id_; }
  operator std::optional<graph::StorageId>() const { return *this ? std::optional(id_) : std::nullopt; }
  friend bool operator==(MaybeStorage, MaybeStorage) = default;

 private:
  static constexpr graph::StorageId kNone{std::numeric_limits<std::uint32_t>::max()};
  graph::StorageId id_ = kNone;
};

// One allocation. Its content is undefined until something is copied into it. Small: a load has millions.
struct Block {
  std::uint64_t bytes = 0;
  Space space = Space::host;
  BlockUse use = BlockUse::storage;
  MaybeStorage storage = {};  // the storage whose bytes it holds; for labels and selection
  Rare<std::variant<std::string, convert::Prepack>> extra = {};  // label() or prepack()
  bool operator==(const Block&) const = default;

  // For blocks without a storage: "activations", "ring slot 2". Empty: none.
  std::string_view label() const {
    const auto* const text = extra ? std::get_if<std::string>(&*extra) : nullptr;
    return text != nullptr ? std::string_view(*text) : std::string_view();
  }
  // Device blocks only: the block holds a weight packed. Offsets and sizes of copies into it count the stored
  // bytes; the machine converts them. Nothing is copied out of it.
  const convert::Prepack* prepack() const { return extra ? std::get_if<convert::Prepack>(&*extra) : nullptr; }
  // The bytes that copies into it may address.
  std::uint64_t addressed_bytes() const { return prepack() ? convert::stored_bytes(*prepack()) : bytes; }
};
static_assert(sizeof(Block) == 24);

enum class Verb : std::uint8_t { alloc, copy, free };

// A range of another block, or of a storage's bytes in its file.
using CopySource = std::variant<BlockId, graph::StorageId>;

// A conversion of numbers during a copy, element by element or block by block.
struct Cast {
  graph::DType from = graph::DType::opaque;
  graph::DType to = graph::DType::opaque;
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

// Takes a plan's steps away while the plan is made: figures that need each step once need no memory for all
// of them.
class StepTaker {
 public:
  virtual ~StepTaker() = default;
  // `first`: how many steps of the plan came before. `blocks`: all of the plan so far.
  virtual void take(std::span<const Block> blocks, std::span<const Step> steps, std::size_t first) = 0;
};

struct Plan {
  std::vector<Block> blocks;
  std::vector<Step> steps;  // with a taker: those that it has not taken yet
  std::vector<Mark> marks;
  StepTaker* taker = nullptr;
  std::size_t taken = 0;  // steps
  bool operator==(const Plan&) const = default;

  const Block& block(BlockId id) const { return blocks[graph::index(id)]; }
};

// Gives the steps to the plan's taker, if it has one.
void hand_over(Plan& plan);

// Append one step or mark to a plan; used by methods. Inline: a plan has a million steps. Steps and blocks
// are filled where they stay: processors wait long for a copy whose words were just written in smaller parts.
inline Step& append_step(Plan& plan, Verb verb, BlockId block) {
  constexpr std::size_t kPiece = 512;  // 20 KiB: they stay in the processor's nearest cache
  if (plan.steps.size() == kPiece && plan.taker != nullptr) hand_over(plan);
  Step& step = plan.steps.emplace_back();
  step.verb = verb;
  step.block = block;
  return step;
}
inline BlockId alloc(Plan& plan, std::uint64_t bytes, Space space, BlockUse use, MaybeStorage storage) {
  const BlockId id{static_cast<std::uint32_t>(plan.blocks.size())};
  Block& block = plan.blocks.emplace_back();
  block.bytes = bytes;
  block.space = space;
  block.use = use;
  block.storage = storage;
  append_step(plan, Verb::alloc, id);
  return id;
}
inline BlockId alloc(Plan& plan, Block block) {
  const BlockId id = alloc(plan, block.bytes, block.space, block.use, block.storage);
  plan.blocks.back().extra = std::move(block.extra);
  return id;
}
// `from`: one of the alternatives of CopySource.
template <typename From>
void copy(Plan& plan, BlockId to, std::uint64_t offset, From from, std::uint64_t from_offset,
          std::uint64_t bytes, std::optional<Cast> cast = {}) {
  Step& step = append_step(plan, Verb::copy, to);
  step.cast = cast;
  step.from = from;
  step.offset = offset;
  step.from_offset = from_offset;
  step.bytes = bytes;
}
inline void free(Plan& plan, BlockId block) { append_step(plan, Verb::free, block); }
void mark(Plan& plan, std::string label);

// The rules of plans. Every block is allocated exactly once before its use, freed at most once and not used
// afterwards. Copies lie inside source and destination and cast whole elements. page_cache blocks map only
// their own storage. Sums of live bytes fit in 63 bits.
class PlanChecker {
 public:
  explicit PlanChecker(const graph::MetaGraph& graph) : graph_(graph) {}
  // The next steps of a plan, as StepTaker::take() gives them. Returns the first violation, in words; nothing
  // if there is none.
  std::optional<std::string> check(std::span<const Block> blocks, std::span<const Step> steps,
                                   std::size_t first);

  // The same step by step, after all blocks of the plan so far are given.
  void begin(std::span<const Block> blocks) {
    blocks_ = blocks;
    states_.resize(blocks.size(), State::unborn);
  }
  // Whether the next step keeps the rules for a reason that is quickly found. If not, check_step() must say.
  bool is_plain(const Step& step);
  std::optional<std::string> check_step(const Step& step);

 private:
  enum class State : std::uint8_t { unborn, alive, dead };

  bool is_plain_alloc(const Block& block) const;
  bool is_plain_copy(const Step& step, const Block& to) const;
  std::optional<std::string> check_mapping(const Step& step, const Block& block) const;
  std::optional<std::string> check_copy(const Step& step, const Block& to) const;

  const graph::MetaGraph& graph_;
  std::span<const Block> blocks_;
  std::vector<State> states_;  // by block
  std::uint64_t live_ = 0;     // bytes
};
std::optional<std::string> check_plan(const Plan& plan, const graph::MetaGraph& graph);

// Inline as well: most steps are plain and sound. check_step() comes to the same for these, more slowly.
inline bool PlanChecker::is_plain(const Step& step) {
  if (graph::index(step.block) >= blocks_.size()) return false;
  const Block& block = blocks_[graph::index(step.block)];
  State& state = states_[graph::index(step.block)];
  if (step.verb == Verb::copy) return state == State::alive && is_plain_copy(step, block);
  if (step.verb == Verb::free) {
    if (state != State::alive) return false;
    state = State::dead;
    live_ -= block.bytes;
    return true;
  }
  if (state != State::unborn || !is_plain_alloc(block)) return false;
  live_ += block.bytes;
  state = State::alive;
  return true;
}

inline bool PlanChecker::is_plain_alloc(const Block& block) const {
  const std::uint64_t live = live_ + block.bytes;
  if (live < live_ || live >> 63 != 0) return false;
  if (!block.storage) return block.space != Space::page_cache && !block.prepack();
  if (block.extra || graph::index(*block.storage) >= graph_.storages.size()) return false;
  return block.space != Space::page_cache || block.bytes <= graph_.storage(*block.storage).bytes;
}

inline bool PlanChecker::is_plain_copy(const Step& step, const Block& to) const {
  if (step.cast || to.prepack() || step.offset > to.bytes || step.bytes > to.bytes - step.offset)
    return false;
  std::uint64_t bytes = 0;
  if (const auto* const storage = std::get_if<graph::StorageId>(&step.from)) {
    if (graph::index(*storage) >= graph_.storages.size()) return false;
    if (to.space == Space::page_cache && (to.storage != *storage || step.offset != step.from_offset))
      return false;
    bytes = graph_.storage(*storage).bytes;
  } else {
    const BlockId from = std::get<BlockId>(step.from);
    if (to.space == Space::page_cache || graph::index(from) >= blocks_.size() || from == step.block ||
        states_[graph::index(from)] != State::alive || blocks_[graph::index(from)].prepack())
      return false;
    bytes = blocks_[graph::index(from)].bytes;
  }
  return step.from_offset <= bytes && step.bytes <= bytes - step.from_offset;
}

// The block's display name: its storage's first tensor, or its label. Not escaped.
std::string block_label(const Block& block, const graph::MetaGraph& graph,
                        const std::vector<std::optional<graph::TensorId>>& owners);

// --- Sums the memory spaces in a mask: one space, several, or all of unified memory.

// The sum must fit in 64 bits; this holds for the bytes of any plan that passed check_plan.
constexpr std::uint64_t sum_over(const PerSpace<std::uint64_t>& bytes, unsigned mask) {
  std::uint64_t sum = 0;
  for (std::size_t space = 0; space < kSpaceCount; ++space)
    if ((mask & (1u << space)) != 0) sum += bytes[space];
  return sum;
}

// --- How a plan reads the files: the cost of an order without sequential reads.

struct ReadPattern {
  std::uint64_t bytes = 0;     // read from files, in their stored size
  std::uint64_t reads = 0;     // copies from a storage
  std::uint64_t jumps = 0;     // reads that do not continue where the previous one ended
  std::uint64_t distance = 0;  // bytes skipped in a file between two reads, in either direction
  bool operator==(const ReadPattern&) const = default;
};

// A read jumps if the previous read was in another file, or if it does not start at the end of the last read
// in its file. A forward skip of less than a page, as over padding, is no jump but counts as distance. The
// very first read is no jump. The first read in a file adds no distance. A part of an encoded storage is
// located by its share of the bytes. Storages without a file are read and never jump. The plan must have
// passed check_plan.
class ReadCounter {
 public:
  explicit ReadCounter(const graph::MetaGraph& graph) : graph_(graph), ends_(graph.files.size()) {}
  // The next step.
  void add(const Step& step) {
    if (step.verb == Verb::copy && std::holds_alternative<graph::StorageId>(step.from)) add_read(step);
  }
  const ReadPattern& pattern() const { return pattern_; }

 private:
  void add_read(const Step& step);

  const graph::MetaGraph& graph_;
  ReadPattern pattern_;
  std::vector<std::optional<std::uint64_t>> ends_;  // of the last read in each file
  graph::FileId last_ = graph::kNoFile;
};
ReadPattern read_pattern(const Plan& plan, const graph::MetaGraph& graph);

// --- A forward pass as a plan, so that "load, then first token" is one timeline.

// One run of a graph's operators with given sizes. The graph must outlive it.
struct ForwardPass {
  const graph::ForwardGraph* graph = nullptr;
  std::vector<std::uint64_t> symbols = {};  // symbol_values
};

// Appends the pass in `space`, the device or the host. Each value is allocated by the operator that produces
// it (inputs by the first one) and freed after its last use; temporaries live during their operator. The
// cache is allocated at its first write, or with a past before the first operator; like the outputs, it is
// never freed. Values of unknown size are left out. Adds the mark "first token" at the end. Throws
// Error{limit} for a value over 2^62 bytes.
void append_forward_pass(Plan& plan, const ForwardPass& pass, Space space = Space::device);

}  // namespace loadline::plan
