// The operators that assets may use, and the line of an asset that states one.
#pragma once

#include "core/assets/expression.h"
#include "core/graph/dtype_and_shape.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::forward {

// --- The operators that assets may use, and their attributes.

struct OperatorInfo {
  std::string_view name;
  std::string_view attributes;  // those that size the result, then those for profiles; separated by spaces
};

// One row for each operator; lowering.cpp has the rules, in the same order.
//
//   cols   linear: the width of the result, where each head has its own part of the weight
//   rank   attn: the width of the latent vectors that take the place of keys and values
//
// The attributes for profiles describe how the modules of transformers are written:
//   freed, stays, kept, inner, local   how long a result is referenced: not beyond its use; to the end of the
//                                      loop; to the end of the turn; a norm inside a module; a local name,
//                                      to the next "add" or to the operator that the attribute names
//   offset                             unused rows at the start of a table of positions
//   apart                              an operator of its own adds the bias
//   upcast         attn: softmax in F32
//   sinks          attn: an extra column of scores for each head's sink
//   position_bias  attn: a bias in the place of a mask
//   scores         attn: how many arrays of the scores' size are held
//   returned       attn: the caller gets the scores
//   shared_kv, copied  attn: all heads share the keys by views; sdpa's result is copied to order its heads
//   steps                              buffers beside the input of an activation written as several steps
//   every_expert, clamped              all rows pass through all experts; the gates are clamped first
//   wide                               elements of a scan's state that are F32 whatever the cache's type is
//   chunk                              positions that a scan processes together
inline constexpr std::array<OperatorInfo, 19> kOperators = {{
    {"embed", "freed offset"},
    {"norm", "stays kept inner local"},
    {"linear", "rows layout cols local kept apart"},
    {"table", "cols dims"},
    {"rope", "local"},
    {"cache", "window fixed once"},
    {"attn", "heads kv dim vdim rank causal upcast sinks position_bias scores returned shared_kv copied"},
    {"act", "steps kept"},
    {"mul", ""},
    {"add", "stays"},
    {"scale", ""},
    {"split", "by"},
    {"concat", "cols rows local"},
    {"route", "k"},
    {"experts", "count k mid every_expert clamped"},
    {"conv", "rows"},
    {"scan", "state wide states heads chunk"},
    {"take", "rows"},
    {"cap", ""},
}};

// Null if no operator has this name.
const OperatorInfo* find_operator(std::string_view name);

// The names of all operators for messages: "embed, norm, ...".
std::string operator_list();

// --- One line of an architecture asset: an operator, or a loop over a block of lines.
//
//   line   := outputs "=" kind {input} {weight} {key "=" expr} ["if" expr]
//           | "each" name "in" expr ["to" expr] ":" block ["@" prefix] ["if" expr]
//           | "have" ({weight} ["if" expr] | "each" ...)
//   weight := "@" name "[" [expr {"," expr}] "]" {flag}
//   flag   := "+b" ["(" expr ")"] | "!" | ":" dtype | "~" | "?"
//
// A name may hold expressions: "{i}", "{L + i}". ".weight" is appended to the name unless the flag "!"
// follows.
// "+b" expects NAME.bias too; "+b(expr)" does so only if expr is true, when there is no file. ":F32" is the
// dtype when there is no file; "~" is the model's dtype, even if linear weights are quantized. "?" makes the
// tensor optional. Tensors listed by "have" are stored but take no part in the computation. A loop runs from
// 0, or from the first number, and ends before the last number.

struct WeightSpec {
  assets::AssetPlace place = {};
  std::string name = {};  // with its "{i}"; see expand_name() in tensor_names.h
  std::vector<assets::Expression> shape = {};
  bool bare = false;  // no ".weight" behind the name
  bool bias = false;
  assets::Expression bias_if = {};  // an empty text means always
  std::optional<graph::DType> dtype = {};
  bool keep = false;      // never quantized
  bool optional = false;  // a file may lack it
};

struct OpLine {
  enum class Kind { op, each, have };
  Kind kind = Kind::op;
  assets::AssetPlace place = {};
  bool stored_only = false;  // "have": takes no part in the computation
  std::string op = {};       // "linear", "attn"
  std::vector<std::string> outputs = {};
  std::vector<std::string> inputs = {};
  std::vector<WeightSpec> weights = {};
  std::vector<std::pair<std::string, assets::Expression>> attributes = {};
  assets::Expression condition = {};  // an empty text means always
  // the fields of a loop:
  std::string variable = {};
  assets::Expression first = {};  // an empty text means 0
  assets::Expression end = {};
  std::string block = {};
  std::string prefix = {};  // with its "{i}"
};

// Whether `name` is B, S, P or T: batch, new tokens, past, and S + P. Attributes see these names; no other
// name may be equal to one of them.
inline bool is_pass_size(std::string_view name) {
  return name == "B" || name == "S" || name == "P" || name == "T";
}

// Parses one line. Throws Error{malformed} at the character that does not fit.
OpLine parse_op_line(std::string_view text, const assets::AssetPlace& place);

}  // namespace loadline::forward
