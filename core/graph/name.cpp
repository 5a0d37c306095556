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

namespace {

// By text: the position of a longer one of at most `most` bytes that begins with it, or its own. Files list
// "a.weight" right before "a.weight_scale", or all scales first and then the weights in the same order.
std::vector<std::uint32_t> longer_texts(std::span<const std::string_view> texts, std::size_t most) {
  constexpr std::size_t kTries = 4;
  std::vector<std::uint32_t> longer(texts.size());
  std::size_t next = 0;  // behind the last that was found before its beginning
  for (std::size_t i = 0; i < texts.size(); ++i) {
    longer[i] = static_cast<std::uint32_t>(i);
    const std::string_view text = texts[i];
    const auto begins = [&](std::size_t at) {
      return texts[at].size() > text.size() && texts[at].size() <= most && texts[at].starts_with(text);
    };
    if (text.empty()) continue;
    if (i + 1 < texts.size() && begins(i + 1)) {
      longer[i] = static_cast<std::uint32_t>(i + 1);
      continue;
    }
    for (std::size_t at = next; at < std::min(i, next + kTries); ++at) {
      if (!begins(at)) continue;
      longer[i] = static_cast<std::uint32_t>(at);
      next = at + 1;
      break;
    }
  }
  return longer;
}

}  // namespace

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
    const auto some = texts.subspan(begin, end - begin);
    std::vector<std::uint32_t> longer = longer_texts(some, kLong - 1);
    std::vector<std::uint32_t> places(some.size());
    std::uint32_t used = 0;
    for (std::size_t i = 0; i < some.size(); ++i)
      if (longer[i] == i && !some[i].empty())
        places[i] = std::exchange(used, used + static_cast<std::uint32_t>(bytes_of(some[i])));
    const auto [block, from] = place_for(used, filled);
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::size_t of = i;
      while (longer[of] != of) of = longer[of] = longer[longer[of]];  // to ever longer ones
      names.push_back(some[i].empty() ? Name() : Name(block, from + places[of], some[i]));
    }
    begin = end;
  }
  return names;
}

}  // namespace loadline::graph
