// Two open models beside each other: what counts as a difference, and what it marks.
#include "app/gui/state/model/model_diff.h"
#include "app/gui/state/workspace.h"
#include "tests/gui/settle.h"
#include "tests/support/builders.h"

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

class Diffs : public ::testing::Test {
 protected:
  // One F32 or F16 tensor of 8 bytes for each name, with these bytes.
  void file(const std::string& name, const std::vector<std::pair<std::string, std::string>>& tensors,
            const std::string& data) {
    std::string json = "{";
    for (std::size_t i = 0; i < tensors.size(); ++i)
      json += (i > 0 ? ",\"" : "\"") + tensors[i].first + "\":{" + tensors[i].second + ",\"data_offsets\":[" +
              std::to_string(8 * i) + "," + std::to_string(8 * i + 8) + "]}";
    std::string bytes = loadline::testing::safetensors_bytes(json + "}", 8 * tensors.size());
    bytes.replace(bytes.size() - data.size(), data.size(), data);
    loadline::testing::write_file(folder_ / name, bytes);
    workspace.open(folder_ / name);
    settle(workspace);
  }
  std::size_t count(DiffKind kind) const {
    return workspace.document().diff.result.value()->counts[static_cast<std::size_t>(kind)];
  }
  const std::string f32 = R"("dtype":"F32","shape":[2])", row = R"("dtype":"F32","shape":[1,2])",
                    f16 = R"("dtype":"F16","shape":[4])";
  const loadline::testing::TemporaryFolder folder_;
  Workspace workspace{""};
};

TEST_F(Diffs, NameEveryKindAndMarkIt) {
  file("a.safetensors",
       {{"m.same", f32}, {"m.values", f32}, {"n.shape", f32}, {"n.gone", f32}, {"o.type", f16}},
       std::string(40, '\1'));
  file("b.safetensors",
       {{"m.same", f32},
        {"m.values", f32},
        {"n.shape", row},
        {"o.type", R"("dtype":"BF16","shape":[4])"},
        {"x.new", f32}},
       std::string(8, '\1') + std::string(32, '\2'));
  workspace.show_document(0);
  DiffView& diff = workspace.document().diff;
  diff.begin(workspace.documents()[1]->model, false);
  settle(workspace);
  ASSERT_TRUE(diff.result.value());
  EXPECT_EQ(count(DiffKind::values), 0u) << "they were not asked for";
  EXPECT_EQ(count(DiffKind::equal), 2u);
  EXPECT_EQ(count(DiffKind::shape), 1u);
  EXPECT_EQ(count(DiffKind::type), 1u);
  EXPECT_EQ(count(DiffKind::only_here), 1u);
  EXPECT_EQ(count(DiffKind::only_there), 1u);
  diff.begin(workspace.documents()[1]->model, true);
  settle(workspace);
  EXPECT_EQ(count(DiffKind::values), 1u);
  EXPECT_EQ(count(DiffKind::type), 1u);
  for (const DiffRow& found : diff.result.value()->rows)
    if (found.kind == DiffKind::type)
      EXPECT_NE(found.detail.find(" at most, 4 of 4"), std::string::npos) << found.detail;
  const Model& model = *workspace.document().model;
  const auto kind_of = [&](const char* name) {
    return diff.result.value()->of_tensor[index(*find_tensor(model, name))];
  };
  EXPECT_EQ(kind_of("m.same"), DiffKind::equal);
  EXPECT_EQ(kind_of("m.values"), DiffKind::values);
  EXPECT_EQ(kind_of("n.gone"), DiffKind::only_here);
  const ModelDiff& found = *diff.result.value();
  for (std::uint32_t i = 0; i < model.tree.nodes.size(); ++i)
    EXPECT_EQ(found.touched[i], model.tree.nodes[i].name != "same") << model.tree.nodes[i].name;
  EXPECT_EQ(found.rows.back().name, "x.new");
  diff.end();
  EXPECT_FALSE(diff.result.value());
}

TEST_F(Diffs, NeedTwoModels) {
  EXPECT_THROW(workspace.document().diff.begin(nullptr, false), Error);
  file("a.safetensors", {{"w", f32}}, "");
  EXPECT_THROW(workspace.document().diff.begin(nullptr, false), Error);
  workspace.document().diff.begin(workspace.document().model, true);
  settle(workspace);
  EXPECT_EQ(count(DiffKind::equal), 1u);
}

TEST_F(Diffs, OutliveTheOtherTab) {
  file("a.safetensors", {{"w", f32}}, "");
  file("b.safetensors", {{"w", f16}}, "");
  workspace.show_document(0);
  workspace.document().diff.begin(workspace.documents()[1]->model, true);
  workspace.show_document(1);
  workspace.close_model();
  settle(workspace);
  EXPECT_EQ(count(DiffKind::shape), 1u);
}

TEST_F(Diffs, TabsOfOneNameAreToldApart) {
  file("a.safetensors", {{"w", f32}}, "");
  EXPECT_EQ(tab_title(workspace, workspace.document()), "a");
}

}  // namespace
}  // namespace loadline::gui
