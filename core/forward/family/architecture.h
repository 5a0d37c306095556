// An architecture as data, and the same bound to one model: its operators with their tensors.
#pragma once

#include "core/forward/family/model_config.h"
#include "core/forward/family/operators.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::forward {

// --- Architectures as data: the tensors and operators of a model family, as functions of its config.json.
// Read from assets/architectures/*.json:
//
//   {"family": "llama",
//    "model_types": ["llama", ...],     applies to a config.json with this model_type,
//    "classes": ["LlamaForCausalLM"],   or with one of these names under "architectures"
//    "let": {"d": "hidden_size", ...},  named expressions; each sees the ones before it, none may be null
//    "inputs": {"ids": "[B, S]:I64"},   inputs of the pass; "ids" and "pos" need not be listed. Sizes see P:
//                                       an encoder that runs in the first pass only has the input
//                                       [B*(1 - min(P, 1)), S], which is empty in later passes
//    "prefix": ["model."],              some files omit it, change it, or put it before every name
//    "spellings": {".weight": ".gamma"},  other endings of names, in older files
//    "tie": "tie_word_embeddings ?? true", "tied": {"lm_head.weight": "model.embed_tokens.weight"},
//    "main": ["x = embed ids @model.embed_tokens[V,d]", "each i in L: layer @model.layers.{i}", ...],
//    "layer": [...],                    any other list is a block that loops refer to by name (operators.h)
//    "absent": ["have @rotary.inv_freq[D/2]!:F32"],   tensors that exist at run time only
//    "extra": ["have @h.{i}.attn.bias[1,1,N,N]!:F32"],  buffers that some files store; not parameters
//    "settings": {"moe_layer_freq": "(value ?? 1) == 1"},   globs of settings that no line reads, and when
//                                       they change no size: `value` is the setting's
//    "leaves_out": ["vision_config"],   keys of config.json for parts of the model not described here
//    "ignore": ["vision_tower.*"]}      globs of tensors in parts of the model not described here
//
// Expressions also see `head`, what the class puts on top of the model: 'none' (LlamaModel), 'sequence',
// 'tokens' and 'answers' (LlamaForSequenceClassification, TokenClassification, QuestionAnswering), 'choice',
// 'image', else 'words'; and `labels`, the number of classes. Attributes of operators also see B, S, P and T
// = S + P. has('h.{i}.x.weight') says whether a file holds that tensor; it is null without a file.

struct InputSpec {
  std::string name = {};
  assets::AssetPlace place = {};
  std::vector<assets::Expression> shape = {};
  graph::DType dtype = graph::DType::i64;
};

struct Architecture {
  std::string family = {};
  std::string path = {};  // of the asset, for messages
  std::vector<std::string> model_types = {};
  std::vector<std::string> classes = {};
  std::vector<std::pair<std::string, assets::Expression>> let = {};
  std::vector<InputSpec> inputs = {};
  std::vector<std::string> prefixes = {};
  std::vector<std::pair<std::string, std::string>> spellings = {};
  assets::Expression tie = {};
  std::vector<std::pair<std::string, std::string>> tied = {};  // alias and owner
  std::map<std::string, std::vector<OpLine>, std::less<>> blocks = {};
  std::vector<std::string> ignore = {};
  std::vector<std::string> leaves_out = {};
  std::vector<std::pair<std::string, assets::Expression>> settings =
      {};  // globs, and when they change no size

  // The lines of a block; empty if the asset has no block of that name.
  std::span<const OpLine> block(std::string_view name) const;
};

// Throws Error{malformed | limit} naming `path`, line and column.
Architecture parse_architecture(std::string_view json, const std::string& path);

// The built-in architectures, sorted by family.
std::span<const Architecture> built_in_architectures();

// The architecture for this configuration: first by class name, then by model_type. Null if there is none.
// ForwardAssets::architecture tries a user's own architectures first.
const Architecture* find_architecture(const ModelConfig& config, std::span<const Architecture> among);

// The parts of a configuration that the asset does not describe: "vision_config".
std::vector<std::string> left_out(const Architecture& architecture, const ModelConfig& config);

// --- Applies an architecture to one model: the operators in order, each with the tensors that it uses.

// A tensor that the architecture expects.
struct BoundWeight {
  std::string name = {};    // as the file spells it, if a file has it
  graph::Shape shape = {};  // from the configuration; Claims::disagreements lists other shapes in the file
  graph::DType dtype = graph::DType::f32;
  std::optional<graph::TensorId> tensor = {};    // nothing without a file, or if the file lacks the tensor
  std::vector<graph::TensorId> companions = {};  // of a packed weight, whose codes are `tensor`
};

// An operator of the computation. Values are numbered in the order in which they are made.
struct BoundOp {
  const OpLine* line = nullptr;
  std::uint32_t turn = 0;  // turn of an outermost numbered loop ("@layers.{i}"), over all loops; 0: none
  std::string name = {};   // the module path: "model.layers.3.self_attn.q_proj"
  std::vector<std::uint32_t> inputs = {};
  std::vector<std::uint32_t> outputs = {};
  std::vector<BoundWeight> weights = {};  // the weights of the line, in order; a bias follows its weight
  std::vector<std::pair<std::string, assets::Datum>> attributes = {};
};

// The tensors of an operator's weights, each once: a GGUF file stacks the weights of all experts.
std::vector<graph::TensorId> tensors_of(const BoundOp& op);

// The comparison of the tensors that the architecture expects with the tensors in the files.
struct Claims {
  std::vector<std::string> missing;        // expected, but in no file
  std::vector<graph::TensorId> unclaimed;  // in a file, but neither expected nor ignored
  std::vector<graph::TensorId> ignored;    // in parts of the model that the asset does not describe
  std::vector<graph::TensorId> extra;      // stored buffers: neither parameters nor used
  std::vector<graph::Note> disagreements;  // "config says [4096,4096], the file [4096,1024]"
  std::uint64_t unclaimed_bytes = 0;
};

struct BoundModel {
  const Architecture* architecture = nullptr;
  ModelConfig config;
  graph::DType dtype = graph::DType::f32;  // of the weights, from the configuration
  std::vector<InputSpec> inputs = {};      // input i is value i
  std::vector<std::string> values = {};    // the name of each value, unique
  std::vector<BoundOp> ops = {};
  std::vector<BoundWeight> stored = {};  // in the files, but used by no operator
  std::vector<BoundWeight> asked = {};   // without a file: every tensor that a file would hold, in order
  std::vector<BoundWeight> absent = {};  // exist at run time only
  std::vector<std::pair<std::string, std::string>> tied =
      {};  // names without a tensor of their own, each with the name whose tensor it uses
  std::vector<std::pair<std::string, assets::Datum>> constants = {};  // the names defined by "let"
  Claims claims = {};
  std::vector<Setting> unaccounted = {};  // that may change sizes, and that no line reads
  std::string remark = {};                // without a file: why its sizes may be others
};

// With a graph, its tensors decide which optional tensors exist; without one (nullptr), the configuration
// decides. `flags` are names for expressions that hide the configuration's keys ("latent": 1). The
// architecture must outlive the result. Throws Error{malformed | limit} naming the configuration and the
// place in the asset that the configuration does not fit.
BoundModel bind_architecture(const Architecture& architecture, const ModelConfig& config,
                             const graph::MetaGraph* graph,
                             const std::vector<std::pair<std::string, assets::Datum>>& flags = {});

}  // namespace loadline::forward
