// What is derived from a graph: roles, sorting, filtering, totals.
#include "app/gui/state/model/model.h"

#include "core/base/error.h"
#include "tests/gui/sample_graphs.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

std::vector<std::string> names(const Model& model, const std::vector<TensorId>& rows) {
  std::vector<std::string> result;
  for (const TensorId id : rows) result.push_back(model.tensor(id).name);
  return result;
}

TEST(Model, roles_of_the_usual_names) {
  EXPECT_EQ(tensor_role("model.embed_tokens.weight"), Role::embedding);
  EXPECT_EQ(tensor_role("transformer.h.3.attn.c_attn.weight"), Role::attention);
  EXPECT_EQ(tensor_role("transformer.wte.weight"), Role::embedding);
  EXPECT_EQ(tensor_role("model.layers.7.mlp.down_proj.weight"), Role::mlp);
  EXPECT_EQ(tensor_role("model.layers.7.input_layernorm.weight"), Role::norm);
  EXPECT_EQ(tensor_role("encoder.layer.0.attention.output.LayerNorm.bias"), Role::norm);
  EXPECT_EQ(tensor_role("encoder.layer.0.attention.self.query.weight"), Role::attention);
  EXPECT_EQ(tensor_role("encoder.layer.0.intermediate.dense.weight"), Role::mlp);
  EXPECT_EQ(tensor_role("lm_head.weight"), Role::head);
  EXPECT_EQ(tensor_role("rotary.inv_freq"), Role::other);
}

TEST(Model, totals_of_a_70b) {
  const ModelPtr model = make_model(llama_70b_graph(), "");
  EXPECT_EQ(model->graph->tensors.size(), 723u);
  EXPECT_EQ(model->weight_bytes, 141'107'412'992u);
  EXPECT_EQ(model->layer_count, 80);
  EXPECT_EQ(model->tree.root().bytes, model->weight_bytes);
  EXPECT_EQ(std::accumulate(model->role_bytes.begin(), model->role_bytes.end(), std::uint64_t{0}),
            model->weight_bytes);
  EXPECT_EQ(std::accumulate(model->bytes_of_file.begin(), model->bytes_of_file.end(), std::uint64_t{0}),
            model->weight_bytes);
  ASSERT_EQ(model->dtypes.size(), 1u);
  EXPECT_EQ(model->dtypes[0].dtype, DType::bf16);
}

TEST(Model, ties_count_once) {
  const ModelPtr model = make_model(tiny_graph(), "");
  EXPECT_EQ(model->weight_bytes, 4096u + 64u);
  EXPECT_EQ(model->tie_of[0], 1u);
  EXPECT_EQ(model->tie_of[2], 1u);
  EXPECT_EQ(model->tie_of[1], 0u);
  EXPECT_EQ(model->role_bytes[static_cast<std::size_t>(Role::head)], 0u);
}

TEST(Model, views_count_once) {
  const ModelPtr model = make_model(encoded_graph(), "");
  std::uint64_t by_type = 0;
  for (const DTypeShare& share : model->dtypes) by_type += share.bytes;
  EXPECT_EQ(by_type, model->weight_bytes);
  EXPECT_EQ(model->tree.root().bytes, model->weight_bytes);
  EXPECT_EQ(model->tree.root().parameters, parameter_count(*model->graph));
}

TEST(Model, filters_combine) {
  const ModelPtr model = make_model(llama_70b_graph(), "");
  EXPECT_EQ(filtered(*model, "").size(), 723u);
  EXPECT_EQ(filtered(*model, "  q_proj  ").size(), 80u);
  EXPECT_EQ(names(*model, filtered(*model, "layer:12 up_proj")),
            std::vector<std::string>{"model.layers.12.mlp.up_proj.weight"});
  EXPECT_EQ(filtered(*model, "dtype:bf16").size(), 723u);
  EXPECT_EQ(filtered(*model, "-dtype:bf16").size(), 0u);
  EXPECT_EQ(filtered(*model, "size:>1GiB").size(), 2u);
  EXPECT_GT(filtered(*model, "file:model-30*").size(), 0u);
  EXPECT_THROW(filtered(*model, "size:>1G"), Error);
  EXPECT_THROW(filtered(*model, "dtype:"), Error);
}

TEST(Model, nodes_light_up_with_what_is_below_them) {
  const ModelPtr model = make_model(llama_70b_graph(), "");
  const std::vector<TensorId> rows = filtered(*model, "layer:3 q_proj");
  ASSERT_EQ(rows.size(), 1u);
  const std::vector<bool> with = nodes_with(*model, rows);
  std::vector<std::string> lit;
  for (std::uint32_t i = 0; i < with.size(); ++i)
    if (with[i]) lit.push_back(module_path(model->tree, NodeId{i}));
  std::sort(lit.begin(), lit.end());
  EXPECT_EQ(lit, (std::vector<std::string>{"", "model", "model.layers", "model.layers.3",
                                           "model.layers.3.self_attn", "model.layers.3.self_attn.q_proj",
                                           "model.layers.3.self_attn.q_proj.weight"}));
}

TEST(Model, remarks_say_how_bytes_lie) {
  const ModelPtr model = make_model(encoded_graph(), "");
  std::vector<std::string> remarks;
  for (std::uint32_t i = 0; i < model->graph->tensors.size(); ++i)
    remarks.push_back(storage_remark(*model, TensorId{i}));
  EXPECT_EQ(remarks, (std::vector<std::string>{"tied", "", "tied", "view", "part", "deflate", "big-endian",
                                               "unreadable"}));
  EXPECT_TRUE(model->remarks);
  EXPECT_EQ(model->encodings.size(), 3u);
  EXPECT_FALSE(make_model(llama_70b_graph(), "")->remarks);
}

TEST(Model, sorting_falls_back_to_natural_names) {
  const ModelPtr model = make_model(llama_70b_graph(), "");
  std::vector<TensorId> rows = filtered(*model, "q_proj");
  sort_tensors(*model, rows, SortColumn::bytes, false);
  EXPECT_EQ(model->tensor(rows[2]).name, "model.layers.2.self_attn.q_proj.weight");
  EXPECT_EQ(model->tensor(rows[10]).name, "model.layers.10.self_attn.q_proj.weight");
  sort_tensors(*model, rows, SortColumn::name, false);
  EXPECT_EQ(model->tensor(rows[0]).name, "model.layers.79.self_attn.q_proj.weight");
  rows = filtered(*model, "");
  sort_tensors(*model, rows, SortColumn::bytes, true);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [&](TensorId a, TensorId b) {
    return model->bytes[index(a)] < model->bytes[index(b)];
  }));
}

TEST(Model, every_column_sorts_every_way) {
  const ModelPtr model = make_model(many_tensors(2000), "");
  for (std::size_t column = 0; column < kSortColumnNames.size(); ++column)
    for (const bool ascending : {true, false}) {
      std::vector<TensorId> rows = filtered(*model, "");
      sort_tensors(*model, rows, static_cast<SortColumn>(column), ascending);
      std::sort(rows.begin(), rows.end());
      EXPECT_EQ(rows, filtered(*model, ""));
    }
}

TEST(Model, an_empty_graph_is_a_model) {
  const ModelPtr model = make_model(std::make_shared<const MetaGraph>(), "");
  EXPECT_EQ(model->weight_bytes, 0u);
  EXPECT_TRUE(filtered(*model, "").empty());
}

}  // namespace
}  // namespace loadline::gui
