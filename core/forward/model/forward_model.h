// The forward pass of an opened model, as far as its file or its family describes it: graph, estimate,
// figures, notes.
#pragma once

#include "core/allocators/allocator_models.h"
#include "core/forward/model/assets_loader.h"
#include "core/forward/pass/lifetimes.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::forward {

class ModelConfig;  // family/model_config.h
struct BoundModel;  // family/architecture.h
struct Profile;     // pass/profile.h

// --- Estimates of a forward pass without an architecture, from config.json and the shapes of the weights.

// Layers that are alike in how they keep what a sequence leaves behind.
struct CachePart {
  std::uint64_t bytes = 0;   // of an entry, in all of these layers
  std::uint64_t tokens = 1;  // that share an entry; the last ones, too few for one, have none
  std::uint64_t window = 0;  // tokens that are kept; 0: all
  bool operator==(const CachePart&) const = default;
};

struct CacheGrowth {
  std::vector<CachePart> parts = {};  // sorted by window, then by tokens
  std::uint64_t state = 0;            // bytes of states, which do not grow

  // Bytes after so many tokens of one sequence; nothing beyond 64 bits.
  std::optional<std::uint64_t> bytes(std::uint64_t tokens) const;
  // Bytes that one more token adds, on average, if windows of up to `full` tokens are full.
  std::uint64_t each(std::uint64_t full = 0) const;
  bool operator==(const CacheGrowth&) const = default;
};

// What a sequence leaves in the cache. Where the settings do not tell, the two differ.
struct CacheEstimate {
  CacheGrowth least = {};
  CacheGrowth most = {};
  std::vector<std::string> reasons = {};  // why they differ, and what is taken for granted
};

// By the settings of each layer: keys and values of its own heads, latent vectors, windows, entries for
// several tokens, states of linear attention, Mamba and convolutions, layers without any. Of elements of
// `element`, else of the model's own type. For a config.json, and for that of a GGUF file's keys. Nothing if
// the settings say too little.
std::optional<CacheEstimate> estimated_cache(const ModelConfig& config,
                                             std::optional<graph::DType> element = {});

// A lower bound of the activation peak in bytes for each new token, if every linear layer sees all tokens:
// the widest output among the two-dimensional weights NAME.weight. It leaves out embeddings (gathered from),
// heads, poolers and classifiers (may apply to one row), and the weights of single experts (apply to some
// rows). A heuristic; nothing if no weight qualifies.
std::optional<std::uint64_t> activation_bound_per_token(const graph::MetaGraph& graph,
                                                        const ModelConfig& config);

// --- The forward pass of an opened model, as far as its file or its family describes it.

// The source of the operators. In the first two cases there are no figures for activations.
enum class ForwardSource {
  nothing,       // no operators, and no configuration that describes them
  estimate,      // no asset for this family: only the size of the cache follows from the configuration
  architecture,  // an asset and a profile
  file,          // the file holds its operators
};
std::string_view forward_source_name(ForwardSource source);

struct ForwardModel {
  ForwardSource source = ForwardSource::nothing;
  std::string family = {};   // of the asset
  std::string profile = {};  // applied to the operators; empty if none applies to a file's own operators
  allocators::AllocatorModel allocator = allocators::AllocatorModel::exact;
  std::uint64_t micro_batch = 0;  // of the profile; 0: a text is read in one pass
  std::string remark = {};        // why information is missing
  std::shared_ptr<const BoundModel> bound =
      {};  // of an architecture, even a rejected one; null: none applies
  std::optional<graph::ForwardGraph> graph = {};
  std::vector<OpRange> lives = {};  // lifetimes of the graph's values
  // Cache bytes that one more token of one sequence adds while no window is full: exact for an architecture;
  // for an estimate, the most, from the settings.
  std::optional<std::uint64_t> cache_bytes_per_token = {};
  std::optional<CacheEstimate> cache_estimate = {};  // if the source is an estimate
  // Without a graph: a lower bound of the activation bytes that one more new token adds.
  std::optional<std::uint64_t> activation_bound_per_token = {};
};

