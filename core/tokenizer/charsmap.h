// SentencePiece's precompiled normalisation rules: prefixes of texts and what replaces them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// The bytes are: u32 size of the trie in bytes, the trie, and the replacements, each ended by a zero byte.
// The trie is a double array (Susumu Yata's darts-clone) of u32 little-endian units.
class Charsmap {
 public:
  // Throws Error{malformed} that begins with `where`. Empty `bytes` hold no rules.
  Charsmap(std::string_view bytes, const std::string& where);

  struct Rule {
    std::size_t bytes = 0;  // of the text that it replaces
    std::string_view replacement = {};
  };
  // The longest, or the shortest, rule for a beginning of `text`. Views of this object.
  std::optional<Rule> longest(std::string_view text) const;
  std::optional<Rule> shortest(std::string_view text) const;

 private:
  std::optional<Rule> find(std::string_view text, bool longest) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace loadline
