// Lowering profiles as data: how a framework runs the operators of an architecture. What an activation peak
// is depends on this as much as on the model. From assets/profiles/*.json:
//
//   {"profile": "hf_eager", "about": "...",
//    "activation": "model",     dtype of activations: "model" (as the weights' configuration), or "F32"
//    "cache": "model",          dtype of keys and values
//    "logits": "last",          rows of the head's output: "last" token of each sequence, or "all"
//    "allocator": "sum",        see memory_model.h
//    "order": "listed",         of operators: as the asset lists them, or "inputs_first": each directly
//                               behind its inputs, first to last, as ggml builds its graphs
//    "shared": {"mask": {"bytes": "B*S*T*e", "ops": ["attn"],
//                 "if": "causal ?? 0"}},  made before all else, kept to its last user
//    "hold_block_inputs": "1",  a loop's caller refers to what goes into a turn until that turn is over
//    "flags": {"latent": 1},    names for the asset's conditions
//    "ops": {"norm": {"temporaries": ["4*n*c"], "in_place": "0", "without": "0",
//                     "before": ["8*n*c"],
//                     "until": "'add'"}, ...}}
//
// Expressions of an operator see B, S, P, T = S + P; n, the rows of its first input, and c, their width; o,
// the width of its first output; t, the positions that its second input holds; e and ce, bytes of an element
// of an activation and of the cache; its attributes; and the asset's names.
#pragma once

#include "core/forward/expression.h"
#include "core/forward/memory_model.h"
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
  std::vector<Expression> temporaries = {};  // bytes each; there together with the outputs
  // 1, 2...: the output takes over the memory of an input that dies with the operator, rather that one's.
  Expression in_place = {};
};

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
  std::optional<DType> activation = {};  // nothing: the model's
  std::optional<DType> cache = {};
  bool all_logits = false;
  bool inputs_first = false;
  bool hold_block_inputs = false;
  std::vector<SharedValue> shared = {};
  MemoryModel allocator = MemoryModel::sum;
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
