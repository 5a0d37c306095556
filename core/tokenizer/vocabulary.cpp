// Pieces by text in a hash table, by id in their sorted list.
#include "core/tokenizer/vocabulary.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {

std::string byte_piece(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

Vocabulary::Vocabulary(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  ids_.reserve(tokenizer.pieces.size());
  for (const VocabularyPiece& piece : tokenizer.pieces) ids_[piece.text] = piece.id;
  for (unsigned byte = 0; byte < 256; ++byte) bytes_[byte] = id(byte_piece(static_cast<unsigned char>(byte)));
}

std::optional<std::uint32_t> Vocabulary::id(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::text(std::uint32_t id) const {
  auto found = std::ranges::upper_bound(tokenizer_.pieces, id, {}, &VocabularyPiece::id);
  if (found == tokenizer_.pieces.begin() || (--found)->id != id) return nullptr;
  return &found->text;
}

}  // namespace loadline
