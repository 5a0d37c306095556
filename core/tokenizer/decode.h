// Joins the texts of tokens as the decoder of a tokenizer.json says.
#pragma once

#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/tokenizer.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline {

class Decoders {
 public:
  // Compiles patterns; throws as Pattern does, naming `tokenizer`'s file and the step.
  explicit Decoders(const Tokenizer& tokenizer);

  // Without a decoder, the texts with spaces between them.
  std::string join(std::vector<std::string> texts) const;

 private:
  struct Step {
    DecoderStep step;
    std::optional<Pattern> pattern;
  };
  static void apply(const Step& step, std::vector<std::string>& texts);
  std::vector<Step> steps_;
};

}  // namespace loadline
