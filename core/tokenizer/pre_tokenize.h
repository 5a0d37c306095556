// Cuts a text into the words that a vocabulary encodes one by one, as a tokenizer.json says.
#pragma once

#include "core/tokenizer/pieces.h"
#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/tokenizer.h"

#include <optional>
#include <vector>

namespace loadline {

class PreTokenizers {
 public:
  // Compiles patterns; throws as Pattern does, naming `tokenizer`'s file and the step.
  explicit PreTokenizers(const Tokenizer& tokenizer);

  // Added tokens stay as they are; no piece of the result is empty.
  std::vector<TextPiece> apply(std::vector<TextPiece> pieces) const;

 private:
  struct Step {
    PreTokenizerStep step;
    std::optional<Pattern> pattern;
  };
  static void apply(const Step& step, TextPiece piece, std::vector<TextPiece>& pieces);
  std::vector<Step> steps_;
};

}  // namespace loadline
