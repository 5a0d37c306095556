// The seeded hash; names in reference-counted blocks.
#include "core/graph/name.h"

#include "core/base/error.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <random>
#include <utility>

#define XXH_INLINE_ALL  // texts are short: a call costs as much as the hash
#include <xxhash.h>

namespace loadline::graph {

// --- XXH3 with a random seed per run.

std::uint64_t text_hash(std::string_view text) {
  static const std::uint64_t seed = (std::uint64_t{std::random_device()()} << 32) ^ std::random_device()();
  return text.empty() ? 0 : XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

// --- Stores the texts of names in reference-counted blocks.

namespace {

constexpr std::size_t kMostText = UINT32_MAX;

// Where the next short lists of texts go. The names of many shards share an allocation that the system takes
// back whole: those of each shard would lie among what reading it takes for a moment, and keep the heap from
// shrinking.
constexpr std::size_t kSharedBytes = std::size_t{256} << 10;
struct Shared {
  std::mutex mutex = {};
  void* block = nullptr;  // a Block with a reference for this pointer
  std::size_t used = kSharedBytes;
};
constinit Shared shared;

}  // namespace

// The empty text hashes to 0, so that the empty name needs no block.
std::uint32_t name_hash(std::string_view text) { return static_cast<std::uint32_t>(text_hash(text)); }

Name::Block* Name::make_block(std::size_t text_bytes, std::size_t references) {
  return new (::operator new(sizeof(Block) + text_bytes)) Block{{references}};
}

void Name::release() {
  block_->~Block();
  ::operator delete(block_);
}

Name::Name(Block* block, std::size_t at, std::string_view text)
    : block_(block),
      place_(static_cast<std::uint32_t>(at | std::min<std::size_t>(text.size(), kLong) << kAtBits)),
      hash_(name_hash(text)) {
  char* to = reinterpret_cast<char*>(block + 1) + at;
  if (const auto length = static_cast<std::uint32_t>(text.size()); length >= kLong) {
    std::memcpy(to, &length, sizeof length);
    to += sizeof length;
  }
  std::memcpy(to, text.data(), text.size());
}

Name::Name(std::string_view text) {
  if (text.empty()) return;
  if (text.size() > kMostText) throw Error(ErrorCode::limit, "a tensor name of more than 4 GiB");
  *this = Name(make_block(bytes_of(text), 1), 0, text);
}

std::vector<Name> Name::many(std::span<const std::string_view> texts) {
  constexpr std::size_t kMostBlock = kMostAt + std::size_t{1};  // the last text begins before it
  const auto place_for = [](std::size_t bytes, std::size_t count) -> std::pair<Block*, std::size_t> {
    if (count == 0) return {nullptr, 0};
    if (bytes > kSharedBytes / 4) return {make_block(bytes, count), 0};
    const std::lock_guard lock(shared.mutex);
    if (bytes > kSharedBytes - shared.used) {
      Block* const fresh = make_block(kSharedBytes, 1);
      Name before;  // lets go of it
      before.block_ = static_cast<Block*>(std::exchange(shared.block, fresh));
      shared.used = 0;
    }
    auto* const block = static_cast<Block*>(shared.block);
    block->references.fetch_add(count, std::memory_order_relaxed);
    return {block, std::exchange(shared.used, shared.used + bytes)};
  };
  std::vector<Name> names;
  names.reserve(texts.size());
  for (std::size_t begin = 0; begin < texts.size();) {
    std::size_t end = begin, bytes = 0, filled = 0;
    for (; end < texts.size() && bytes < kMostBlock; ++end) {
      if (texts[end].size() > kMostText - kMostBlock) break;  // gets a block of its own, below
      if (!texts[end].empty()) bytes += bytes_of(texts[end]), ++filled;
    }
    if (end == begin) {
      names.emplace_back(texts[begin++]);
      continue;
    }
    auto [block, at] = place_for(bytes, filled);
    for (; begin < end; ++begin) {
      if (texts[begin].empty()) {
        names.emplace_back();
        continue;
      }
      names.push_back(Name(block, at, texts[begin]));
      at += bytes_of(texts[begin]);
    }
  }
  return names;
}

}  // namespace loadline::graph
