// The parsed form of an expression; for expression*.cpp only.
#pragma once

#include "core/assets/expression.h"

#include <cstdint>

namespace loadline {

struct Expression::Node {
  enum class Kind : std::uint8_t {
    literal,
    name,
    call,
    list,
    index,
    negate,
    logical_not,
    choice,
    otherwise,  // ??
    logical_or,
    logical_and,
    equal,
    unequal,
    less,
    less_equal,
    greater,
    greater_equal,
    contains,  // in
    add,
    subtract,
    multiply,
    divide,
    remainder,
  };
  Kind kind = Kind::literal;
  std::uint32_t at = 0;                      // offset in the text
  Datum literal = {};                        // of a literal
  std::string name = {};                     // of a name or a function
  std::vector<std::uint32_t> children = {};  // positions among the nodes
};

}  // namespace loadline
