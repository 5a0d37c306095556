// The forward pass as the window shows it: operators, their tree, and when everything is alive.
#pragma once

#include "core/base/progress.h"
#include "core/forward/forward_model.h"
#include "core/graph/op_tree.h"
#include "core/load/request.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace loadline::gui {

// Immutable once made.
struct ForwardScene {
  MetaGraphPtr graph;
  std::shared_ptr<const ForwardAssets> assets;  // what the model is bound to
  ForwardModel model;
  ForwardOptions options = {};  // that the model is run with
  std::string fault = {};       // why the options chosen are not those of the model
  OpTree tree;                  // with the root alone where there are no operators
  // What the lanes show, by the operator they begin at.
  struct WeightUse {
    TensorId tensor{};
    OpRange ops = {};  // from the first that uses it to the last
  };
  std::vector<WeightUse> weights;
  std::vector<std::pair<ValueId, OpRange>> cache;  // from the operator that writes it to the end
  std::vector<ValueId> activations;
  std::vector<ValueId> temporaries;
  std::vector<bool> symbols_matter;  // per symbol: some size depends on it
  bool has_logits = false;           // an architecture's head, whose rows can be chosen
  // Repeated layers that follow one another: bands behind the lanes.
  struct Band {
    std::string name;   // the number: "12"
    std::string stack;  // of the first of its stack: "layer", or which one it is: "encoder"
    OpRange ops = {};
  };
  std::vector<Band> bands;

  // Null where no operators are known.
  const ForwardGraph* forward() const {
    return model.graph && !model.graph->ops.empty() ? &*model.graph : nullptr;
  }
};

// A profile that is not for this model counts as not chosen; options that fail are left out and told in
// `fault`. Throws Error as forward_model() does without options, and Error{cancelled}.
std::shared_ptr<const ForwardScene> make_forward_scene(MetaGraphPtr graph,
                                                       std::shared_ptr<const ForwardAssets> assets,
                                                       const ForwardOptions& options, Progress& progress);

// The sizes that the request chooses. Throws Error{usage} for a name that the file does not have.
std::vector<std::uint64_t> symbols_of(const ForwardGraph& graph, const LoadRequest& request);

// The most that is alive inside each node of the tree, activations and temporaries together.
std::vector<std::uint64_t> peaks_inside(const OpTree& tree, const std::vector<LaneBytes>& usage);

}  // namespace loadline::gui
