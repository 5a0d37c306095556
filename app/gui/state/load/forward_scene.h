// The forward pass as the window shows it: operators, their module tree, and the lifetimes of values.
#pragma once

#include "core/base/progress.h"
#include "core/forward/model/forward_model.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/op_place.h"
#include "core/load/request/request.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::gui {

// Immutable once made.
struct ForwardScene {
  graph::MetaGraphPtr graph;
  std::shared_ptr<const forward::ForwardAssets>
      assets;  // keeps alive the architecture that the model is bound to
  forward::ForwardModel model;
  forward::ForwardOptions options = {};  // the options in force
  std::string fault = {};                // why the chosen options are not in force
  graph::OpTree tree;                    // only the root if there are no operators
  // The rows of the lanes, sorted by the operator at which they begin.
  struct WeightUse {
    graph::TensorId tensor{};
    forward::OpRange ops = {};  // from its first use to its last
  };
  std::vector<WeightUse> weights;
  std::vector<std::pair<graph::ValueId, forward::OpRange>>
      cache;  // from the operator that writes it to the end
  std::vector<graph::ValueId> activations;
  std::vector<graph::ValueId> temporaries;
  std::vector<bool> symbols_matter;  // per symbol: whether some size depends on it
  bool has_logits = false;           // an architecture with a head, whose rows can be chosen
  // A repeated layer, drawn as a band behind the lanes.
  struct Band {
    std::string name;   // the number of the layer: "12"
    std::string stack;  // for the first layer of a stack: "layer", or the stack's name: "encoder"
    forward::OpRange ops = {};
  };
  std::vector<Band> bands;

  // What the graph shows, for the operators that a file lists: their tree, the operator that holds each body,
  // and for each operator, of each body and of the graph itself behind them, that of the pass which makes its
  // results, if it runs.
  std::optional<graph::OpTree> file_tree = {};
  std::vector<graph::OpPlace> holders = {};
  std::vector<graph::OpPlace> file_ops = {};  // per operator of the pass: the one of the file
  std::vector<std::optional<graph::ValueId>> file_values = {};  // per value of the file: the one of the pass
  std::vector<std::vector<std::optional<std::uint32_t>>> runs_as = {};
  std::vector<bool> bodies_run = {};  // as graph::bodies_that_run() has it
  std::map<graph::ValueId, graph::TensorId> constants =
      {};  // the tensor of each constant that the file lists

  // The operators that the graph shows: the file's own, else those of the pass. Null if none are known.
  const graph::ForwardGraph* drawn() const { return file_tree ? &*graph->forward : forward(); }
  const graph::OpTree& drawn_tree() const { return file_tree ? *file_tree : tree; }
  // Between the operators of drawn() and of the pass, and its values.
  graph::OpPlace place_of(std::size_t op) const;
  std::optional<std::size_t> op_at(graph::OpPlace place) const;
  // Why no operator of the pass makes the results of this one.
  std::string_view why_not_run(graph::OpPlace place) const;
  std::optional<graph::ValueId> in_pass(graph::ValueId drawn_value) const;

  // The graph; null if no operators are known.
  const graph::ForwardGraph* forward() const {
    return model.graph && !model.graph->ops.empty() ? &*model.graph : nullptr;
  }
};

// A profile that is not for this model counts as not chosen. Options that fail are left out, and `fault` says
// why. Throws the Errors of forward_model() without options, and Error{canceled}.
std::shared_ptr<const ForwardScene> make_forward_scene(graph::MetaGraphPtr graph,
                                                       std::shared_ptr<const forward::ForwardAssets> assets,
                                                       const forward::ForwardOptions& options,
                                                       Progress& progress);

// The symbol values with the sizes of the request. Throws Error{usage} for an unknown name of a size.
std::vector<std::uint64_t> symbols_of(const graph::ForwardGraph& graph, const load::LoadRequest& request);

// For each node of the tree, the peak bytes of activations and temporaries during its operators.
std::vector<std::uint64_t> peaks_inside(const graph::OpTree& tree,
                                        const std::vector<forward::LaneBytes>& usage);

}  // namespace loadline::gui
