// One line of a name map: a tensor of the new file, and the chain that it comes from.
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
#pragma once

#include "core/assets/expression.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

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
  AssetPlace place = {};
  std::vector<std::uint32_t> inputs = {};
  std::string name = {};      // source, stack: with its "{i}"
  bool whole = false;         // no ending behind the name
  std::string variable = {};  // stack
  std::vector<Expression> numbers = {};
};

struct NameRule {
  AssetPlace place = {};
  std::string name = {};  // in the new file, with its "{i}"; of a loop, the prefix
  bool whole = false;
  std::vector<NameRuleStep> steps = {};
  Expression condition = {};  // an empty text means always
  // the fields of a loop
  std::string variable = {};
  Expression count = {};
  std::string block = {};
  std::string source = {};  // the prefix of the sources' names

  bool loop() const { return !block.empty(); }
};

// Throws Error{malformed} at the character that does not fit.
NameRule parse_name_rule(std::string_view text, const AssetPlace& place);

}  // namespace loadline
