// Lowering profiles as data: how a framework runs the operators of an architecture. The activation peak
// depends on the framework as much as on the model. Read from assets/profiles/*.json:
//
//   {"profile": "hf_eager", "about": "...",
//    "activation": "model",     dtype of activations: "model" (the dtype of its configuration), or "F32"
//    "cache": "model",          dtype of keys and values
//    "operators": "asset",      the operators it runs: of an architecture ("asset"), or those that files
//                               of one format list themselves ("onnx")
//    "default_for": "gguf",     the format whose models take this profile if the user chooses none;
//    "training":
//                               for a training step
//    "micro_batch": "512",      new tokens of one pass where a longer text is read piece by piece;
//                               0: no limit
//    "logits": "last",          rows of the head's output: "last" token of each sequence, or "all"
//    "allocator": "exact",      see core/allocators/allocator_models.h
//    "order": "listed",         order of operators, see execution_order.h: as the asset or file lists them,
//                               "inputs_first", or, for a file's own operators, "last_first"
//    "reuse": "1",              a value reuses freed memory of its shape (a file's own operators only)
//    "shared": {"mask": {"bytes": "B*S*T*e", "ops": ["attn"],
//                 "if": "causal ?? 0",    made before the first operator, or behind the loops before its
//                 "to_end": "0"}},        first user; kept to its last user, or to the end; names are those
//                                         that its first user sees
//    "output_rows_at": "add",   the first such operator behind the last "attn" gets copies of its inputs
//    "hold_block_inputs": "1",  values that enter a loop turn stay alive to the end of the turn; with
//                               a file's own operators, the graph's inputs stay alive to the end
//    "flags": {"latent": 1},    names for the asset's conditions
//    "kernels": {               with a file's own operators:
//      "plain": ["Add"],          those of which only the results take memory
//      "movers": ["Concat"],      the same for elements of any type
//      "types": ["F32", "I64"],   the types of elements that `plain` and the rules account for; none: all
//      "let": {"parts": "group ?? 1"}},     names for the rules, each from those before it
//    "ops": {"norm": {"temporaries": ["4*n*c"], "in_place": "0", "without": "0",
//                     "before": ["8*n*c"], "kept": [], "returned": [], "windowed": "S + P",
//                     "until": "'add'", "view": "0", "stages": ["8*n*c"], "to_end": [],
//                     "output_to_end": "0", "first": "0", "early": "0",
//                     "saves": ["'in1'"], "backward": ["4*n*c"], "passes": "0"}, ...}}
//
// Expressions of an operator see these names:
//   B, S, P, T = S + P   the sizes of the pass
//   n, c                 the rows of the first input, and their width
//   o                    the width of the first output
//   weights              the number of weights; a bias counts as one
//   also, input          the width of the second input, and the name of the first one in its line
//   other                the operator that made the second input; '' for an input of the model
//   in_heads             1: the rows of the first input are seen as heads, because of an earlier operator
//   parts                the number of equal parts of its input's width that a norm works on
//   t, within            the positions that the second input holds, and the window of its cache (0: none)
//   e, ce                the bytes of an element of an activation, and of the cache
//   trained              1: the operator's own weights are trained (in `saves` and `backward`)
//   and the operator's attributes and the names of the asset.
// Operators listed by a file have the file's names ("Softmax", "com.microsoft.Gelu"). Of their rules only
// view, in_place, without, temporaries and these apply (lowering.h):
//    "for": "len(shape(1)) == 4"         a condition; where it is false, the profile does not account for the
//                                        operator, and the sizes of the pass are an estimate
//    "attributes": ["axis"]              the same where the operator has others; without it: any
//    "steps": ["Tanh 1", "Mul 1 a"]      it runs as these operators: each with numbers of its inputs, or
//                                        results of earlier steps (a, b, ...); the last one gives its output
// Their rules see B, S, P, n, c, o, e (of the first output), out (the bytes of the first output), inputs (the
// number of inputs that are no weights), arguments (the number of positions), results, opset, the names of
// `let`, and the operator's attributes. Functions: shape(i) and width(i), the dimensions of the i-th input,
// weights too, and the bytes of an element (null where it is left out); result(i), the dimensions of the i-th
// output; product(list, from); choose(a, b, x, y), which is x where a > b, else y; min and max of sizes.
#pragma once

#include "core/allocators/allocator_models.h"
#include "core/assets/expression.h"
#include "core/forward/pass/execution_order.h"
#include "core/forward/pass/lifetimes.h"
#include "core/graph/dtype_and_shape.h"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::forward {

