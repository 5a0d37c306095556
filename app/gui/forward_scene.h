// The forward pass as the window shows it: operators, their tree, and when everything is alive.
#pragma once

#include "core/base/progress.h"
#include "core/forward/forward_model.h"
#include "core/graph/op_tree.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loadline::gui {

// What the user chose; a change of the options lowers anew, one of the sizes only evaluates.
struct ForwardChoice {
  ForwardOptions options = {};
  std::uint64_t batch = 1;
  std::uint64_t sequence = 512;
  std::uint64_t past = 0;
  // Of symbols that the file itself names, by position behind B, S and P; 1 for those beyond the end.
  std::vector<std::uint64_t> others = {};
  bool operator==(const ForwardChoice&) const = default;
};
inline constexpr std::uint64_t kMostBatch = 256;
inline constexpr std::uint64_t kMostSequence = 1 << 20;
inline constexpr std::uint64_t kMostPast = 1 << 20;

// Immutable once made.
struct ForwardScene {
  MetaGraphPtr graph;
  std::shared_ptr<const ForwardAssets> assets;  // what the model is bound to
  ForwardModel model;
  std::string fault = {};  // why the options chosen are not those of the model
  OpTree tree;             // with the root alone where there are no operators
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

std::vector<std::uint64_t> symbols_of(const ForwardGraph& graph, const ForwardChoice& choice);

// The most that is alive inside each node of the tree, activations and temporaries together.
std::vector<std::uint64_t> peaks_inside(const OpTree& tree, const std::vector<LaneBytes>& usage);

}  // namespace loadline::gui
