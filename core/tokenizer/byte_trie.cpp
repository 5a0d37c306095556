// Edges in one hash table, but for those of the root.
#include "core/tokenizer/byte_trie.h"

namespace loadline {

void ByteTrie::add(std::string_view text, std::uint32_t number) {
  if (text.empty()) return;
  if (roots_.empty()) roots_.assign(256, kNone);
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto fresh = static_cast<std::uint32_t>(numbers_.size());
    std::uint32_t next = fresh;
    if (node == 0) {
      if (roots_[byte] == kNone) roots_[byte] = fresh;
      next = roots_[byte];
    } else {
      next = children_.try_emplace(static_cast<std::uint64_t>(node) << 8 | byte, fresh).first->second;
    }
    if (next == fresh) numbers_.push_back(kNone);
    node = next;
  }
  if (numbers_[node] == kNone) numbers_[node] = number;
}

std::optional<ByteTrie::Found> ByteTrie::longest(std::string_view text) const {
  std::optional<Found> best;
  for_each_prefix(text, [&](std::size_t bytes, std::uint32_t number) { best = Found{bytes, number}; });
  return best;
}

}  // namespace loadline
