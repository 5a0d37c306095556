// A GGUF file as the Hugging Face model that it was made from, as far as the file knows it.
#pragma once

#include "core/tokenizer/hugging_face_tokenizer.h"
#include "exporters/exporter.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline {

struct HuggingFaceModel {
  std::vector<Slot> slots = {};                        // without offsets
  std::string config = {};                             // config.json
  std::vector<HuggingFaceTokenizer::File> texts = {};  // beside it
  std::vector<std::string> held_keys =
      {};  // of the file's metadata, whose content is in those, or which tell of the file alone
  std::vector<std::string> remarks = {};  // sentences: what settings that no key says are taken to be
  std::vector<std::string> lost = {};     // sentences: what the file does not say, or cannot be said
};

// Nothing for a model that is no GGUF file of a family that has a map, where names are to be kept, and for a
// file with tensors under the Hugging Face model's own names. Every tensor becomes `options.outtype`; without
// one, the type that most numbers of the file have, and BF16 for quantised ones. Reads the tokenizer's arrays
// from the file. Throws Error{unsupported | malformed} for tensors that are missing, or of other shapes than
// the file's keys say.
std::optional<HuggingFaceModel> hugging_face_model(const MetaGraph& graph, const ExportOptions& options);

}  // namespace loadline
