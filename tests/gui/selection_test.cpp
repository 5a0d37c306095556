// The coordinates that all views share: what is selected, when it is, and the advice that changes the
// request.
#include "app/gui/state/model/files.h"
#include "app/gui/state/summary.h"
#include "app/gui/state/workspace.h"
#include "tests/gui/sample_graphs.h"
#include "tests/gui/settle.h"
#include "tests/support/builders.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

TEST(Selection, GoesBackAndForward) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  Document& document = workspace.document();
  EXPECT_FALSE(document.can_go_back());
  document.select(TensorId{0});
  document.select(kRootNode);
  document.select(TensorId{1});
  document.go_back();
  EXPECT_EQ(document.selected(), Selected(kRootNode));
  EXPECT_FALSE(document.selected_tensor());
  document.go_back();
  EXPECT_EQ(document.selected_tensor(), TensorId{0});
  document.go_forward();
  EXPECT_EQ(document.selected(), Selected(kRootNode));
  document.select(TensorId{2});  // what came after is gone
  EXPECT_FALSE(document.can_go_forward());
  document.select(TensorId{2});  // the same once more is no step
  document.go_back();
  EXPECT_EQ(document.selected(), Selected(kRootNode));
  document.select(NodeId{9999});
  EXPECT_EQ(document.selected(), Selected(kRootNode)) << "what the model does not have is ignored";
}

TEST(Selection, IsBounded) {
  SelectionHistory history;
  for (std::uint32_t i = 0; i < 1000; ++i) history.select(TensorId{i});
  EXPECT_EQ(history.now(), Selected(TensorId{999}));
  int steps = 0;
  for (; history.can_go_back(); ++steps) history.go_back();
  EXPECT_EQ(steps, 199);
}

TEST(Selection, OfABlockEndsWithItsProjection) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  document.select(BlockId{0});
  EXPECT_EQ(document.selected(), Selected(BlockId{0}));
  document.set_option("method", "to_device");
  settle(workspace);
  EXPECT_EQ(document.selected(), Selected());
}

TEST(Selection, IsCopiedInThreeForms) {
  Workspace workspace("");
  EXPECT_EQ(selection_text(workspace.document(), CopyForm::text), "");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  EXPECT_NE(selection_text(document, CopyForm::text).find("tensors: 723\n"), std::string::npos);
  document.select(TensorId{1});
  EXPECT_NE(
      selection_text(document, CopyForm::json).find("\"tensor\": \"model.layers.0.input_layernorm.weight\""),
      std::string::npos);
  EXPECT_NE(selection_text(document, CopyForm::markdown).find("| dtype | BF16 |\n"), std::string::npos);
  document.select(document.model->tree.root().children.front());
  EXPECT_NE(selection_text(document, CopyForm::text).find("module: "), std::string::npos);
  document.select(LoadOf{"to_device", "file"});
  EXPECT_NE(selection_text(document, CopyForm::text).find("device: 141107412992\n"), std::string::npos);
  document.select(OperatorAt{0});
  EXPECT_NE(selection_text(document, CopyForm::text).find("operator: 0\n"), std::string::npos);
  document.select(BlockId{0});
  EXPECT_NE(selection_text(document, CopyForm::text).find("memory: device\n"), std::string::npos);
}

TEST(Cache, ListsTheModelsThatHaveSnapshots) {
  const loadline::testing::TemporaryFolder folder;
  for (const char* const name : {"models--org--b", "models--org--a--x", "models--gpt2", "datasets--org--c"})
    std::filesystem::create_directories(std::filesystem::path(folder / name) / "snapshots");
  std::filesystem::create_directories(folder / "models--org--empty");
  EXPECT_EQ(list_cache(folder.path().string()), (std::vector<std::string>{"gpt2", "org/a--x", "org/b"}));
  EXPECT_TRUE(list_cache("/nonexistent").empty());
  Workspace workspace(folder.path().string());
  workspace.find_cached();
  settle(workspace);
  EXPECT_EQ(workspace.cached.or_empty().size(), 3u);
}

TEST(TimeCursor, IsAtThePeakUntilItIsMoved) {
  Workspace workspace("");
  EXPECT_EQ(workspace.document().step(), 0u);
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  EXPECT_EQ(document.step(), document.projection.value()->timeline.unified.step);
  document.set_step(3);
  EXPECT_EQ(document.step(), 3u);
  EXPECT_FALSE(document.at_peak());
  document.set_step(SIZE_MAX);
  EXPECT_EQ(document.step(), document.projection.value()->plan.steps.size());
  document.set_option("method", "to_device");
  settle(workspace);
  EXPECT_TRUE(document.at_peak()) << "another load has other steps";
}

