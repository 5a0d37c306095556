// One line of an architecture asset: an operator, or a loop over a block of lines.
//
//   line   := outputs "=" kind {input} {weight} {key "=" expr} ["if" expr]
//           | "each" name "in" expr ["to" expr] ":" block ["@" prefix] ["if" expr]
//           | "have" ({weight} ["if" expr] | "each" ...)
//   weight := "@" name "[" [expr {"," expr}] "]" {flag}
//   flag   := "+b" ["(" expr ")"] | "!" | ":" dtype | "~" | "?"
//
// A name may hold expressions: "{i}", "{L + i}". ".weight" is added to it unless "!" stands behind; "+b"
// expects NAME.bias too ("+b(expr)": where no file says, if expr); ":F32" is its dtype where no file says
// ("~": the model's, even where linear weights are quantised); "?" lets a file do without it. What "have"
// lists is stored but takes no part in the computation. A loop runs from 0, or from the first number to
// before the second.
#pragma once

#include "core/forward/expression.h"
#include "core/graph/dtype.h"

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
  Expression bias_if = {};  // of text "": always
  std::optional<DType> dtype = {};
  bool keep = false;      // never quantised
  bool optional = false;  // nothing is missing without it
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
  Expression condition = {};  // of text "": always
  // of a loop
  std::string variable = {};
  Expression first = {};  // of text "": 0
  Expression end = {};
  std::string block = {};
  std::string prefix = {};  // with its "{i}"
};

// B, S, P and T: batch, new tokens, past, and S + P, which attributes see and nothing else may be called.
inline bool is_pass_size(std::string_view name) {
  return name == "B" || name == "S" || name == "P" || name == "T";
}

// A name with the value of each "{expr}" in its place. Throws Error{malformed} for one that is no whole
// number.
std::string expand_name(std::string_view name, const AssetPlace& place, const Scope& scope);

// Throws Error{malformed} at the character that does not fit.
OpLine parse_op_line(std::string_view text, const AssetPlace& place);

}  // namespace loadline
