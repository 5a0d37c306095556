// At each place the longest token counts; what it covers is not looked at again, even if its flags refuse it.
#include "core/tokenizer/added_tokens.h"

#include "core/tokenizer/unicode.h"

#include <algorithm>

namespace loadline {
namespace {

// The character in front of `end`.
char32_t last_character(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return next_character(text, at);
}

bool is_single_word(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && is_word(last_character(text, begin))) return false;
  return end == text.size() || !is_word(next_character(text, end));
}

// `begin` without the white space in front of it, but not before `least`.
std::size_t without_space_before(std::string_view text, std::size_t begin, std::size_t least) {
  while (begin > least) {
    std::size_t at = begin - 1;
    while (at > least && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    std::size_t end = at;
    if (!is_white_space(next_character(text, end))) break;
    begin = at;
  }
  return begin;
}

std::size_t with_space_behind(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    std::size_t at = end;
    if (!is_white_space(next_character(text, at))) break;
    end = at;
  }
  return end;
}

}  // namespace

AddedTokens::AddedTokens(const Tokenizer& tokenizer, const Normalizers& normalizers)
    : tokenizer_(tokenizer), normalizers_(normalizers) {
  for (std::size_t i = 0; i < tokenizer.added.size(); ++i) {
    const AddedToken& token = tokenizer.added[i];
    if (!token.normalized) {
      raw_.add(token.text, static_cast<std::uint32_t>(i));
      continue;
    }
    TextPiece piece = {.text = token.text, .first_bytes = 0, .token = {}};
    normalizers.apply(piece);
    normalized_.add(piece.text, static_cast<std::uint32_t>(i));
  }
}

std::vector<TextPiece> AddedTokens::extract(std::string_view text) const {
  if (text.empty()) return {};
  const TextPiece whole = {.text = std::string(text), .first_bytes = character_bytes(text[0]), .token = {}};
  std::vector<TextPiece> pieces;
  for (TextPiece& piece : split(whole, raw_)) {
    if (piece.token) {
      pieces.push_back(std::move(piece));
      continue;
    }
    normalizers_.apply(piece);
    for (TextPiece& part : split(piece, normalized_)) pieces.push_back(std::move(part));
  }
  return pieces;
}

std::vector<TextPiece> AddedTokens::split(const TextPiece& piece, const ByteTrie& trie) const {
  const std::string_view text = piece.text;
  std::vector<TextPiece> pieces;
  std::size_t covered = 0;
  const auto add = [&](std::size_t begin, std::size_t end, std::optional<std::uint32_t> token) {
    if (begin == end) return;
    const std::size_t first = piece.first_bytes > begin ? piece.first_bytes - begin : 0;
    pieces.push_back({std::string(text.substr(begin, end - begin)), first, token});
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto found = trie.longest(text.substr(at));
    if (!found) {
      ++at;
      continue;
    }
    const AddedToken& token = tokenizer_.added[found->number];
    std::size_t begin = at, end = at + found->bytes;
    at = end;
    if (token.single_word && !is_single_word(text, begin, end)) continue;
    // what a token before has taken is not taken again
    if (token.lstrip) begin = without_space_before(text, begin, covered);
    begin = std::max(begin, covered);
    if (token.rstrip) end = with_space_behind(text, end);
    add(covered, begin, std::nullopt);
    add(begin, end, token.id);
    covered = end;
  }
  add(covered, text.size(), std::nullopt);
  return pieces;
}

const AddedToken* AddedTokens::find(std::uint32_t id) const {
  const auto found = std::ranges::find(tokenizer_.added, id, &AddedToken::id);
  return found == tokenizer_.added.end() ? nullptr : &*found;
}

const AddedToken* AddedTokens::find(std::string_view text) const {
  const auto found = std::ranges::find(tokenizer_.added, text, &AddedToken::text);
  return found == tokenizer_.added.end() ? nullptr : &*found;
}

}  // namespace loadline
