// How a family becomes a GGUF file and back, as data: keys, tensors, rules of names.
#pragma once

#include "core/assets/expression.h"
#include "core/forward/family/model_config.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::forward {

// --- One line of a name map: a tensor of the new file, and the chain that it comes from.
//
//   line    := name "=" chain ["if" expr] | "each" name "in" expr ":" block "@" name "=" name ["if" expr]
//   chain   := operand {"|" step}
//   operand := name | "stack" name "in" expr ":" name | "join" "(" chain {"," chain} ")" | "values" "(" expr
//   ")" step    := word ["(" expr {"," expr} ")"]
//
// A name may hold expressions: "{i}". Behind both names stand the endings ".weight" and ".bias", whichever
// the source has, unless "!" follows: then the name is whole. "stack" puts tensors of one shape behind each
// other along a new first dimension, "join" along the first that they have. A step:
//
//   permute(h)             rows of h heads: the two halves of a head become alternating rows
//   turn(a, b)             rows in a x b blocks become b x a blocks, whatever lies in a block
//   part(axis, first, n)   positions of a dimension
//   half(axis, 0 or 1)     the first or second half of a dimension
//   shape(a, b, ...)       other dimensions for the same numbers
//   transpose              the last two dimensions; a vector stays as it is
//   add(x)                 a number to each, in F32

enum class NameStepKind : std::uint8_t {
  source,
  values,
  stack,
  join,
  permute,
  turn,
  part,
  half,
  shape,
  transpose,
  add
};

// Inputs are positions of earlier steps; the last step is the result.
struct NameRuleStep {
  NameStepKind kind{};
  assets::AssetPlace place = {};
  std::vector<std::uint32_t> inputs = {};
  std::string name = {};      // source, stack: with its "{i}"
  bool whole = false;         // no ending behind the name
  std::string variable = {};  // stack
  std::vector<assets::Expression> arguments = {};
};

struct NameRule {
  assets::AssetPlace place = {};
  std::string name = {};  // in the new file, with its "{i}"; of a loop, the prefix
  bool whole = false;
  std::vector<NameRuleStep> steps = {};
  assets::Expression condition = {};  // an empty text means always
  // the fields of a loop
  std::string variable = {};
  assets::Expression count = {};
  std::string block = {};
  std::string source = {};  // the prefix of the sources' names

  bool loop() const { return !block.empty(); }
};

// Throws Error{malformed} at the character that does not fit.
NameRule parse_name_rule(std::string_view text, const assets::AssetPlace& place);

// --- How a model family becomes a GGUF file that llama.cpp runs, as data: metadata keys and tensors as
// functions of config.json. Read from assets/gguf/*.json:
//
//   {"architecture": "'llama'",              an expression: general.architecture, and the prefix of other
//   keys
//    "model_types": ["llama", ...],          as in architectures (core/forward/family/architecture.h)
//    "classes": ["LlamaForCausalLM", ...],
//    "let": {"d": "hidden_size", ...},
//    "prefix": ["model."], "spellings": {},  as in architectures
//    "rope": ["default", "linear", "yarn"],  rope types whose keys llama.cpp's architecture follows
//    "settings": {"hidden_act": "(value ?? 'silu') == 'silu'"},   when llama.cpp computes what a setting says
//    "notes": {"it does not scale logits": "tie_word_embeddings"},   what llama.cpp does in another way
//    "keys": ["embedding_length u32 = d", ...],       absent where the value is null
//    "tensors": ["token_embd = model.embed_tokens", "each i in L: layer @blk.{i} = model.layers.{i}", ...],
//    "layer": ["attn_q = self_attn.q_proj | permute(H)", ...],   other lists are blocks that loops name
//    "f32": ["*.ffn_gate_inp.weight"],       tensors that stay in F32 whatever the output's type
//    "drop": ["*.rotary_emb.inv_freq"],      tensors of the source that have no place in the file; "{L}" as
//    in names
//    "reads": ["llama", "qwen2"],            values of general.architecture that the rest reads
//    "config": ["hidden_size int = embedding_length", ...],   config.json from a file's keys; gguf_map.h
//    "remarks": {"its base is taken to be 10000": "not has('rope_freqs.weight')"},   what no key says
//    "flags": {"latent": "has('blk.0.attn_k_b.weight')"}}   names for the conditions of architectures
//
// A setting that has a row under "settings" is accounted for while its expression holds, where it is absent
// too; in it, `value` is the setting's and `given` says whether config.json has the key. Any other setting is
// accounted for if an expression reads it. With "rope", the keys rope.scaling.* are written and the settings
// of yarn checked.
//
// Types of "config" are int, real, bool, str, list, and let: a name for later lines only. "?" behind a type
// writes null. Its expressions see the lines before them and the file's keys, without the architecture's
// prefix; texts of arrays count only: len(tokenizer.ggml.tokens). Of tensors they see
// has('token_embd.weight'), side(name, axis), numbers(name), largest(name); of lists one(list), if all are
// alike, and choose(list, a, b) by the truth of each; and dtype(), the type of most weights.
//
// Source: llama.cpp's own converter and gguf-py's table of names, compared key by key and tensor by tensor in
// tests/interop/test_gguf_names.py.

enum class GgufType : std::uint8_t { u32, f32, boolean, text };

struct GgufKeyRule {
  std::string name = {};  // "embedding_length"
  bool whole = false;     // "general." or "tokenizer.": no architecture before it
  GgufType type{};
  assets::Expression value = {};
};

enum class ConfigType : std::uint8_t { whole, real, boolean, text, list, local };

struct ConfigRule {
  std::string name = {};  // "rope_scaling.factor": a field of an object
  ConfigType type{};
  bool write_null = false;  // else the setting is absent where the value is null
  assets::Expression value = {};
};

struct GgufFamily {
  assets::Expression architecture = {};
  std::string path = {};  // of the asset, for messages
  std::vector<std::string> model_types = {};
  std::vector<std::string> classes = {};
  std::vector<std::pair<std::string, assets::Expression>> let = {};
  std::vector<std::string> rope = {};
  std::vector<std::pair<std::string, assets::Expression>> settings =
      {};  // globs, and when they are accounted for
  std::vector<std::pair<std::string, assets::Expression>> notes =
      {};  // a remark for whoever runs the file, and when it holds
  std::vector<GgufKeyRule> keys = {};
  std::vector<NameRule> tensors = {};
  std::map<std::string, std::vector<NameRule>, std::less<>> blocks = {};
  std::vector<std::string> prefixes = {};  // of names in the source: some files omit or add them
  std::vector<std::pair<std::string, std::string>> spellings = {};  // endings, and those of older files
  std::vector<std::string> f32 = {};                                // globs over names in the file
  std::vector<std::string> drop = {};                               // globs over names in the source
  std::vector<std::string> reads = {};                              // values of general.architecture
  std::vector<ConfigRule> config = {};
  std::vector<std::pair<std::string, assets::Expression>> remarks = {};  // a remark, and when it holds
  std::vector<std::pair<std::string, assets::Expression>> flags = {};
};

// Throws Error{malformed | limit} naming `path`, line and column.
GgufFamily parse_gguf_family(std::string_view json, const std::string& path);
std::span<const GgufFamily> built_in_gguf_families();
// By class name, then by model_type; null if there is none.
const GgufFamily* find_gguf_family(const ModelConfig& config);
// The word under "reads" for any architecture: the keys that most have, for an estimate.
inline constexpr std::string_view kAnyArchitecture = "*";
// The family that reads files with this general.architecture; null if there is none.
const GgufFamily* find_gguf_reader(std::string_view architecture);

}  // namespace loadline::forward
