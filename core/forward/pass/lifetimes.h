// The sizes of a pass, the lifetime of each value, and the peak of memory that follows.
#pragma once

#include "core/allocators/allocator_models.h"
#include "core/graph/forward_graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::forward {

// --- The lifetime of each value of a forward pass, and the peak of memory that follows.

// The operators during which a value's memory is held: [first, end), by position in ForwardGraph::ops. Empty
// for a value that shares an earlier value's memory (the earlier value then lives as long as both need it),
// for a value that nothing makes, and for the cache, which is always held.
struct OpRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  bool empty() const { return first >= end; }
  bool operator==(const OpRange&) const = default;
};

// One range for each value. Inputs live from the first operator to their last use; outputs live to the end.
std::vector<OpRange> lifetimes(const graph::ForwardGraph& graph);

// The bytes of every value, with symbols[i] (see symbol_values) for symbol i. Nothing for an unknown size.
// Throws Error{limit} for a size that is negative or beyond 64 bits.
std::vector<std::optional<std::uint64_t>> value_sizes(const graph::ForwardGraph& graph,
                                                      std::span<const std::uint64_t> symbols);

// Bytes by lane.
struct LaneBytes {
  std::uint64_t activations = 0;
  std::uint64_t temporaries = 0;
  std::uint64_t cache = 0;  // written so far, including by this operator

  std::uint64_t passing() const { return activations + temporaries; }
};

// The bytes alive during each operator, summed over the values. Unknown sizes count as 0. Throws Error{limit}
// beyond 2^62 bytes.
std::vector<LaneBytes> forward_usage(const graph::ForwardGraph& graph, std::span<const OpRange> lives,
                                     std::span<const std::optional<std::uint64_t>> sizes);

struct ForwardPeak {
  std::uint64_t bytes = 0;        // activations and temporaries alive at once, without the cache
  std::uint32_t op = 0;           // the first operator at which the peak is reached
  std::uint64_t cache_bytes = 0;  // after the pass
  std::size_t unknown = 0;        // number of values left out because their size is unknown
};

// The peak of `usage`, which must be the forward_usage() of this graph with these sizes. An allocator
// reserves more. Throws Error{limit} for a cache beyond 2^62 bytes.
ForwardPeak forward_peak(const graph::ForwardGraph& graph, std::span<const LaneBytes> usage,
                         std::span<const std::optional<std::uint64_t>> sizes);

// The lifetimes as input of an allocator model: inputs begin in tick 0, operator i runs in tick i + 1, values
// of unknown size have 0 bytes. Parallel to `lives`.
std::vector<allocators::Allocation> allocations_of(const graph::ForwardGraph& graph,
                                                   std::span<const OpRange> lives,
                                                   std::span<const std::optional<std::uint64_t>> sizes);

// --- A training step: what it trains, and with what.

enum class Optimizer : std::uint8_t {
  adamw,        // torch.optim.AdamW as it runs on a GPU: over all parameters at once
  adamw_fused,  // the same in one kernel, as transformers' Trainer asks for it
  adamw_8bit,   // bitsandbytes' AdamW8bit
  sgd,          // torch.optim.SGD without momentum
  momentum,     // the same with momentum
  adafactor,    // torch.optim.Adafactor
};
struct OptimizerRow {
  std::string_view id;
  Optimizer optimizer;
};
std::span<const OptimizerRow> optimizers();
// Throws Error{usage} that lists them.
Optimizer find_optimizer(const std::string& id);
std::string_view optimizer_id(Optimizer optimizer);

enum class TrainedWeights : std::uint8_t {
  full,  // all of the model's
  lora,  // adapters alone, as peft puts them beside linear layers
};
std::string_view trained_weights_id(TrainedWeights weights);
// "full" or "lora". Throws Error{usage} that lists them.
TrainedWeights find_trained_weights(const std::string& id);

// A step of training in the place of a forward pass: forward, loss, backward, update. As the second step and
// those behind it run: the optimizer's states are there, and the gradients of the last step are gone.
struct Training {
  std::optional<TrainedWeights> weights = {};  // nothing: no training step
  std::optional<Optimizer> optimizer = {};     // nothing: adamw
  bool checkpoints = false;  // each layer keeps its input alone, and runs again before its backward pass
  std::uint64_t rank = 8;    // of adapters
  // The last parts of the names of the linear layers with adapters: "q_proj". Empty: all but the head.
  std::vector<std::string> targets = {};
  bool operator==(const Training&) const = default;
};

// --- The sizes of a pass: batch, sequence and past, and sizes that the file names itself.

// A size chosen by its name in the file: "height=224".
struct SizeChoice {
  std::string name = {};
  std::uint64_t size = 0;
  bool operator==(const SizeChoice&) const = default;
};

// The symbol_values() of batch, sequence and past, overridden by `choices`. A choice sets the symbol that its
// name stands for, so names of the same symbol must get equal sizes. Throws Error{usage} for an unknown name,
// listing the known ones, and for a name that stands for a sum of sizes.
std::vector<std::uint64_t> symbol_values(const graph::ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past,
                                         std::span<const SizeChoice> choices);

// The names of sizes that are 1 because they are not chosen and do not follow from batch, sequence or past.
std::vector<std::string> sizes_left_at_1(const graph::ForwardGraph& graph,
                                         std::span<const SizeChoice> choices);

// Whether any value's size depends on the batch, the sequence or the past.
bool depends_on_request(const graph::ForwardGraph& graph);
// Whether any depends on the sequence or the past: a model of pictures knows only a batch.
bool depends_on_tokens(const graph::ForwardGraph& graph);

}  // namespace loadline::forward
