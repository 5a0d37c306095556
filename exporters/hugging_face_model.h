// A GGUF file as the Hugging Face model that it was made from, as far as the file knows it.
#pragma once

#include "exporters/exporter.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline {

// A file of the model's folder that is made anew.
struct TextFile {
  std::string name;  // "tokenizer.json"
  std::string text;
};

struct HuggingFaceModel {
  std::vector<Slot> slots = {};        // without offsets
  std::string config = {};             // config.json
  std::vector<TextFile> texts = {};    // beside it
  std::vector<std::string> lost = {};  // sentences: what the file does not say, or cannot be said
};

// Whether a model of this file gets the names, forms and config.json of Hugging Face: for GGUF files of a
// family that has a map, unless names are to be kept.
bool restores_model(const MetaGraph& graph, const ExportOptions& options);

// Every tensor becomes `options.outtype`; without one, the type that most numbers of the file have, and BF16
// for quantised ones. Reads the tokenizer's arrays from the file. Throws Error{unsupported | malformed} for
// tensors that are missing, left over or of other shapes than the file's keys say.
HuggingFaceModel hugging_face_model(const MetaGraph& graph, const ExportOptions& options);

}  // namespace loadline
