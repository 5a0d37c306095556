// The weights of two models side by side, also of a Hugging Face model and its GGUF file.
#pragma once

#include "core/base/progress.h"
#include "core/inspect/model_differences.h"

#include <string>
#include <vector>

namespace loadline::report {

struct MatchedModels {
  inspect::Matching match;
  bool mapped = false;       // under llama.cpp's names: one model is the other's GGUF file
  std::string problem = {};  // why they are not, where they should be
};

// As match_weights(), but where one model is a GGUF file and the other has a map to llama.cpp's names, the
// weights of the other are what its GGUF file should hold.
MatchedModels match_models(const graph::MetaGraph& a, const graph::MetaGraph& b);

// As diff_metadata(), but where match_models() has `mapped` one of the models, its keys are those that its
// GGUF file should hold, and keys that describe a model or depend on types and files are left out. Where keys
// cannot be worked out, `problem` says why: the tokenizer's are left out then, or all of them.
std::vector<inspect::MetadataDifference> diff_model_metadata(const graph::MetaGraph& a,
                                                             const graph::MetaGraph& b, bool mapped,
                                                             Progress& progress, std::string& problem);

}  // namespace loadline::report
