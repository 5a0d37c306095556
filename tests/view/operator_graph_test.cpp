// Operators as boxes in layers: which boxes and edges, and the rules that every layout keeps.
#include "core/view/operator_graph.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::view {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

graph::ValueId value(std::size_t i) { return graph::ValueId{static_cast<std::uint32_t>(i)}; }

// Operators by name with the positions of the operators they read; each has one result, value i for operator
// i. A position that is too large is a value that the model is given.
struct Line {
  std::string name;
  std::vector<std::size_t> reads;
};

graph::ForwardGraph graph_of(const std::vector<Line>& lines) {
  graph::ForwardGraph forward;
  std::size_t values = lines.size();
  for (const Line& line : lines)
    for (const std::size_t read : line.reads) values = std::max(values, read + 1);
  for (std::size_t i = 0; i < values; ++i) forward.values.push_back({.name = "v" + std::to_string(i)});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    graph::Op op{"MatMul", lines[i].name, {}, {}, {value(i)}};
    for (const std::size_t read : lines[i].reads) op.inputs.push_back(value(read));
    forward.ops.push_back(std::move(op));
  }
  return forward;
}

struct Sample {
  explicit Sample(const std::vector<Line>& lines)
      : forward(graph_of(lines)),
        tree(graph::op_tree({}, forward)),
        nodes(nodes_of_operators(forward, tree)) {}

  GraphPart part(std::string_view path, std::optional<std::uint32_t> around = {},
                 std::size_t most = 1000) const {
    for (std::uint32_t i = 0; i < tree.nodes.size(); ++i)
      if (graph::op_path(tree, graph::OpNodeId{i}) == path)
        return graph_part(forward, tree, nodes, graph::OpNodeId{i}, around, most);
    ADD_FAILURE() << "no module " << path;
    return {};
  }

  // "a>b" for each edge, with the names of boxes; what is outside is "in" or "out".
  std::vector<std::string> edges(const GraphPart& part) const {
    std::vector<std::string> texts;
    for (const GraphEdge& edge : part.edges)
      texts.push_back(name(part, edge.from) + ">" + name(part, edge.to));
    return texts;
  }
  std::string name(const GraphPart& part, std::size_t box) const {
    switch (part.boxes[box].kind) {
      case BoxKind::op:
        return forward.ops[part.boxes[box].op].name;
      case BoxKind::module:
        return "[" + graph::op_path(tree, part.boxes[box].module) + "]";
      case BoxKind::arrives:
        return "in";
      default:
        return "out";
    }
  }

  graph::ForwardGraph forward;
  graph::OpTree tree;
  std::vector<graph::OpNodeId> nodes;
};

// A residual layer: what comes in goes around the two parts of `attn`.
const Sample& layer() {
  static const Sample kSample(
      {{"h.norm", {9}}, {"h.attn.q", {0}}, {"h.attn.o", {1}}, {"h.add", {9, 2}}, {"head", {3}}});
  return kSample;
}

TEST(GraphPart, OfAModuleHasItsOperatorsAndModules) {
  const GraphPart part = layer().part("h");
  EXPECT_THAT(layer().edges(part), testing::UnorderedElementsAre("h.norm>[h.attn]", "[h.attn]>h.add",
                                                                 "in>h.norm", "in>h.add", "h.add>out"));
  EXPECT_EQ(part.left_out, 0U);
  EXPECT_EQ(part.box_of(1), part.box_of(2));  // both are inside the module
  EXPECT_EQ(part.box_of(4), std::nullopt);
}

// Attention is cut around a module: it reads what the first part of `attn` makes, and feeds the last.
TEST(GraphPart, SplitsModulesThatGiveToThemselves) {
  const Sample sample({{"h.attn.q", {9}},
                       {"h.split", {0}},
                       {"h.scores", {1}},
                       {"h.attn.o", {2}},
                       {"h.mlp.up", {3}},
                       {"h.mlp.down", {4}}});
  const GraphPart part = sample.part("h");
  EXPECT_THAT(sample.edges(part),
              testing::UnorderedElementsAre("in>h.attn.q", "h.attn.q>h.split", "h.split>h.scores",
                                            "h.scores>h.attn.o", "h.attn.o>[h.mlp]", "[h.mlp]>out"));
}

TEST(GraphPart, OperatorsThatShareANameAreNoModule) {
  const Sample sample({{"m.x", {9}}, {"m.norm", {0}}, {"m.x", {0, 1}}});
  const GraphPart part = sample.part("m");
  EXPECT_EQ(std::ranges::count(part.boxes, BoxKind::op, &GraphBox::kind), 3);
}

