// The forward pass of an opened model, as far as its file or its family tells it.
#pragma once

#include "core/forward/assets.h"
#include "core/forward/bind.h"
#include "core/forward/lifetimes.h"
#include "core/graph/meta_graph.h"

#include <optional>
#include <string>

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
  std::string profile = {};  // how the operators are lowered; empty for a file's own
  MemoryModel allocator = MemoryModel::sum;
  std::string remark = {};               // why there is no more than there is
  std::optional<BoundModel> bound = {};  // of an architecture, also where it was given up
  std::optional<ForwardGraph> graph = {};
  // What one more token of one sequence adds while no window is full: exact for an architecture, from the
  // usual keys for an estimate.
  std::optional<std::uint64_t> cache_bytes_per_token = {};
  // Where there is no graph: what one more new token adds to the activations at least (estimate.h).
  std::optional<std::uint64_t> activation_bound_per_token = {};
};

// An asset that leaves more than a hundredth of the model's bytes unclaimed, or finds less than it asks for,
// is not believed: then the source is an estimate and the remark says so. `assets` must outlive the result.
// Throws Error{malformed} for a configuration that no architecture can be applied to.
ForwardModel forward_model(const MetaGraph& graph, const ForwardAssets& assets, const Profile& profile);

// What the activations of a pass take at least, if every linear layer sees all tokens: a heuristic, for a
// model without a graph; nothing for others, and where the shapes say nothing. Throws Error{limit} beyond 64
// bits.
std::optional<std::uint64_t> activation_lower_bound(const ForwardModel& model, std::uint64_t batch,
                                                    std::uint64_t sequence);

// A pass of a model: its peak, and what is alive then.
struct ForwardFigures {
  std::uint64_t batch = 1, sequence = 0, past = 0;
  ForwardPeak peak = {};
  std::uint64_t reserved = 0;  // what the profile's allocator holds at its worst; the peak itself for "sum"
  std::string op = {};         // the operator at the peak
  struct Alive {
    std::string name;
    std::uint64_t bytes = 0;
    Lane lane = Lane::activation;
  };
  std::vector<Alive> alive = {};  // at the peak, largest first
};

// Nothing unless `model` has a graph. Throws Error{limit} for sizes beyond 2^62 bytes.
std::optional<ForwardFigures> forward_figures(const ForwardModel& model, std::uint64_t batch,
                                              std::uint64_t sequence, std::uint64_t past);

}  // namespace loadline
