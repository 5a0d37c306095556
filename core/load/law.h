// The closed forms that methods print as their laws, read and evaluated.
//
//   law    := part {", " part}
//   part   := space " " expr ["(" case {"; " case} ")"]      space := device | host | page cache | staging |
//   unified case   := condition ": " ["+ "] expr                     with "+" it adds to the part, else it
//   replaces it expr   := as in core/forward/expression.h, with symbols such as W, w* and 2W for 2 times W,
//   sizes such as
//             4 MiB, and slots(x): x rounded up to whole slots of the ring
//
// Conditions: cast, the request casts weights; disk, its placement leaves some on disk; pickled, the files
// are PyTorch's, which cannot be mapped tensor by tensor.
#pragma once

#include "core/load/methods.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loadline {

// A symbol of the laws and what it stands for.
struct LawSymbol {
  std::string_view name;
  std::string_view meaning;
};
std::span<const LawSymbol> law_symbol_table();
// "W: all weights as they are stored, each once; w*: ...", for people.
std::string law_symbols();

// What the symbols are for one model and request. Bytes.
struct LawValues {
  std::uint64_t W = 0, w = 0, V = 0, v = 0, c = 0, S = 0, g = 0, x = 0, y = 0, H = 0, D = 0, T = 0, B = 0;
  std::uint64_t slot = 0;                                          // of the ring
  std::map<std::string, std::uint64_t, std::less<>> options = {};  // of load options with a symbol, by that
  bool cast = false, disk = false, pickled = false;
};
// Throws Error{limit} where a sum does not fit in 63 bits.
LawValues law_values(const MetaGraph& graph, const LoadInputs& inputs);

// What a law says of the peaks. A space that it does not name holds nothing; a law of unified memory says
// nothing about single spaces.
struct LawPeaks {
  PerSpace<std::uint64_t> spaces = {};
  std::optional<std::uint64_t> unified = {};
};
// Throws Error{malformed} for a text that is no law, Error{limit} beyond 63 bits.
LawPeaks evaluate_law(std::string_view law, const LawValues& values);

}  // namespace loadline