// How one kind of operator uses memory beyond its inputs and outputs.
struct OpRule {
  // How long the output is referenced. An operator's name: until the next operator of that kind begins;
  // "turn": to the end of the turn of a numbered loop; "loop": of its last turn; "end": to the last operator.
  assets::Expression until = {};
  assets::Expression without = {};  // true: the outputs take no memory; they are computed where used
  std::vector<assets::Expression> before = {};  // bytes each; freed before the outputs are made
  // Bytes each; alive from now to the next result of such an operator, or to the end of the turn.
  std::vector<assets::Expression> kept = {};
  std::vector<assets::Expression> returned = {};     // bytes each; alive from now to the end of the next turn
  std::vector<assets::Expression> temporaries = {};  // bytes each; alive together with the outputs
  // 1, 2...: the operator names that input first, then those behind it, then those before it.
  assets::Expression first = {};
  assets::Expression early = {};  // true: with 'inputs_first', it comes before all that only the results need
  // 1, 2...: the output reuses the memory of an input that dies with the operator, preferably of that input.
  assets::Expression in_place = {};
  assets::Expression view = {};  // 1, 2...: the output is a view of that input
  // Bytes of the steps that lead to the output, in order; each is alive together with the step before it, the
  // last one with the output. The inputs are used by the first step alone.
  std::vector<assets::Expression> stages = {};
  std::vector<assets::Expression> to_end = {};  // bytes each; alive from now to the end of the pass
  assets::Expression output_to_end = {};        // true: the outputs stay alive to the end of the pass
  // In a training step. What the operator keeps for its backward pass: 'in1', 'in2'... (an input), 'out', or
  // bytes of its own; 'unknown' makes the step an estimate. Nothing: the profile does not know the operator.
  std::optional<std::vector<assets::Expression>> saves = {};
  std::vector<assets::Expression> backward = {};  // bytes each; alive while the gradients are made
  assets::Expression passes = {};  // true: the gradient of the output is that of each input, without a copy
  // For a cache with a window: the positions that it holds after the pass; empty: min(T, window).
  assets::Expression windowed = {};
  // Of a file's operators.
  assets::Expression condition = {};                        // "for"; empty text: always
  std::optional<std::vector<std::string>> attributes = {};  // known ones; nothing: any
  struct Step {
    std::string kind = {};
    std::vector<std::string> arguments = {};  // a number from 1: an input; "a", "b": the result of a step
  };
  std::vector<Step> steps = {};
};

// The input that a rule names, counted from 0 (the rule counts from 1); nothing if it names none. Throws an
// Error at the place of the rule.
std::optional<std::size_t> input_number(const assets::Expression& rule, const assets::Scope& scope);

// A value that the architecture does not list: made before the first operator, and used by every operator of
// the kinds `ops` that satisfies the condition.
struct SharedValue {
  std::string name = {};
  assets::Expression bytes = {};
  assets::Expression condition =
      {};  // over an operator's attributes: whether it uses the value; empty text: always
  std::vector<std::string> ops = {};
  bool to_end = false;  // stays alive behind its last user
};

// What only a profile for the operators of files has.
struct FileRules {
  std::set<std::string, std::less<>> plain = {};   // operators of which only the results take memory
  std::set<std::string, std::less<>> movers = {};  // the same for elements of any type
  std::vector<graph::DType> types = {};            // what else is accounted for; empty: all
  std::vector<std::pair<std::string, assets::Expression>> let = {};  // each sees those before it
};

struct Profile {
  std::string id = {};
  std::string about = {};
  std::string path = {};
  std::string format = {};        // of the files whose operators it runs; empty: for architectures
  std::string default_for = {};   // a format, or "training"
  std::uint64_t micro_batch = 0;  // 0: a text is read in one pass
  std::optional<graph::DType> activation = {};  // nothing: the model's
  std::optional<graph::DType> cache = {};
  bool all_logits = false;
  OpOrder order = OpOrder::listed;
  bool reuse = false;
  bool hold_block_inputs = false;
  // A kind of operators: the first of them behind the last "attn" gets copies of its inputs, as rows that an
  // engine takes for its output. Empty: none.
  std::string output_rows_at = {};
  std::vector<SharedValue> shared = {};
  allocators::AllocatorModel allocator = allocators::AllocatorModel::exact;
  std::vector<std::pair<std::string, assets::Datum>> flags = {};
  std::map<std::string, OpRule, std::less<>> ops = {};
  FileRules file = {};
  Training training = {};  // chosen by a request, never by a file

  // The rule for an operator; an empty rule if the profile has none.
  const OpRule& rule(std::string_view op) const;
};

// Throws Error{malformed | limit} naming `path`, line and column.
Profile parse_profile(std::string_view json, const std::string& path);

// The built-in profiles, sorted by name.
std::span<const Profile> built_in_profiles();

}  // namespace loadline::forward
