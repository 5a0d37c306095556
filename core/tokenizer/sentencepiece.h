// Encodes with a SentencePiece model, as its own library does.
#pragma once

#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/vocabulary.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace loadline {

class SentencePieceModel {
 public:
  // The tokenizer must outlive it. Throws Error{malformed}, naming the file and the piece.
  explicit SentencePieceModel(const Tokenizer& tokenizer);

  // Any bytes: what is not UTF-8 counts as U+FFFD.
  std::vector<std::uint32_t> encode(std::string_view text) const;
  std::string normalize(std::string_view text) const;

 private:
  struct Found {
    std::size_t bytes = 0;  // of the text
    std::string_view text = {};
  };
  struct Part {
    std::string_view text;
    std::uint32_t id;
  };
  Found normalized_prefix(std::string_view text) const;
  std::uint32_t id_of(std::string_view piece) const;
  // Bytes of the user-defined piece, or of the character, that `text` begins with.
  std::pair<std::size_t, bool> symbol(std::string_view text) const;
  std::vector<Part> encode_unigram(std::string_view text) const;
  std::vector<Part> encode_bpe(std::string_view text) const;
  std::vector<Part> encode_words(std::string_view text) const;
  std::vector<Part> encode_characters(std::string_view text) const;

  const Tokenizer& tokenizer_;
  Charsmap charsmap_;
  std::unordered_map<std::string_view, std::uint32_t> normal_, reserved_;
  std::vector<std::uint32_t> bytes_;  // the ids of the 256 byte pieces, if there are any
  ByteTrie pieces_, user_defined_;
  float least_ = 0, most_ = 0;
};

}  // namespace loadline
