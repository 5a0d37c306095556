// Tensor names: immutable, compact, cheap to copy. A model may have a hundred thousand of them.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// A string of at most 2^32-1 bytes, with its hash. Copies share the text. Names made together by many() share
// an allocation, which lives as long as any of them. A regular value; may be used from several threads.
class Name {
 public:
  Name() = default;
  Name(std::string_view text);
  Name(const std::string& text) : Name(std::string_view(text)) {}
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const Name& other) : block_(other.block_), at_(other.at_), hash_(other.hash_) { retain(); }
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

  std::string_view view() const;
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
  // The header of an allocation. The texts follow it, each preceded by its length.
  struct Block {
    std::atomic<std::size_t> references;
  };

  Name(Block* block, std::uint32_t at, std::string_view text);
  static Block* make_block(std::size_t text_bytes, std::size_t references);
  void retain() const {
    if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release();
  void swap(Name& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(at_, other.at_);
    std::swap(hash_, other.hash_);
  }

  Block* block_ = nullptr;  // none for the empty name
  std::uint32_t at_ = 0;    // offset of the text's length, counted from the end of the Block header
  std::uint32_t hash_ = 0;
};

// The hash that a Name of this text has. It differs from run to run.
std::uint32_t name_hash(std::string_view text);

}  // namespace loadline

template <>
struct std::hash<loadline::Name> {
  std::size_t operator()(const loadline::Name& name) const { return name.hash(); }
};
