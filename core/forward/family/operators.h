// One line of an architecture asset: an operator, or a loop over a block of lines.
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
// dtype when there is no file; "~" is the model's dtype, even if linear weights are quantised. "?" makes the
// tensor optional. Tensors listed by "have" are stored but take no part in the computation. A loop runs from
// 0, or from the first number, and ends before the last number.
#pragma once

#include "core/assets/expression.h"
#include "core/graph/dtype_and_shape.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline {

struct WeightSpec {
  AssetPlace place = {};
  std::string name = {};  // with its "{i}"; see expand_name
  std::vector<Expression> shape = {};
  bool bare = false;  // no ".weight" behind the name
  bool bias = false;
  Expression bias_if = {};  // an empty text means always
  std::optional<DType> dtype = {};
  bool keep = false;      // never quantised
  bool optional = false;  // a file may lack it
};

struct OpLine {
  enum class Kind { op, each, have };
  Kind kind = Kind::op;
  AssetPlace place = {};
  bool stored_only = false;  // "have": takes no part in the computation
  std::string op = {};       // "linear", "attn"
  std::vector<std::string> outputs = {};
  std::vector<std::string> inputs = {};
  std::vector<WeightSpec> weights = {};
  std::vector<std::pair<std::string, Expression>> attributes = {};
  Expression condition = {};  // an empty text means always
  // the fields of a loop:
  std::string variable = {};
  Expression first = {};  // an empty text means 0
  Expression end = {};
  std::string block = {};
  std::string prefix = {};  // with its "{i}"
};

// Whether `name` is B, S, P or T: batch, new tokens, past, and S + P. Attributes see these names; no other
// name may be equal to one of them.
inline bool is_pass_size(std::string_view name) {
  return name == "B" || name == "S" || name == "P" || name == "T";
}

// Replaces each "{expr}" in a name by its value. Throws Error{malformed} for a value that is no whole number.
std::string expand_name(std::string_view name, const AssetPlace& place, const Scope& scope);

// Parses one line. Throws Error{malformed} at the character that does not fit.
OpLine parse_op_line(std::string_view text, const AssetPlace& place);

}  // namespace loadline