TEST(GraphPart, OfManyBoxesWithoutEdgesTakesThoseThatComeNext) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < 40; ++i) lines.push_back({"op" + std::to_string(i), {}});
  const Sample sample(lines);
  const GraphPart part = sample.part("", 38, 4);
  std::vector<std::uint32_t> ops;
  for (const GraphBox& box : part.boxes)
    if (box.kind == BoxKind::op) ops.push_back(box.op);
  EXPECT_THAT(ops, ElementsAre(0, 1, 38, 39));
}

TEST(GraphPart, JoinsWhatArrivesAtTheSameBoxes) {
  const Sample sample({{"m.a", {5, 6}}, {"m.b", {5, 6, 0}}, {"m.c", {7, 1}}});
  const GraphPart part = sample.part("m");
  std::vector<std::size_t> values;
  for (const GraphBox& box : part.boxes)
    if (box.kind == BoxKind::arrives) values.push_back(box.values.size());
  EXPECT_THAT(values, testing::UnorderedElementsAre(2, 1));
}

TEST(GraphPart, ResultsLeaveEvenIfTheyAreUsedInside) {
  Sample sample({{"a.x", {9}}, {"a.y", {0}}});
  sample.forward.outputs = {value(0), value(1)};
  const GraphPart part = sample.part("a");
  EXPECT_EQ(std::ranges::count(part.boxes, BoxKind::leaves, &GraphBox::kind), 2);
}

// Each part of one module: the boxes of another part do not change it.
TEST(GraphPart, OfOneModuleGraphStandsForItself) {
  std::vector<Line> lines = {{"op0", {}}};
  for (std::size_t i = 1; i < 60; ++i) lines.push_back({"op" + std::to_string(i), {i - 1, i / 2}});
  const Sample sample(lines);
  const ModuleGraph boxes(sample.forward, sample.tree, sample.nodes, graph::kRootOpNode);
  for (const std::uint32_t around : {0U, 30U, 59U, 30U}) {
    const GraphPart part = boxes.part(around, 7);
    EXPECT_EQ(part.boxes.size() + part.left_out, 60U + (around == 59 ? 1 : 0));  // the last one's result
    ASSERT_TRUE(part.box_of(around));
    for (const GraphEdge& edge : part.edges)
      if (part.boxes[edge.to].kind == BoxKind::op) {
        const auto& reads = sample.forward.ops[part.boxes[edge.to].op].inputs;
        EXPECT_NE(std::ranges::find(reads, edge.values.front()), reads.end());
      }
  }
}

TEST(GraphPart, ModulesAndOperatorsAreCalledByTheirNames) {
  const Sample sample({{"m.a.x", {}}, {"m.a.y", {0}}, {"m.ab", {1}}});
  ASSERT_TRUE(module_called(sample.tree, "m.a"));
  EXPECT_EQ(graph::op_path(sample.tree, *module_called(sample.tree, "m.a")), "m.a");
  EXPECT_EQ(module_called(sample.tree, ""), graph::kRootOpNode);
  for (const char* const none : {"m.ab", "m.a.x", "a", "m.abc", "m.a.x.y"})
    EXPECT_FALSE(module_called(sample.tree, none)) << none;
  EXPECT_EQ(operator_called(sample.forward, "m.ab")->at, 2u);
  EXPECT_EQ(operator_called(sample.forward, "v1")->at, 1u) << "by what it makes";
  EXPECT_FALSE(operator_called(sample.forward, ""));
}

TEST(GraphPart, LeavesConstantsToThoseThatUseThem) {
  Sample sample({{"m.c", {}}, {"m.x", {9, 0}}, {"m.y", {1, 0}}});
  sample.forward.ops[0].kind = "Constant";
  const std::vector<bool> constants = constants_of(sample.forward);
  EXPECT_THAT(constants, ElementsAre(true, false, false));
  const GraphPart part =
      ModuleGraph(sample.forward, sample.tree, sample.nodes, graph::kRootOpNode, constants).part({}, 100);
  EXPECT_EQ(part.box_of(0), std::nullopt);
  sample.forward.outputs = {value(0)};
  EXPECT_FALSE(constants_of(sample.forward)[0]) << "a result of the model is drawn";
}

