// What turns one word into token ids: BPE, WordPiece, Unigram, whole words.
#pragma once

#include "core/tokenizer/tokenizer.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace loadline {

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the ids of a word. Throws Error{malformed} for a word with unknown characters if the vocabulary
  // has no piece for them. May be called from several threads.
  virtual void encode(std::string_view word, std::vector<std::uint32_t>& ids) const = 0;
};

// The model of a tokenizer.json, which must outlive it. Throws Error{malformed}, naming the file, for merges
// of pieces that the vocabulary does not have, and Error{usage} for SentencePiece.
std::unique_ptr<WordModel> word_model(const Tokenizer& tokenizer);

}  // namespace loadline
