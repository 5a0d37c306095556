// A training step: the forward pass, what it keeps, the backward pass and the optimizer's update.
#pragma once

#include "core/assets/expression.h"
#include "core/forward/family/architecture.h"
#include "core/forward/pass/profile.h"
#include "core/graph/forward_graph.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::forward {

// Makes a training step of a forward graph that is being lowered: as PyTorch's autograd runs it. An operator
// keeps what its profile's rule says until its backward pass. That runs in the reverse order of the forward
// pass; a gradient lives from the operator that makes it to the one that uses it. The gradients of weights
// stay to the end, in the type of the weights; those of peft's adapters are F32. The loss is the cross
// entropy of the logits, of causal models in F32, as transformers computes it; the caller keeps the loss
// alone. For lowering.cpp only.
class TrainingStep {
 public:
  // `graph` is lowered by the caller, and must outlive this, as `profile` must. `activation`: the type of
  // activations and of weights. Throws Error{malformed} for a profile that orders operators anew or whose
  // rules make several operators of one.
  TrainingStep(graph::ForwardGraph& graph, const Profile& profile, graph::DType activation);

  // The operator that is to be the graph's next one. Its inputs are operands, then what else it uses. `scope`
  // as the profile's rules see it. Adds what the operator keeps to its outputs. Throws Error{unsupported} if
  // the profile does not say what an operator keeps that lies on the way to a trained weight.
  // `first`: its place, or that of the operators before it that belong to it.
  void add(const BoundOp& op, const assets::Scope& scope, std::size_t first, graph::Op& lowered);
  // Appends loss, backward pass and update. Dropout is named in ForwardGraph::unaccounted: what it keeps
  // depends on the device. Throws Error{unsupported} if nothing is trained.
  void finish(const ModelConfig& config);

 private:
  // A weight with a gradient.
  struct Trained {
    std::string name;
    std::uint64_t elements = 0;
    std::uint64_t columns = 1;  // of a matrix
    std::int64_t width = 0;     // bytes of an element
  };
  struct Kept {
    std::size_t at = 0;  // in the graph
    std::uint32_t turn = 0;
    std::vector<graph::ValueId> saved = {};
    std::vector<graph::ValueId> outputs = {};  // those with a gradient
    std::vector<graph::ValueId> inputs = {};   // likewise, each once
    std::vector<Trained> weights = {};
    std::vector<graph::SizePoly> scratch = {};
    bool passes = false;
  };

  bool targeted(const BoundOp& op);
  void add_adapter(const BoundOp& op, const assets::Scope& scope, graph::Op& lowered, Kept& kept);
  void save(const OpRule& rule, const assets::Scope& scope, const std::vector<graph::ValueId>& inputs,
            graph::Op& lowered, Kept& kept);
  void add_loss(bool causal);
  void run_again(std::uint32_t turn);
  void add_backward(const Kept& kept);
  void add_update();

  graph::ValueId make(std::string name, const graph::SizePoly& bytes, graph::Lane lane);
  graph::ValueId copy_of(graph::ValueId id);
  graph::ValueId append(graph::Value value);
  void add_dropout(const ModelConfig& config);
  bool lora() const { return training_.weights == TrainedWeights::lora; }
  bool needs(graph::ValueId id) const;
  // The value that stands for this one in the layer that has run again.
  graph::ValueId now(graph::ValueId id) const;
  std::int64_t element_of(const graph::Value& value) const;

  graph::ForwardGraph& graph_;
  const Profile& profile_;
  const Training training_;
  const Optimizer optimizer_;
  const graph::DType activation_;
  const std::int64_t element_;  // bytes of one of that type
  std::set<std::string, std::less<>> targets_met_;
  std::vector<Kept> kept_;
  std::set<std::string> unknown_;   // kinds of operators of which the profile does not know what they keep
  std::set<graph::ValueId> needs_;  // values that have a gradient
  std::map<graph::ValueId, graph::ValueId> gradients_;      // of values, while they are known
  std::map<graph::ValueId, graph::ValueId> again_;          // of the layer that has run again
  std::map<std::string, graph::ValueId, std::less<>> own_;  // gradients of weights, by name
  std::vector<std::pair<std::size_t, std::size_t>> turns_;  // operators of each turn: first, end; by turn
};

}  // namespace loadline::forward