// An If whose branches read a value from outside; one of them passes it on as it is.
TEST(GraphInside, OfAnIfHasItsBranches) {
  graph::ForwardGraph forward = graph_of({{"make", {}}, {"choose", {0}}});
  for (const char* name : {"then", "deep"}) forward.values.push_back({.name = name});
  forward.bodies.push_back({{{"Relu", "r", {value(0)}, {}, {value(2)}}}, {}, {value(2)}});
  forward.bodies.push_back({{}, {}, {value(0)}});
  forward.ops[1].kind = "If";
  forward.ops[1].bodies = {0, 1};
  const InnerGraph inner = graph_inside(forward, forward.ops[1]);
  ASSERT_EQ(inner.forward.ops.size(), 2U);
  EXPECT_EQ(inner.forward.ops[0].name, "then_branch.r");
  EXPECT_EQ(inner.places[0], (graph::OpPlace{0, 0}));
  EXPECT_EQ(inner.forward.ops[1].kind, kPassesOn);
  EXPECT_EQ(inner.places[1].at, InnerGraph::kNoPosition);
  const graph::OpTree tree = graph::op_tree({}, inner.forward);
  const GraphPart part =
      graph_part(inner.forward, tree, nodes_of_operators(inner.forward, tree), graph::kRootOpNode, {}, 100);
  std::size_t outer = 0;
  for (const GraphEdge& edge : part.edges)
    outer += part.boxes[edge.from].kind == BoxKind::arrives && edge.values.front() == value(0);
  EXPECT_EQ(outer, 2U) << "what comes from outside goes to both branches";
  EXPECT_EQ(holders_of_bodies(forward)[1], (graph::OpPlace{graph::OpPlace::kMain, 1}));
}

// What a graph inside of an inner operator uses comes to that operator.
TEST(GraphInside, EdgesLeadToOperatorsWhoseBodiesUseAValue) {
  graph::ForwardGraph forward = graph_of({{"make", {}}, {"loop", {0}}});
  for (const char* name : {"turn", "inner", "out"}) forward.values.push_back({.name = name});
  forward.bodies.push_back({{{"Relu", "r", {value(2)}, {}, {value(3)}}}, {}, {value(3)}});
  graph::Op choose{"If", "if", {}, {}, {value(4)}};
  choose.bodies = {0};
  forward.bodies.push_back({{choose}, {value(2)}, {value(4)}});
  forward.ops[1].kind = "Loop";
  forward.ops[1].bodies = {1};
  const InnerGraph inner = graph_inside(forward, forward.ops[1]);
  EXPECT_THAT(inner.forward.ops.at(0).inputs, ElementsAre(value(2)));
  EXPECT_EQ(holders_of_bodies(forward)[0], (graph::OpPlace{1, 0}));
}

TEST(GraphPart, OfTooManyBoxesTakesTheNearest) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < 500; ++i)
    lines.push_back({"op" + std::to_string(i), i == 0 ? std::vector<std::size_t>{} : std::vector{i - 1}});
  const Sample sample(lines);
  const GraphPart part = sample.part("", 250, 9);
  EXPECT_EQ(part.left_out, 491U);
  std::vector<std::uint32_t> ops;
  for (const GraphBox& box : part.boxes) ops.push_back(box.op);
  EXPECT_THAT(ops, ElementsAre(246, 247, 248, 249, 250, 251, 252, 253, 254));
  EXPECT_EQ(part.boxes.front().hidden_before, 1U);
  EXPECT_EQ(part.boxes.front().hidden_after, 0U);
  EXPECT_EQ(part.boxes.back().hidden_after, 1U);
}

TEST(GraphPart, OfOneBoxIsPlaced) {
  const Sample sample({{"a.x", {}}, {"a.y", {}}});
  const GraphPart part = sample.part("a", 1, 1);
  ASSERT_EQ(part.boxes.size(), 2U);  // and what leaves it
  const GraphPlaces places = place_graph(part, std::vector<BoxSize>(2, {40, 20}), {});
  EXPECT_EQ(places.boxes[0].x, 0);
  EXPECT_EQ(places.w, 40);
  EXPECT_THAT(place_graph({}, {}, {}).boxes, IsEmpty());
}

TEST(FirstThatDivides, PassesModulesWithOnePart) {
  const Sample sample({{"model.h.a.x", {}}, {"model.h.b.x", {0}}, {"model.h.b.y", {1}}});
  EXPECT_EQ(graph::op_path(sample.tree, first_that_divides(sample.tree, graph::kRootOpNode)), "model.h");
}

// Random graphs, in modules that are entered twice, too: then edges run both ways between two boxes.
Sample random_sample(std::mt19937& random, std::size_t ops) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < ops; ++i) {
    Line line{"m." + (random() % 3 == 0 ? "part" + std::to_string(random() % 4) + "." : std::string()) +
                  "op" + std::to_string(i),
              {}};
    for (std::size_t k = random() % 4; k > 0 && i > 0; --k)
      line.reads.push_back(random() % 6 == 0   ? ops + random() % 5
                           : random() % 2 == 0 ? i - 1 - random() % std::min<std::size_t>(i, 4)
                                               : random() % i);
    lines.push_back(std::move(line));
  }
  return Sample(lines);
}

