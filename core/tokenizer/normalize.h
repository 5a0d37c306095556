// Runs the normalizers of a tokenizer.json.
#pragma once

#include "core/tokenizer/charsmap.h"
#include "core/tokenizer/pieces.h"
#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/tokenizer.h"

#include <optional>
#include <vector>

namespace loadline {

class Normalizers {
 public:
  // Compiles patterns; throws as Pattern and Charsmap do, naming `tokenizer`'s file and the step.
  explicit Normalizers(const Tokenizer& tokenizer);

  void apply(TextPiece& piece) const;

 private:
  struct Step {
    NormalizerStep step;
    std::optional<Pattern> pattern;
    std::optional<Charsmap> charsmap;
  };
  static void apply(const Step& step, TextPiece& piece);
  std::vector<Step> steps_;
};

}  // namespace loadline
