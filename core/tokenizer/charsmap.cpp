// A unit of the double array: bits 0-7 the label of the edge into it (with bit 31 set it holds a value in its
// lower 31 bits), bit 8 whether it has a value, bits 10-30 the offset to its children, times 256 if bit 9 is
// set.
#include "core/tokenizer/charsmap.h"

#include "core/base/error.h"

#include <cstring>

namespace loadline {

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  if (bytes.empty()) return;
  const auto u32 = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  if (bytes.size() < 4)
    throw Error(ErrorCode::malformed, "{}: has {} bytes, too few for its trie's size", where, bytes.size());
  const std::size_t trie = u32(0);
  if (trie > bytes.size() - 4 || trie % 4 != 0 || trie == 0)
    throw Error(ErrorCode::malformed, "{}: a trie of {} bytes in {} bytes", where, trie, bytes.size());
  units_.reserve(trie / 4);
  for (std::size_t at = 4; at < 4 + trie; at += 4) units_.push_back(u32(at));
  replacements_ = bytes.substr(4 + trie);
  if (replacements_.empty() || replacements_.back() != '\0') replacements_ += '\0';
}

std::optional<Charsmap::Rule> Charsmap::longest(std::string_view text) const { return find(text, true); }
std::optional<Charsmap::Rule> Charsmap::shortest(std::string_view text) const { return find(text, false); }

std::optional<Charsmap::Rule> Charsmap::find(std::string_view text, bool longest) const {
  if (units_.empty()) return std::nullopt;
  const auto offset = [&](std::uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); };
  std::optional<Rule> best;
  std::size_t position = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto label = static_cast<unsigned char>(text[i]);
    position ^= label;
    if (position >= units_.size()) break;
    const std::uint32_t unit = units_[position];
    if ((unit & (1u << 31 | 0xFF)) != label) break;
    position ^= offset(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (position >= units_.size()) break;
    const std::size_t value = units_[position] & 0x7FFFFFFF;
    if (value >= replacements_.size()) break;
    best = Rule{i + 1, std::string_view(replacements_.c_str() + value)};
    if (!longest) break;
  }
  return best;
}

}  // namespace loadline
