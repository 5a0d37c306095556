// A Hugging Face model beside a GGUF file of it: what each tensor of the file should hold.
#pragma once

#include "core/io/source_file.h"
#include "exporters/exporter.h"

#include <optional>
#include <string_view>
#include <vector>

namespace loadline {

// The tensors that a GGUF file of `model` has, without a cast, each as a recipe over `model`. Where `gguf`
// has several of them as one tensor, or one of them as several, as llama.cpp also runs them, so have the
// slots. Nothing unless `model` has a map to llama.cpp's names and `gguf` is a file that uses those names.
// Throws as gguf_model() does.
std::optional<std::vector<Slot>> counterparts(const MetaGraph& model, const MetaGraph& gguf);

// The keys that a GGUF file of `model` has and that say how the model runs: general.architecture, the
// architecture's own, and the tokenizer's. Those that describe or depend on types and files are left out.
// Arrays lie in `header`, which stands for the file. Nothing where counterparts() gives nothing; throws as
// the exporter's layout() does without a tokenizer.
struct CounterpartKeys {
  MetaGraph graph;  // metadata alone
  SourceFile header;
  std::string problem = {};  // why the tokenizer's keys are not among them; empty if they are
};
std::optional<CounterpartKeys> counterpart_keys(const MetaGraph& model, const MetaGraph& gguf);
// Whether counterpart_keys() has keys like this one.
bool says_how_it_runs(std::string_view key);

}  // namespace loadline
