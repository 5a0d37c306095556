// Names by the hundred thousand: hash tables with a secret seed, texts in few allocations, shared names and
// an index of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace loadline::graph {

// --- Hash tables keyed by texts from files.

// 0 for the empty text. The seed differs from run to run, so nobody can craft a file whose texts all collide
// and make filling a table quadratic.
std::uint64_t text_hash(std::string_view text);

// Transparent: strings, views and literals find each other.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return static_cast<std::size_t>(text_hash(text)); }
};

template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;
using TextSet = std::unordered_set<std::string, TextHash, std::equal_to<>>;
// The keys are views; the texts behind them must outlive the table.
template <typename Value>
using TextViewMap = std::unordered_map<std::string_view, Value, TextHash, std::equal_to<>>;
using TextViewSet = std::unordered_set<std::string_view, TextHash, std::equal_to<>>;

// --- Stores many short texts in few allocations.

// The views that keep() returns stay valid for the arena's lifetime, also after it is moved.
class TextArena {
 public:
  std::string_view keep(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() > room_) {
      const std::size_t bytes = std::max(kBlock, text.size());
      blocks_.emplace_back(new char[bytes]);
      at_ = blocks_.back().get();
      room_ = bytes;
    }
    char* const to = at_;
    std::memcpy(to, text.data(), text.size());
    at_ += text.size();
    room_ -= text.size();
    return {to, text.size()};
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{64} << 10;

  std::vector<std::unique_ptr<char[]>> blocks_;  // their addresses never change
  char* at_ = nullptr;                           // free part of the last block
  std::size_t room_ = 0;
};

// --- Finds names by their text: a flat hash table, for sets of a hundred thousand names.

// Maps names to the positions at which they were added. The texts are not copied: `text_of(position)` must
// return the text of every name that was added, as long as the index is used.
class NameIndex {
 public:
  // Reserves room for `most` names; the table grows if more are added.
  explicit NameIndex(std::size_t most = 0) { resize(most); }

  // Adds `name` at `position` and returns nothing; or returns the position of an equal name added before.
  template <typename TextOf>
  std::optional<std::uint32_t> add(std::string_view name, std::uint32_t hash, std::uint32_t position,
                                   const TextOf& text_of) {
    if (4 * (count_ + 1) > 3 * slots_.size()) grow();
    Slot& slot = slots_[find_slot(name, hash, text_of)];
    if (slot.position != kFree) return slot.position;
    slot = {hash, position};
    ++count_;
    return std::nullopt;
  }

  template <typename TextOf>
  std::optional<std::uint32_t> find(std::string_view name, std::uint32_t hash, const TextOf& text_of) const {
    const Slot& slot = slots_[find_slot(name, hash, text_of)];
    return slot.position == kFree ? std::nullopt : std::optional(slot.position);
  }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t position = kFree;
  };

  // The table is at most three quarters full.
  void resize(std::size_t names) { slots_.assign(std::bit_ceil(names + names / 3 + 2), Slot()); }

  template <typename TextOf>
  std::size_t find_slot(std::string_view name, std::uint32_t hash, const TextOf& text_of) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].position != kFree && (slots_[at].hash != hash || text_of(slots_[at].position) != name))
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    const std::vector<Slot> old = std::move(slots_);
    resize(old.size());
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.position == kFree) continue;
      std::size_t at = slot.hash & mask;
      while (slots_[at].position != kFree) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace loadline::graph

// --- Tensor names: immutable, compact, cheap to copy. A model may have a hundred thousand of them.

namespace loadline::graph {

// A string of at most 2^32-1 bytes, with its hash. Copies share the text. Names made together by many() share
// an allocation, which lives as long as any of them. A regular value; may be used from several threads.
class Name {
 public:
  Name() = default;
  Name(std::string_view text);
  Name(const std::string& text) : Name(std::string_view(text)) {}
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const Name& other) : block_(other.block_), place_(other.place_), hash_(other.hash_) { retain(); }
  Name(Name&& other) noexcept { swap(other); }
  Name& operator=(Name other) noexcept {
    swap(other);
    return *this;
  }
  ~Name() {
    if (block_ != nullptr && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) release();
  }

  // One name for each text, in shared allocations.
  static std::vector<Name> many(std::span<const std::string_view> texts);

  std::string_view view() const {
    if (block_ == nullptr) return {};
    const char* from = reinterpret_cast<const char*>(block_ + 1) + (place_ & kMostAt);
    std::uint32_t length = place_ >> kAtBits;
    if (length == kLong) {
      std::memcpy(&length, from, sizeof length);
      from += sizeof length;
    }
    return {from, length};
  }
  operator std::string_view() const { return view(); }
  operator std::string() const { return str(); }
  std::string str() const { return std::string(view()); }
  std::size_t size() const { return view().size(); }
  bool empty() const { return block_ == nullptr; }
  // The hash of the text alone: equal names have equal hashes.
  std::uint32_t hash() const { return hash_; }

  friend bool operator==(const Name& a, const Name& b) { return a.hash_ == b.hash_ && a.view() == b.view(); }
  friend std::strong_ordering operator<=>(const Name& a, const Name& b) { return a.view() <=> b.view(); }
  friend bool operator==(const Name& a, std::string_view b) { return a.view() == b; }
  friend bool operator==(const Name& a, const std::string& b) { return a.view() == b; }
  friend bool operator==(const Name& a, const char* b) { return a.view() == b; }

 private:
  // The header of an allocation. The texts follow it, those of kLong bytes and more preceded by their length.
  struct Block {
    std::atomic<std::size_t> references;
  };
  static constexpr std::uint32_t kAtBits = 20, kMostAt = (1U << kAtBits) - 1, kLong = UINT32_MAX >> kAtBits;

  Name(Block* block, std::size_t at, std::string_view text);
  static std::size_t bytes_of(std::string_view text) {
    return text.size() + (text.size() < kLong ? 0 : sizeof(std::uint32_t));
  }
  static Block* make_block(std::size_t text_bytes, std::size_t references);
  void retain() const {
    if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release();
  void swap(Name& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(place_, other.place_);
    std::swap(hash_, other.hash_);
  }

  Block* block_ = nullptr;  // none for the empty name
  std::uint32_t place_ =
      0;  // kAtBits: where the text begins behind the Block; the others: its length, or kLong
  std::uint32_t hash_ = 0;
};

// The hash that a Name of this text has. It differs from run to run.
std::uint32_t name_hash(std::string_view text);

}  // namespace loadline::graph

template <>
struct std::hash<loadline::graph::Name> {
  std::size_t operator()(const loadline::graph::Name& name) const { return name.hash(); }
};
