// The weights of two models side by side, also of a Hugging Face model and its GGUF file.
#pragma once

#include "core/inspect/match_weights.h"

#include <string>

namespace loadline::report {

struct MatchedModels {
  Matching match;
  bool mapped = false;       // under llama.cpp's names: one model is the other's GGUF file
  std::string problem = {};  // why they are not, where they should be
};

// As match_weights(), but where one model is a GGUF file and the other has a map to llama.cpp's names, the
// weights of the other are what its GGUF file should hold.
MatchedModels match_models(const MetaGraph& a, const MetaGraph& b);

}  // namespace loadline::report