// An asset is rejected if it leaves more than a hundredth of the model's bytes unclaimed, or expects tensors
// that the files lack: then the source is an estimate and the remark says so. So it is for a configuration
// that does not fit its architecture. `assets` must outlive the result. A file's own operators run in file
// order, without shared memory, if no profile is for their format. Throws Error{malformed} for a profile that
// does not fit the operators, and Error{usage} for a profile for other operators.
ForwardModel forward_model(const graph::MetaGraph& graph, const ForwardAssets& assets,
                           const Profile& profile);

// Whether the profile is for the operators of this model: for the file's format if the file lists operators,
// else for architectures.
bool runs(const Profile& profile, const graph::MetaGraph& graph);
// The profile for a model if the user chooses none: the first profile for the operators of its file, else the
// first that names its format, or "fused" if there is none.
const Profile& default_profile(const ForwardAssets& assets, const graph::MetaGraph& graph);

// The options of a pass: a profile, and settings that override the profile's.
struct ForwardOptions {
  std::string profile = {};  // empty: default_profile()
  std::optional<graph::DType> activation = {};
  std::optional<graph::DType> cache = {};
  std::optional<bool> all_logits = {};
  Training training = {};  // a step of it in the place of a pass, if it trains any weights
  bool operator==(const ForwardOptions&) const = default;
};
// The chosen profile with the overrides applied. Throws Error{usage} for an unknown profile, and for types
// whose elements have no size of their own.
Profile chosen_profile(const ForwardAssets& assets, const graph::MetaGraph& graph,
                       const ForwardOptions& options);
// A heuristic lower bound of the activation bytes of a pass, for a model without a graph, if every linear
// layer sees all tokens. Nothing for other models, and if the shapes give no bound. Throws Error{limit}
// beyond 64 bits.
std::optional<std::uint64_t> activation_lower_bound(const ForwardModel& model, std::uint64_t batch,
                                                    std::uint64_t sequence);

// The figures of one pass with given sizes.
struct ForwardFigures {
  std::vector<std::optional<std::uint64_t>> sizes = {};  // of the graph's values
  std::vector<LaneBytes> usage = {};                     // during each operator
  ForwardPeak peak = {};
  std::uint64_t reserved = 0;  // the most that the profile's allocator reserves; the peak itself for "sum"
};

// Nothing unless `model` has a graph. `symbols` are the symbol_values() of that graph. Throws Error{limit}
// for sizes beyond 2^62 bytes.
std::optional<ForwardFigures> forward_figures(const ForwardModel& model,
                                              std::span<const std::uint64_t> symbols);
std::optional<ForwardFigures> forward_figures(const ForwardModel& model, std::uint64_t batch,
                                              std::uint64_t sequence, std::uint64_t past);

// Whether the figures of activations are an estimate: sizes are unknown, or the profile does not account for
// some operators.
bool is_estimate(const ForwardModel& model, const ForwardFigures& figures);

// Of a training step: the activations that are alive once the loss is there, and wait for the backward pass.
std::uint64_t kept_for_backward(const ForwardModel& model, const ForwardFigures& figures);

// The activations and temporaries alive during an operator, largest first, without those of 0 bytes.
std::vector<graph::ValueId> alive_during(const ForwardModel& model, const ForwardFigures& figures,
                                         std::uint32_t op);
// An operator in words: "model.layers.3.mlp.down_proj (linear)".
std::string op_text(const graph::Op& op);

// --- Notes beside the figures of a pass: reasons why they may not hold.

// Notes on positions beyond a learned table, a sequence on which nothing depends, an encoder that has run in
// an earlier pass, and parts that the asset leaves out; of a file's own operators, on those that the profile
// does not account for. Empty for a model without a graph.
std::vector<std::string> pass_notes(const ForwardModel& model, std::uint64_t batch, std::uint64_t sequence,
                                    std::uint64_t past);

// The bytes that one more token of one sequence adds to the cache after this pass. They become fewer once
// windows are full. Nothing without a graph.
std::optional<std::uint64_t> cache_growth(const ForwardModel& model, std::uint64_t sequence,
                                          std::uint64_t past);
// The widest window of a cache; 0 without one.
std::uint64_t widest_window(const ForwardModel& model);

}  // namespace loadline::forward
