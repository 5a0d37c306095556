// A Hugging Face model beside a GGUF file of it: what each tensor of the file should hold.
#pragma once

#include "exporters/exporter.h"

#include <optional>
#include <vector>

namespace loadline {

// The tensors that a GGUF file of `model` has, without a cast, each as a recipe over `model`. Where `gguf`
// has several of them as one tensor, or one of them as several, as llama.cpp also runs them, so have the
// slots. Nothing unless `model` has a map to llama.cpp's names and `gguf` is a file that uses those names.
// Throws as gguf_model() does.
std::optional<std::vector<Slot>> counterparts(const MetaGraph& model, const MetaGraph& gguf);

}  // namespace loadline