TEST(GraphPlaces, KeepTheirRules) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const Sample sample = random_sample(random, 2 + random() % 90);
    const GraphPart part = sample.part("m", std::nullopt, 5 + random() % 100);
    std::vector<BoxSize> sizes;
    for (std::size_t i = 0; i < part.boxes.size(); ++i)
      sizes.push_back({static_cast<double>(40 + random() % 100), static_cast<double>(20 + random() % 40)});
    const GraphSpacing spacing;
    const GraphPlaces places = place_graph(part, sizes, spacing);
    ASSERT_EQ(places.boxes.size(), part.boxes.size());
    std::set<std::size_t> listed;
    for (const auto& layer : places.layers)
      for (std::size_t i = 0; i < layer.size(); ++i) {
        EXPECT_TRUE(listed.insert(layer[i]).second);
        if (i == 0) continue;
        const Rect& before = places.boxes[layer[i - 1]];
        EXPECT_GE(places.boxes[layer[i]].x, before.x + before.w + spacing.across - 1e-6);
      }
    EXPECT_EQ(listed.size(), part.boxes.size());
    for (std::size_t k = 1; k < places.layers.size(); ++k)
      for (const std::size_t below : places.layers[k])
        for (const std::size_t above : places.layers[k - 1])
          EXPECT_GE(places.boxes[below].y, places.boxes[above].y + places.boxes[above].h + 1);
    for (std::size_t i = 0; i < part.boxes.size(); ++i) {
      EXPECT_GE(places.boxes[i].x, -1e-6);
      EXPECT_LE(places.boxes[i].x + places.boxes[i].w, places.w + 1e-6);
      EXPECT_LE(places.boxes[i].y + places.boxes[i].h, places.h + 1e-6);
    }
    for (std::size_t e = 0; e < part.edges.size(); ++e) {
      const GraphEdge& edge = part.edges[e];
      const bool down = places.boxes[edge.from].y < places.boxes[edge.to].y;
      const GraphBox &from = part.boxes[edge.from], &to = part.boxes[edge.to];
      EXPECT_TRUE(down) << from.op << " " << to.op;
      const auto& upper = down ? places.edges[e].front() : places.edges[e].back();
      const auto& lower = down ? places.edges[e].back() : places.edges[e].front();
      const Rect& top = places.boxes[down ? edge.from : edge.to];
      const Rect& bottom = places.boxes[down ? edge.to : edge.from];
      EXPECT_NEAR(upper.y, top.y + top.h, 1e-6);
      EXPECT_NEAR(lower.y, bottom.y, 1e-6);
      EXPECT_TRUE(lower.x >= bottom.x && lower.x <= bottom.x + bottom.w);
    }
  }
}

// Trees and ladders can be drawn without a crossing: neighbors stay neighbors.
TEST(GraphPlaces, OfATreeDoNotCross) {
  std::vector<Line> lines = {{"m.op0", {}}};
  for (std::size_t i = 1; i < 31; ++i) lines.push_back({"m.op" + std::to_string(i), {(i - 1) / 2}});
  const Sample sample(lines);
  const GraphPart part = sample.part("m");
  const GraphPlaces places = place_graph(part, std::vector<BoxSize>(part.boxes.size(), {60, 30}), {});
  const auto middle = [&](std::size_t box) { return places.boxes[box].x + places.boxes[box].w / 2; };
  for (const GraphEdge& a : part.edges)
    for (const GraphEdge& b : part.edges)
      if (places.boxes[a.from].y == places.boxes[b.from].y && middle(a.from) < middle(b.from)) {
        EXPECT_LE(middle(a.to), middle(b.to));
      }
}

TEST(BoxBeside, FollowsEdgesAndLayers) {
  const Sample sample({{"m.a", {}}, {"m.b", {0}}, {"m.c", {0}}, {"m.d", {1, 2}}});
  const GraphPart part = sample.part("m");
  const GraphPlaces places = place_graph(part, std::vector<BoxSize>(part.boxes.size(), {60, 30}), {});
  const auto from = [&](std::uint32_t op, Direction direction) {
    const auto box = box_beside(part, places, *part.box_of(op), direction);
    return box ? sample.name(part, *box) : std::string("none");
  };
  EXPECT_EQ(from(0, Direction::up), "none");
  const std::string below = from(0, Direction::down);
  EXPECT_THAT(below, testing::AnyOf("m.b", "m.c"));
  const bool b_is_left = from(1, Direction::left) == "none";
  EXPECT_EQ(from(1, b_is_left ? Direction::right : Direction::left), "m.c");
  EXPECT_EQ(from(3, Direction::down), "out");
  EXPECT_EQ(from(1, Direction::down), "m.d");
}

}  // namespace
}  // namespace loadline::view
