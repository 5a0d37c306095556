// The way back: a GGUF file beside, or as, the Hugging Face model.
#pragma once

#include "core/io/source_file.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "exporters/exporter.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::exporters {

// --- A Hugging Face model beside a GGUF file of it: what each tensor of the file should hold.

// The tensors that a GGUF file of `model` has, without a cast, each as a recipe over `model`. Where `gguf`
// has several of them as one tensor, or one of them as several, as llama.cpp also runs them, so have the
// slots. Nothing unless `model` has a map to llama.cpp's names and `gguf` is a file that uses those names.
// Throws as gguf_model() does.
std::optional<std::vector<Slot>> counterparts(const graph::MetaGraph& model, const graph::MetaGraph& gguf);

// The keys that a GGUF file of `model` has and that say how the model runs: general.architecture, the
// architecture's own, and the tokenizer's. Those that describe or depend on types and files are left out.
// Arrays lie in `header`, which stands for the file. Nothing where counterparts() gives nothing; throws as
// the exporter's layout() does without a tokenizer.
struct CounterpartKeys {
  graph::MetaGraph graph;  // metadata alone
  io::SourceFile header;
  std::string problem = {};  // why the tokenizer's keys are not among them; empty if they are
};
std::optional<CounterpartKeys> counterpart_keys(const graph::MetaGraph& model, const graph::MetaGraph& gguf);
// Whether counterpart_keys() has keys like this one.
bool says_how_it_runs(std::string_view key);

// --- A GGUF file as the Hugging Face model that it was made from, as far as the file knows it.

struct HuggingFaceModel {
  std::vector<Slot> slots = {};                                   // without offsets
  std::string config = {};                                        // config.json
  std::vector<tokenizer::HuggingFaceTokenizer::File> texts = {};  // beside it
  std::vector<std::string> held_keys =
      {};  // of the file's metadata, whose content is in those, or which tell of the file alone
  std::vector<std::string> remarks = {};  // sentences: what settings that no key says are taken to be
  std::vector<std::string> lost = {};     // sentences: what the file does not say, or cannot be said
};

// Nothing for a model that is no GGUF file of a family that has a map, where names are to be kept, and for a
// file with tensors under the Hugging Face model's own names. Every tensor becomes `options.outtype`; without
// one, the type that most numbers of the file have, and BF16 for quantized ones. Reads the tokenizer's arrays
// from the file. Throws Error{unsupported | malformed} for tensors that are missing, or of other shapes than
// the file's keys say.
std::optional<HuggingFaceModel> hugging_face_model(const graph::MetaGraph& graph,
                                                   const ExportOptions& options);

}  // namespace loadline::exporters
