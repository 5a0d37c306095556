// The tree of a forward graph's operators, and what is folded together in it.
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/tensor_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using ::testing::ElementsAre;

struct Model {
  MetaGraph graph;
  ForwardModel forward;
  OpTree tree;
};

Model model_of(std::string_view preset) {
  Model model = {config_graph(find_preset(preset)->config_json, "config.json"), {}, {}};
  model.forward = forward_model(model.graph, *built_in_assets(), built_in_assets()->profile("fused"));
  model.tree = op_tree(model.graph, *model.forward.graph);
  return model;
}

OpNodeId node_at(const OpTree& tree, std::string_view path) {
  for (std::uint32_t i = 0; i < tree.nodes.size(); ++i)
    if (op_path(tree, OpNodeId{i}) == path) return OpNodeId{i};
  ADD_FAILURE() << "no node " << path;
  return kRootOpNode;
}

std::vector<std::string> groups_of(const OpTree& tree, OpNodeId node) {
  std::vector<std::string> names;
  for (const OpGroup& group : folded_children(tree, node)) names.push_back(group_name(tree, group));
  return names;
}

// A graph of operators with these names and nothing else.
ForwardGraph named(const std::vector<std::string>& names) {
  ForwardGraph graph;
  for (const std::string& name : names)
    graph.ops.push_back({.kind = "MatMul", .name = name, .inputs = {}, .weights = {}, .outputs = {}});
  return graph;
}

TEST(OpTree, EveryOperatorIsInItOnce) {
  for (const char* preset : {"demo", "deepseek-v3", "whisper-tiny", "gemma-3-1b"}) {
    if (find_preset(preset) == nullptr) continue;
    const Model model = model_of(preset);
    std::vector<int> seen(model.forward.graph->ops.size(), 0);
    for (const OpNode& node : model.tree.nodes)
      for (const std::uint32_t op : node.ops) ++seen[op];
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(seen.size())) << preset;
    EXPECT_EQ(model.tree.nodes.front().all_ops, seen.size()) << preset;
    const auto& stored = model.forward.bound->stored;  // DeepSeek's last layer is in the files alone
    if (stored.empty())
      EXPECT_EQ(model.tree.nodes.front().weight_bytes, storage_bytes(model.graph)) << preset;
  }
}

TEST(OpTree, LayersThatAreAlikeAreOneGroup) {
  const Model llama = model_of("llama-3-8b");
  EXPECT_THAT(groups_of(llama.tree, node_at(llama.tree, "model.layers")), ElementsAre("0 - 31"));
  // the first three layers of DeepSeek-V3 are dense
  const Model deepseek = model_of("deepseek-v3");
  EXPECT_THAT(groups_of(deepseek.tree, node_at(deepseek.tree, "model.layers")),
              ElementsAre("0 - 2", "3 - 60"));
}

TEST(OpTree, ATiedWeightCountsOnce) {
  const Model tied = model_of("llama-3.2-1b");
  EXPECT_EQ(tied.tree.nodes.front().weight_bytes, storage_bytes(tied.graph));
}

TEST(OpTree, SlashesDivideWhereMostNamesHaveThem) {
  const OpTree tree = op_tree({}, named({"Identity_8", "/model/layers.0/MatMul", "/model/layers.0/Add",
                                         "/model/layers.1/MatMul", "/model/layers.1/Add", "", "a.b"}));
  EXPECT_EQ(op_path(tree, node_at(tree, "model/layers.0/MatMul")), "model/layers.0/MatMul");
  EXPECT_EQ(tree.nodes.front().ops, (std::vector<std::uint32_t>{5}));
  EXPECT_THAT(groups_of(tree, kRootOpNode), ElementsAre("Identity_8", "model", "a.b"));
  EXPECT_THAT(groups_of(tree, node_at(tree, "model")), ElementsAre("layers.0 - layers.1"));
}

TEST(OpTree, GroupsNameTheirRuns) {
  std::vector<std::string> names;
  for (const char* number : {"0", "1", "2", "4", "6", "7", "9", "11", "12345678901", "x"})
    for (const char* part : {".norm", ".linear"}) names.push_back("h." + std::string(number) + part);
  const OpTree tree = op_tree({}, named(names));
  EXPECT_THAT(groups_of(tree, node_at(tree, "h")), ElementsAre("0 - 2, 4, 6 - 7 and 3 more", "x"));
}

TEST(OpTree, SingleOperatorsAreNotFolded) {
  const OpTree tree = op_tree({}, named({"Constant_1", "MatMul_2", "Constant_3", "Constant_4"}));
  EXPECT_THAT(groups_of(tree, kRootOpNode),
              ElementsAre("Constant_1", "MatMul_2", "Constant_3", "Constant_4"));
}

TEST(OpTree, DeepAndEmptyNamesStayBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a.";
  const OpTree tree = op_tree({}, named({deep, "...", ".", "a..b"}));
  EXPECT_LT(tree.nodes.size(), 70u);
  EXPECT_EQ(tree.nodes.front().ops.size(), 2u);
  EXPECT_EQ(tree.nodes.front().all_ops, 4u);
}

}  // namespace
}  // namespace loadline
