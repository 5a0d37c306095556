// How a model family becomes a GGUF file that llama.cpp runs, as data: metadata keys and tensors as functions
// of config.json. Read from assets/gguf/*.json:
//
//   {"architecture": "'llama'",              an expression: general.architecture, and the prefix of other
//   keys
//    "model_types": ["llama", ...],          as in architectures (core/forward/architecture.h)
//    "classes": ["LlamaForCausalLM", ...],
//    "let": {"d": "hidden_size", ...},
//    "prefix": ["model."], "spellings": {},  as in architectures
//    "refuse": {"norm_topk_prob must be true": "moe and not norm_topk_prob"},   models that would run wrongly
//    "keys": ["embedding_length u32 = d", ...],       absent where the value is null
//    "tensors": ["token_embd = model.embed_tokens", "each i in L: layer @blk.{i} = model.layers.{i}", ...],
//    "layer": ["attn_q = self_attn.q_proj | permute(H)", ...],   other lists are blocks that loops name
//    "f32": ["*.ffn_gate_inp.weight"],       tensors that stay in F32 whatever the output's type
//    "drop": ["*.rotary_emb.inv_freq"]}      tensors of the source that have no place in the file; "{L}" as
//    in names
//
// Source: llama.cpp's own converter and gguf-py's table of names, compared key by key and tensor by tensor in
// tests/interop/test_gguf_names.py.
#pragma once

#include "core/forward/model_config.h"
#include "core/forward/name_rule.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

enum class GgufType : std::uint8_t { u32, f32, boolean, text };

struct GgufKeyRule {
  std::string name = {};  // "embedding_length"
  bool whole = false;     // "general." or "tokenizer.": no architecture before it
  GgufType type{};
  Expression value = {};
};

struct GgufFamily {
  Expression architecture = {};
  std::string path = {};  // of the asset, for messages
  std::vector<std::string> model_types = {};
  std::vector<std::string> classes = {};
  std::vector<std::pair<std::string, Expression>> let = {};
  std::vector<std::pair<std::string, Expression>> refuse = {};  // a reason, and when it holds
  std::vector<GgufKeyRule> keys = {};
  std::vector<NameRule> tensors = {};
  std::map<std::string, std::vector<NameRule>, std::less<>> blocks = {};
  std::vector<std::string> prefixes = {};  // of names in the source: some files omit or add them
  std::vector<std::pair<std::string, std::string>> spellings = {};  // endings, and those of older files
  std::vector<std::string> f32 = {};                                // globs over names in the file
  std::vector<std::string> drop = {};                               // globs over names in the source
};

// Throws Error{malformed | limit} naming `path`, line and column.
GgufFamily parse_gguf_family(std::string_view json, const std::string& path);
std::span<const GgufFamily> built_in_gguf_families();
// By class name, then by model_type; null if there is none.
const GgufFamily* find_gguf_family(const ModelConfig& config);

}  // namespace loadline
