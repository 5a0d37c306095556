// Lowering profiles as data: how a framework runs the operators of an architecture. What an activation peak
// is depends on this as much as on the model. From assets/profiles/*.json:
//
//   {"profile": "hf_eager", "about": "...",
//    "activation": "model",     dtype of activations: "model" (as the weights' configuration), or "F32"
//    "cache": "model",          dtype of keys and values
//    "operators": "asset",      whose operators it runs: an architecture's, or, by the name of their format,
//                               those that files list themselves ("onnx")
//    "logits": "last",          rows of the head's output: "last" token of each sequence, or "all"
//    "allocator": "exact",      see core/allocators/allocator.h
//    "order": "listed",         of operators, see op_order.h: as the asset or the file lists them,
//                               "inputs_first", or, for a file's own operators, "last_first"
//    "reuse": "1",              a value goes where one of the same shape was before (a file's own operators)
//    "shared": {"mask": {"bytes": "B*S*T*e", "ops": ["attn"],
//                 "if": "causal ?? 0"}},  made before all else, kept to its last user
//    "hold_block_inputs": "1",  a loop's caller refers to what goes into a turn until that turn is over, and
//                               that of a file's own graph to its inputs
//    "flags": {"latent": 1},    names for the asset's conditions
//    "ops": {"norm": {"temporaries": ["4*n*c"], "in_place": "0", "without": "0",
//                     "before": ["8*n*c"], "kept": [], "returned": [], "windowed": "S + P",
//                     "until": "'add'", "view": "0"}, ...}}
//
// Expressions of an operator see B, S, P, T = S + P; n, the rows of its first input, and c, their width; o,
// the width of its first output; t, the positions that its second input holds, and within, the window of the
// cache that holds them (0: none); e and ce, bytes of an element
// of an activation and of the cache; its attributes; and the asset's names. Operators that a file itself
// lists are named as it names them ("Softmax", "com.microsoft.Gelu"); of their rules view, in_place, without
// and temporaries count (file_graph.h), and they see B, S, P, n, c, o, e (of the first output), out, the
// bytes of the first output, and inputs, how many inputs are no weights.
#pragma once

#include "core/allocators/allocator.h"
#include "core/forward/expression.h"
#include "core/forward/op_order.h"
#include "core/graph/dtype.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

// How one kind of operator uses memory beyond its inputs and outputs.
struct OpRule {
  // An operator's name: the output is referred to until the next of that kind begins; "turn": to the end of
  // the turn of a numbered loop; "end": to the last operator.
  Expression until = {};
  Expression without = {};                   // true: the outputs take no memory, they are computed where used
  std::vector<Expression> before = {};       // bytes each; gone when the outputs are made
  std::vector<Expression> kept = {};         // bytes each; there from now to the end of the turn
  std::vector<Expression> returned = {};     // bytes each; there from now to the end of the next turn
  std::vector<Expression> temporaries = {};  // bytes each; there together with the outputs
  // 1, 2...: the output takes over the memory of an input that dies with the operator, rather that one's.
  Expression in_place = {};
  Expression view = {};  // 1, 2...: the output is that input, looked at differently
  // Of a cache with a window: the positions that it holds after the pass; empty: min(T, window).
  Expression windowed = {};
};

// The input that a rule numbers from 1, counted from 0; nothing where it names none. Throws at the rule.
std::optional<std::size_t> input_number(const Expression& rule, const Scope& scope);

// A value beside those of the architecture: there before the first operator, used by every operator of some
// kinds.
struct SharedValue {
  std::string name = {};
  Expression bytes = {};
  Expression condition = {};  // over an operator's attributes: whether it uses the value; of text "": always
  std::vector<std::string> ops = {};
};

struct Profile {
  std::string id = {};
  std::string about = {};
  std::string path = {};
  std::string format = {};               // of files that list their operators; empty: for architectures
  std::optional<DType> activation = {};  // nothing: the model's
  std::optional<DType> cache = {};
  bool all_logits = false;
  OpOrder order = OpOrder::listed;
  bool reuse = false;
  bool hold_block_inputs = false;
  std::vector<SharedValue> shared = {};
  AllocatorModel allocator = AllocatorModel::exact;
  std::vector<std::pair<std::string, Datum>> flags = {};
  std::map<std::string, OpRule, std::less<>> ops = {};

  // The rule for an operator; one without temporaries if the profile has none.
  const OpRule& rule(std::string_view op) const;
};

// Throws Error{malformed | limit} naming `path`, line and column.
Profile parse_profile(std::string_view json, const std::string& path);

// Those built in, by name.
std::span<const Profile> built_in_profiles();

}  // namespace loadline
