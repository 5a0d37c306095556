// Short lists of words, kept as one text with single spaces between the words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace loadline {

inline bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace loadline
