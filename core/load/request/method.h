// A load method as data: traits, the function that makes its plan, and the law of its peak.
#pragma once

#include "core/load/request/model_parts.h"
#include "core/load/request/request.h"
#include "core/plan/plan.h"
#include "core/plan/run.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loadline::load {

// --- Load methods: how each framework or recipe moves weights from disk to a device, written as plans.

// The inputs of a load's plan: the request, and its meaning for one model.
struct LoadInputs {
  LoadRequest request = {};
  Placement placement = {};                                // the requested placement, by storage
  unsigned spaces = plan::space_bit(plan::Space::device);  // order `optimal` minimizes the peak of their sum
  plan::CostModel costs = {};
};

// Threads of transformers 5 that materialize tensors; without a pool, 1, if weights stay on disk.
std::uint32_t loading_threads(const LoadInputs& inputs);

class MethodBuilder;

struct MethodTraits {
  bool casts = false;              // supports LoadRequest::cast
  bool offloads = false;           // supports LoadInputs::placement, by rules
  bool disk = false;               // supports weights left on disk; with `offloads` only
  bool layers = false;             // supports LoadRequest::gpu_layers; with `offloads` only
  bool maps = false;               // supports LoadRequest::auto_map; with `offloads` only
  bool streams = false;            // weights come and go; they are not on the device at the end
  bool activations_first = false;  // activations are allocated before the weights
  bool ring = false;               // supports the staging ring's size and slots
  bool limit = false;              // supports a limit of its buffer
  bool shards = false;             // depends on shards
  bool views = false;              // weights off the device stay in their mapped files
  bool workers = false;            // supports a number of threads that each hold a cast tensor
  bool repacks = false;            // supports repacking for the CPU
  bool flushes = false;            // supports a flush threshold and doubled ties
  bool order_free = false;         // every order has the same peak, for all spaces and options
  // The device reads the files' own pages, which count as staging in the plan. The files must be mappable
  // (mapping_refusal()).
  bool imports = false;
};

// `summary` fits a table cell. The law is an upper bound for the peak of each space in every order; its
// grammar and symbols stand below, with LawValues.
struct Method {
  std::string_view id;
  std::string_view summary;
  std::string_view peak_law;  // closed form: "device W + Q, host w*"
  // Called by make_plan() only. May throw Error{limit} for options that make the plan itself too large.
  plan::Plan (*make)(MethodBuilder& builder);
  MethodTraits traits = {};
  bool common = false;  // shown when the request names no method
  // Whether a buffer collects bytes of several tensors before it moves on, so that a turn depends on earlier
  // turns.
  bool (*waits)(const LoadRequest& request) = nullptr;
};

// Whether the method supports the kind of placement that a request asks for.
bool supports_placement(const Method& method, const LoadRequest& request);

std::span<const Method> methods();
// Throws Error{usage} that lists the ids.
const Method& find_method(std::string_view id);
// The method's plan. Throws Error{usage} as check_request() does, Error{unsupported} for a cast or a
// placement that the method does not support, Error{limit} if the plan itself would be too large. The plan
// takes over the memory of `used`, whose contents are dropped.
plan::Plan make_plan(const graph::MetaGraph& graph, const Method& method, const StorageOrder& order,
                     const LoadInputs& inputs, plan::Plan used = {});

// --- Parses and evaluates the closed-form peak laws of load methods.
//
//   law    := part {", " part}
//   part   := space " " expr [" (" case {"; " case} ")"]
//   space  := device | host | page cache | staging | unified
//   case   := condition ": " ["+ "] expr       with "+" expr is added to the part, else it replaces the part
//   expr   := as in core/assets/expression.h, with symbols such as W and w*, 2W for 2 times W,
//             sizes such as 4 MiB, and slots(x): x rounded up to whole slots of the ring
//
// Conditions: cast = the request casts weights; disk = its placement leaves weights on disk; pickled = the
// files are PyTorch's, which cannot be mapped tensor by tensor; used = a forward pass or activations follow;
// brought = a pass brings weights to the device that are elsewhere.
// kept = the placement keeps weights off the device that are cast or fused on the host; fused = the model has
// experts that become one tensor; repack = matrices
// on the host are repacked; partly = the cast leaves some weights as they are stored.

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
LawValues law_values(const graph::MetaGraph& graph, const LoadInputs& inputs);

// The peaks that a law gives. A space that the law does not name holds nothing. A law for unified memory
// gives no peaks of single spaces.
struct LawPeaks {
  plan::PerSpace<std::uint64_t> spaces = {};
  std::optional<std::uint64_t> unified = {};
};
// Throws Error{malformed} if the text is not a law, Error{limit} if a value exceeds 63 bits.
LawPeaks evaluate_law(std::string_view law, const LawValues& values);

}  // namespace loadline::load
