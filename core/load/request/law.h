// Parses and evaluates the closed-form peak laws of load methods.
//
//   law    := part {", " part}
//   part   := space " " expr [" (" case {"; " case} ")"]
//   space  := device | host | page cache | staging | unified
//   case   := condition ": " ["+ "] expr       with "+" expr is added to the part, else it replaces the part
//   expr   := as in core/forward/expression.h, with symbols such as W and w*, 2W for 2 times W,
//             sizes such as 4 MiB, and slots(x): x rounded up to whole slots of the ring
//
// Conditions: cast = the request casts weights; disk = its placement leaves weights on disk; pickled = the
// files are PyTorch's, which cannot be mapped tensor by tensor; used = a forward pass or activations follow;
// brought = a pass brings weights to the device that are elsewhere.
// kept = the placement keeps weights off the device that are cast or fused on the host; fused = the model has
// experts that become one tensor; repack = matrices
// on the host are repacked; partly = the cast leaves some weights as they are stored.
#pragma once

#include "core/load/request/method.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace loadline {

// The values of the symbols (see the manual's page `glossary`) for one model and request. Bytes.
struct LawValues {
  std::uint64_t W = 0, w = 0, V = 0, v = 0, c = 0, S = 0, g = 0, x = 0, y = 0, H = 0, D = 0, T = 0, B = 0,
                h = 0, M = 0, G = 0, u = 0, R = 0, o = 0, N = 0, P = 0, e = 0;
  std::uint64_t slot = 0;                                          // of the ring
  std::map<std::string, std::uint64_t, std::less<>> options = {};  // load options by their symbol
  bool cast = false, disk = false, pickled = false, used = false, kept = false, repack = false,
       partly = false;
  std::uint64_t host_pass = 0;  // Q, where the pass runs on the host: then the symbol Q is 0
};
// Throws Error{limit} if a sum does not fit in 63 bits.
LawValues law_values(const MetaGraph& graph, const LoadInputs& inputs);

// The peaks that a law gives. A space that the law does not name holds nothing. A law for unified memory
// gives no peaks of single spaces.
struct LawPeaks {
  PerSpace<std::uint64_t> spaces = {};
  std::optional<std::uint64_t> unified = {};
};
// Throws Error{malformed} if the text is not a law, Error{limit} if a value exceeds 63 bits.
LawPeaks evaluate_law(std::string_view law, const LawValues& values);

}  // namespace loadline
