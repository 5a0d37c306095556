// Texts with a number each, found as prefixes of another text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace loadline {

class ByteTrie {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // A text that is there already keeps its first number.
  void add(std::string_view text, std::uint32_t number);

  // Calls each(bytes, number) for every text that `text` begins with, the shortest first.
  template <typename Each>
  void for_each_prefix(std::string_view text, Each each) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto next = child(node, static_cast<unsigned char>(text[i]));
      if (next == kNone) return;
      node = next;
      if (numbers_[node] != kNone) each(i + 1, numbers_[node]);
    }
  }

  struct Found {
    std::size_t bytes = 0;
    std::uint32_t number = 0;
  };
  std::optional<Found> longest(std::string_view text) const;

 private:
  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return roots_.empty() ? kNone : roots_[byte];
    const auto found = children_.find(static_cast<std::uint64_t>(node) << 8 | byte);
    return found == children_.end() ? kNone : found->second;
  }

  std::vector<std::uint32_t> numbers_ = {kNone};
  std::vector<std::uint32_t> roots_ = {};  // children of the root, by byte
  std::unordered_map<std::uint64_t, std::uint32_t> children_ = {};
};

}  // namespace loadline
