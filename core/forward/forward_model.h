// The forward pass of an opened model, as far as its file or its family tells it.
#pragma once

#include "core/forward/assets.h"
#include "core/forward/bind.h"
#include "core/forward/lifetimes.h"
#include "core/graph/meta_graph.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// Where the operators come from. Nothing about activations is ever claimed in the first two cases.
enum class ForwardSource {
  nothing,       // neither operators nor a configuration that says what there would be
  estimate,      // no asset for this family: the size of the cache follows from the configuration, no more
  architecture,  // an asset and a profile
  file,          // the file holds its operators
};
std::string_view forward_source_name(ForwardSource source);

struct ForwardModel {
  ForwardSource source = ForwardSource::nothing;
  std::string family = {};   // of the asset
  std::string profile = {};  // how the operators are run; empty where it says nothing of a file's own
  AllocatorModel allocator = AllocatorModel::exact;
  std::string remark = {};               // why there is no more than there is
  std::optional<BoundModel> bound = {};  // of an architecture, also where it was given up
  std::optional<ForwardGraph> graph = {};
  std::vector<OpRange> lives = {};  // of the graph's values
  // What one more token of one sequence adds while no window is full: exact for an architecture, from the
  // usual keys for an estimate.
  std::optional<std::uint64_t> cache_bytes_per_token = {};
  // Where there is no graph: what one more new token adds to the activations at least (estimate.h).
  std::optional<std::uint64_t> activation_bound_per_token = {};
};

// An asset that leaves more than a hundredth of the model's bytes unclaimed, or finds less than it asks for,
// is not believed: then the source is an estimate and the remark says so. `assets` must outlive the result.
// A file's own operators run as they are listed, each value by itself, where no profile is for their format.
// A configuration that its architecture cannot be applied to gives an estimate and a remark that says why.
// Throws Error{malformed} for a profile that does not fit the operators, and Error{usage} for one that is for
// other operators than these.
ForwardModel forward_model(const MetaGraph& graph, const ForwardAssets& assets, const Profile& profile);

// Whether the profile is for the operators of this model: those of its file's format, if it lists any.
bool runs(const Profile& profile, const MetaGraph& graph);
// The profile for a model of which nobody says how it is to be run: the first for the operators of its file,
// "fused" where there are none.
const Profile& default_profile(const ForwardAssets& assets, const MetaGraph& graph);

// How a pass is to be run: a profile, and what is chosen otherwise than it says.
struct ForwardOptions {
  std::string profile = {};  // empty: default_profile()
  std::optional<DType> activation = {};
  std::optional<DType> cache = {};
  std::optional<bool> all_logits = {};
  bool operator==(const ForwardOptions&) const = default;
};
// Throws Error{usage} for a profile that there is not, and for types without a size of their own.
Profile chosen_profile(const ForwardAssets& assets, const MetaGraph& graph, const ForwardOptions& options);
// What the activations of a pass take at least, if every linear layer sees all tokens: a heuristic, for a
// model without a graph; nothing for others, and where the shapes say nothing. Throws Error{limit} beyond 64
// bits.
std::optional<std::uint64_t> activation_lower_bound(const ForwardModel& model, std::uint64_t batch,
                                                    std::uint64_t sequence);

// A pass of a model: its peak, and what is alive then.
struct ForwardFigures {
  std::vector<std::optional<std::uint64_t>> sizes = {};  // of the graph's values
  std::vector<LaneBytes> usage = {};                     // during each operator
  ForwardPeak peak = {};
  std::uint64_t reserved = 0;  // what the profile's allocator holds at its worst; the peak itself for "sum"
};

// Nothing unless `model` has a graph. `symbols` are symbol_values() of it. Throws Error{limit} for sizes
// beyond 2^62 bytes.
std::optional<ForwardFigures> forward_figures(const ForwardModel& model,
                                              std::span<const std::uint64_t> symbols);
std::optional<ForwardFigures> forward_figures(const ForwardModel& model, std::uint64_t batch,
                                              std::uint64_t sequence, std::uint64_t past);

// The activations and temporaries that are alive during an operator, largest first; empty ones are left out.
std::vector<ValueId> alive_during(const ForwardModel& model, const ForwardFigures& figures, std::uint32_t op);
// "model.layers.3.mlp.down_proj (linear)".
std::string op_text(const Op& op);

}  // namespace loadline
