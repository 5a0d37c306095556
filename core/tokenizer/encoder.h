// Turns texts into token ids, and token ids into texts, with the BPE or WordPiece vocabulary of a
// tokenizer.json: what GGUF keys need of an encoder.
#pragma once

#include "core/tokenizer/tokenizer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::tokenizer {

// May be used from several threads.
class Encoder {
 public:
  // Compiles patterns and lays out the vocabulary; `tokenizer` must outlive it. Throws Error{malformed |
  // unsupported | limit}, naming the file and the entry, and Error{usage} for another kind of vocabulary.
  explicit Encoder(const Tokenizer& tokenizer);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  // The ids of a UTF-8 text. `special` adds what the post-processor puts around a text. Throws
  // Error{malformed} for a text that is not UTF-8 or has characters for which the vocabulary has no piece,
  // and Error{limit} for a pattern without end.
  std::vector<std::uint32_t> encode(std::string_view text, bool special) const;

  // The text of ids, special tokens among them, as the tokenizer's decoder joins it. Unknown ids are left
  // out.
  std::string decode(const std::vector<std::uint32_t>& ids) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loadline::tokenizer