TEST(TimeCursor, PlaysTheLoadToItsEnd) {
  Workspace workspace("");
  workspace.document().play(true);
  EXPECT_FALSE(workspace.document().playing) << "there is no load";
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  const std::size_t steps = document.projection.value()->plan.steps.size();
  document.play(true);
  EXPECT_EQ(document.step(), 0u);
  document.advance(1);
  const std::size_t after = document.step();
  EXPECT_GT(after, steps / 10);
  EXPECT_LT(after, steps / 6);
  document.play_speed = 2;
  document.advance(1);
  EXPECT_NEAR(static_cast<double>(document.step()), 3.0 * static_cast<double>(after), 3);
  document.set_step(5);  // a person takes the cursor: the play goes on from there
  document.advance(0.001);
  EXPECT_LT(document.step(), 20u);
  document.advance(100);
  EXPECT_EQ(document.step(), steps);
  EXPECT_FALSE(document.playing);
  document.play(true);
  EXPECT_EQ(document.step(), 0u) << "from the end it begins anew";
  document.set_option("method", "to_device");
  settle(workspace);
  EXPECT_FALSE(document.playing);
}

TEST(Verdicts, SayByHowMuchALoadFits) {
  Workspace workspace("");
  EXPECT_EQ(verdict_of(workspace.document()).state, Verdict::State::unknown);
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  EXPECT_EQ(verdict_of(document).words, "no budget");
  document.set_option("device_budget", "160GiB");
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits);
  EXPECT_EQ(verdict_of(document).words, "fits, 28.58 GiB left");
  document.set_option("method", "state_dict");
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::over);
  EXPECT_EQ(verdict_of(document).words, "102.83 GiB over");
  EXPECT_FALSE(verdict_of(document).first.empty());
}

TEST(Verdicts, OfALargeModelNeedNoComparison) {
  Workspace workspace("");
  workspace.show(many_tensors(200'001), "");
  workspace.document().set_option("device_budget", "160GiB");
  settle(workspace);
  const Document& document = workspace.document();
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits);
  EXPECT_TRUE(document.comparison.value()->answer.rows.empty());
  workspace.document().want_comparison();
  workspace.document().want_comparison();
  EXPECT_TRUE(document.comparison.busy());
  workspace.shared.jobs.cancel_all();
  settle(workspace);
}

TEST(Verdicts, AreOfTheRowInTheComparison) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  for (const char* const method : {"staged_ring", "state_dict", "mmap_copy", "executorch_after"}) {
    workspace.document().set_option("method", method);
    workspace.document().set_option("host_budget", "20GiB");
    settle(workspace);
    const JudgedLoad* const judged = workspace.document().judged_load();
    ASSERT_NE(judged, nullptr);
    for (const LoadRow& row : workspace.document().comparison.value()->answer.rows) {
      if (row.method->id != method) continue;
      EXPECT_EQ(row.fits(), judged->row.fits()) << method;
      EXPECT_EQ(row.most_over(), judged->row.most_over()) << method;
      EXPECT_EQ(row.held, judged->row.held) << method;
    }
  }
}

TEST(Verdicts, AdviceIsTakenOverAndBack) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  Document& document = workspace.document();
  document.set_option("method", "state_dict");
  document.set_option("device_budget", "160GiB");
  settle(workspace);
  const Asked before = document.asked();
  EXPECT_FALSE(document.advised());
  document.advise();
  settle(workspace);
  ASSERT_TRUE(document.advised());
  ASSERT_TRUE(document.advice.value());
  ASSERT_TRUE(document.advice.value()->advice);
  const auto answer = document.advice.value();
  const std::vector<AdvisedLoad>& loads = answer->advice->advice.loads;
  ASSERT_FALSE(loads.empty());
  document.preview(&loads.front());
  settle(workspace);
  ASSERT_TRUE(document.previewed.value());
  EXPECT_EQ(document.previewed.value()->method, loads.front().method);
  document.preview(nullptr);
  EXPECT_FALSE(document.previewed.value());
  document.apply(loads.front());
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits) << verdict_of(document).words;
  EXPECT_EQ(&shown_method(document.asked()), loads.front().method);
  EXPECT_FALSE(document.advised()) << "it is of the load before";
  ASSERT_TRUE(document.can_take_back());
  document.take_back();
  EXPECT_EQ(document.asked(), before);
  EXPECT_FALSE(document.can_take_back());
}

}  // namespace
}  // namespace loadline::gui
