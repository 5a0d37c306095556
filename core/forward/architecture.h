// Architectures as data: what a family's config.json and tensor names imply, from
// assets/architectures/*.json.
//
//   {"family": "llama",
//    "model_types": ["llama", ...],     which config.json it is for: by model_type,
//    "classes": ["LlamaForCausalLM"],   or by a name under "architectures"
//    "let": {"d": "hidden_size", ...},  names for expressions; each sees those before it, none is null
//    "inputs": {"ids": "[B, S]:I64"},   what a caller gives; "ids" and "pos" are known without. Sizes see P:
//    an
//                                       encoder that has run before takes [B*(1 - min(P, 1)), S], nothing
//    "prefix": ["model."],              left out, changed, or put before every name by some files
//    "spellings": {".weight": ".gamma"},  endings that older files have instead
//    "tie": "tie_word_embeddings ?? true", "tied": {"lm_head.weight": "model.embed_tokens.weight"},
//    "main": ["x = embed ids @model.embed_tokens[V,d]", "each i in L: layer @model.layers.{i}", ...],
//    "layer": [...],                    any other list is a block that loops name (see op_line.h)
//    "absent": ["have @rotary.inv_freq[D/2]!:F32"],   exist at run time only
//    "extra": ["have @h.{i}.attn.bias[1,1,N,N]!:F32"],  some files store them; no parameters
//    "leaves_out": ["vision_config"],   keys of config.json that stand for parts not described here
//    "ignore": ["vision_tower.*"]}      globs of tensors that belong to parts not described here
//
// Attributes of operators see B, S, P and T = S + P beside what every expression sees. has('h.{i}.x.weight')
// is whether a file holds that tensor; null without a file.
#pragma once

#include "core/forward/model_config.h"
#include "core/forward/op_line.h"

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

  // Lines of a block; none for a name that the asset does not have.
  std::span<const OpLine> block(std::string_view name) const;
};

// Throws Error{malformed | limit} naming `path`, line and column.
Architecture parse_architecture(std::string_view json, const std::string& path);

// Those built in, by family.
std::span<const Architecture> built_in_architectures();

// The one for this configuration: a class name first, then the model_type. Nothing if there is none. See
// ForwardAssets::architecture, which asks a user's own first.
const Architecture* find_architecture(const ModelConfig& config, std::span<const Architecture> among);

}  // namespace loadline
