// Architectures as data: the tensors and operators of a model family, as functions of its config.json. Read
// from assets/architectures/*.json:
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
//    "layer": [...],                    any other list is a block that loops refer to by name (op_line.h)
//    "absent": ["have @rotary.inv_freq[D/2]!:F32"],   tensors that exist at run time only
//    "extra": ["have @h.{i}.attn.bias[1,1,N,N]!:F32"],  buffers that some files store; not parameters
//    "leaves_out": ["vision_config"],   keys of config.json for parts of the model not described here
//    "ignore": ["vision_tower.*"]}      globs of tensors in parts of the model not described here
//
// Attributes of operators also see B, S, P and T = S + P. has('h.{i}.x.weight') says whether a file holds
// that tensor; it is null without a file.
#pragma once

#include "core/forward/family/model_config.h"
#include "core/forward/family/operators.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

struct InputSpec {
  std::string name = {};
  AssetPlace place = {};
  std::vector<Expression> shape = {};
  DType dtype = DType::i64;
};

struct Architecture {
  std::string family = {};
  std::string path = {};  // of the asset, for messages
  std::vector<std::string> model_types = {};
  std::vector<std::string> classes = {};
  std::vector<std::pair<std::string, Expression>> let = {};
  std::vector<InputSpec> inputs = {};
  std::vector<std::string> prefixes = {};
  std::vector<std::pair<std::string, std::string>> spellings = {};
  Expression tie = {};
  std::vector<std::pair<std::string, std::string>> tied = {};  // alias and owner
  std::map<std::string, std::vector<OpLine>, std::less<>> blocks = {};
  std::vector<std::string> ignore = {};
  std::vector<std::string> leaves_out = {};

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

}  // namespace loadline
