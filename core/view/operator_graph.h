// A part of a forward graph as boxes and edges, and a place in layers for each.
#pragma once

#include "core/graph/forward_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/op_place.h"
#include "core/view/layouts.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace loadline::view {

// --- Boxes: the operators and modules directly inside one module, or some of them around an operator.

enum class BoxKind : std::uint8_t {
  op,
  module,   // stands for all of its operators
  arrives,  // values made outside of the part, or given to the model
  leaves,   // values used outside of the part, or the model's results
};

struct GraphBox {
  BoxKind kind = BoxKind::op;
  std::uint32_t op = 0;                     // position of the operator; of a module, its first one
  graph::OpNodeId module{};                 // of a module
  std::vector<graph::ValueId> values = {};  // arrives, leaves: in the order of the pass
  // Boxes of the same module that are left out and give to this one, or take from it.
  std::uint32_t hidden_before = 0, hidden_after = 0;
};

// What flows from one box to another. Never from a box to itself.
struct GraphEdge {
  std::size_t from = 0, to = 0;  // positions in GraphPart::boxes
  std::vector<graph::ValueId> values = {};
};

struct GraphPart {
  std::vector<GraphBox> boxes;  // operators and modules in the order of the pass, then arrives and leaves
  std::vector<GraphEdge> edges;
  std::size_t left_out = 0;  // operators and modules directly inside the module that have no box

  std::optional<std::size_t> box_of(std::uint32_t op) const;

  std::vector<std::uint32_t> box_of_op = {};  // per operator; kNoBox
  static constexpr std::uint32_t kNoBox = UINT32_MAX;
};

// The node that directly holds each operator. An operator that is_part_of_next() is with the next one.
std::vector<graph::OpNodeId> nodes_of_operators(const graph::ForwardGraph& forward,
                                                const graph::OpTree& tree);
// Whether the node is the module or lies in it.
bool is_inside(const graph::OpTree& tree, graph::OpNodeId node, graph::OpNodeId module);
// The module with this path, as graph::op_path() has it, if it has more than one operator.
std::optional<graph::OpNodeId> module_called(const graph::OpTree& tree, std::string_view path);
// The operator with this name, else the one that makes a value with it; those in bodies come behind.
std::optional<graph::OpPlace> operator_called(const graph::ForwardGraph& forward, std::string_view name);
// Per operator: whether it is a constant of the file, or a weight under another name (an Identity), that only
// other operators use.
std::vector<bool> constants_of(const graph::ForwardGraph& forward);
// Goes down from a node while it has one child and no operators of its own.
graph::OpNodeId first_that_divides(const graph::OpTree& tree, graph::OpNodeId node);

// All boxes of one module with what flows between them; made once, drawn in parts. A module of one operator
// is drawn as that operator. A module that would give to itself by way of others is drawn as its parts:
// nothing flows in a circle. Bodies of operators are not drawn. O(operators + edges). `nodes` is
// nodes_of_operators(); operators that are `folded` (per operator, or empty) are left out with what they
// give.
class ModuleGraph {
 public:
  ModuleGraph(const graph::ForwardGraph& forward, const graph::OpTree& tree,
              std::span<const graph::OpNodeId> nodes, graph::OpNodeId module,
              const std::vector<bool>& folded = {});

  // If there are more than `most` boxes, those that are the fewest edges from `around` (else from the first).
  GraphPart part(std::optional<std::uint32_t> around, std::size_t most) const;

 private:
  std::vector<std::uint32_t> nearest(std::uint32_t start, std::size_t most) const;
  void add_outer(GraphPart& part, const std::map<graph::ValueId, std::set<std::uint32_t>>& arriving,
                 std::span<const std::uint32_t> taken) const;

  std::vector<GraphBox> boxes_;
  std::vector<std::uint32_t> box_of_op_;
  std::vector<GraphEdge> edges_;
  // Per box: its edges, the values from outside that it takes, those that it gives to the outside.
  std::vector<std::vector<std::uint32_t>> beside_;
  std::vector<std::vector<graph::ValueId>> arrives_, leaves_;
};

// A part of a module that is drawn once.
GraphPart graph_part(const graph::ForwardGraph& forward, const graph::OpTree& tree,
                     std::span<const graph::OpNodeId> nodes, graph::OpNodeId module,
                     std::optional<std::uint32_t> around, std::size_t most);

// --- What is inside an operator: the branches of an If, the turn of a Loop.

// The operator that holds each body.
std::vector<graph::OpPlace> holders_of_bodies(const graph::ForwardGraph& forward);

// An operator that stands for an output that its body does not make: a value from outside, or an input.
inline constexpr std::string_view kPassesOn = "passes on";

// The bodies of an operator as a graph of its own: a module each, under the name of its attribute. Values
// keep their numbers; those of the graph around it come from outside.
struct InnerGraph {
  static constexpr std::uint32_t kNoPosition = UINT32_MAX;  // of an operator that is kPassesOn
  graph::ForwardGraph forward;
  std::vector<graph::OpPlace> places;  // per operator
};
// `op` is one of `forward`, or of its bodies.
InnerGraph graph_inside(const graph::ForwardGraph& forward, const graph::Op& op);

// --- Places: producers above consumers.

struct BoxSize {
  double w = 0, h = 0;
};
struct GraphPoint {
  double x = 0, y = 0;
};
struct GraphSpacing {
  double across = 24;  // between the boxes of a layer
  double down = 44;    // between layers
  double line = 10;    // kept free for an edge that passes a layer
};

struct GraphPlaces {
  std::vector<Rect> boxes;  // parallel to GraphPart::boxes
  std::vector<std::vector<GraphPoint>>
      edges;  // parallel to GraphPart::edges: from a box's edge to the other's
  std::vector<std::vector<std::size_t>> layers;  // positions of boxes, from left to right
  double w = 0, h = 0;                           // everything is in [0, w) x [0, h)
};

// Nothing flows in a circle. `sizes` is parallel to the boxes. The method of Sugiyama, Tagawa, Toda, Methods
// for Visual Understanding of Hierarchical System Structures, 1981: the longest path decides a box's layer,
// barycenters the order inside it. Places are the nearest to the middle of the neighbors that keep order and
// distance: isotonic regression, solved exactly by pooling adjacent violators (Ayer et al., 1955). Edges that
// leave one box share their way.
GraphPlaces place_graph(const GraphPart& part, std::span<const BoxSize> sizes, const GraphSpacing& spacing);

// The box beside `from` in a direction: above and below along edges, the nearest in the layer to the left and
// right. Nothing if there is none.
enum class Direction : std::uint8_t { up, down, left, right };
std::optional<std::size_t> box_beside(const GraphPart& part, const GraphPlaces& places, std::size_t from,
                                      Direction direction);

}  // namespace loadline::view
