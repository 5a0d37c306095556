// Finds added tokens in a text, before it is normalised and after.
#pragma once

#include "core/tokenizer/byte_trie.h"
#include "core/tokenizer/normalize.h"
#include "core/tokenizer/pieces.h"
#include "core/tokenizer/tokenizer.h"

#include <vector>

namespace loadline {

class AddedTokens {
 public:
  // Both must outlive it.
  AddedTokens(const Tokenizer& tokenizer, const Normalizers& normalizers);

  // The text between the tokens is normalised; empty pieces are left out.
  std::vector<TextPiece> extract(std::string_view text) const;

  // The token with this id; null if there is none.
  const AddedToken* find(std::uint32_t id) const;
  const AddedToken* find(std::string_view text) const;

 private:
  std::vector<TextPiece> split(const TextPiece& piece, const ByteTrie& trie) const;

  const Tokenizer& tokenizer_;
  const Normalizers& normalizers_;
  ByteTrie raw_, normalized_;  // positions in the tokenizer's list
};

}  // namespace loadline
