// The window's state without a window: verbs, jobs, what follows what.
#include "app/gui/state/workspace.h"

#include "tests/gui/sample_graphs.h"
#include "tests/gui/settle.h"
#include "tests/support/builders.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace loadline::gui {
namespace {

TEST(Workspace, plans_what_it_shows) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  EXPECT_TRUE(workspace.document().projection.busy());
  settle(workspace);
  ASSERT_TRUE(workspace.document().projection.value());
  EXPECT_EQ(workspace.document().projection.value()->method->id, "staged_ring");
  EXPECT_EQ(workspace.document().projection.value()->timeline.peaks[index(Space::device)].bytes,
            workspace.document().model->weight_bytes);
  ASSERT_EQ(workspace.document().comparison.value()->answer.rows.size(), methods().size());
  for (const LoadRow& row : workspace.document().comparison.value()->answer.rows) {
    EXPECT_FALSE(row.refusal);
    if (!row.method->traits.streams)
      EXPECT_GE(row.peaks[index(Space::device)].bytes, workspace.document().model->weight_bytes);
    else
      EXPECT_LT(row.peaks[index(Space::device)].bytes, workspace.document().model->weight_bytes);
  }
}

TEST(Workspace, the_chosen_method_agrees_with_its_row) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  for (const Method& method : methods()) {
    workspace.document().set_option("method", method.id);
    settle(workspace);
    ASSERT_TRUE(workspace.document().projection.value());
    EXPECT_EQ(workspace.document().projection.value()->method, &method);
    for (const LoadRow& row : workspace.document().comparison.value()->answer.rows)
      if (row.method == &method) {
        EXPECT_EQ(row.unified.bytes, workspace.document().projection.value()->timeline.unified.bytes);
      }
  }
}

TEST(Workspace, a_bad_choice_is_refused_and_changes_nothing) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  settle(workspace);
  const auto before = workspace.document().projection.value();
  EXPECT_THROW(workspace.document().set_option("method", "teleport"), Error);
  Asked asked = workspace.document().asked();
  asked.request.slots = 0;
  EXPECT_THROW(workspace.document().ask(asked), Error);
  asked.request.slots = 4;
  asked.request.methods = {"teleport"};
  EXPECT_THROW(workspace.document().ask(asked), Error);
  EXPECT_EQ(shown_method(workspace.document().asked()).id, "staged_ring");
  settle(workspace);
  EXPECT_EQ(workspace.document().projection.value(), before);
}

TEST(Workspace, dragging_a_slider_leaves_one_projection) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  for (std::uint32_t slots = 1; slots <= 60; ++slots) {
    workspace.document().set_option("slots", std::to_string(slots));
    EXPECT_LE(workspace.shared.jobs.view().size(), 5u);
  }
  settle(workspace);
  EXPECT_EQ(workspace.document().asked().request.slots, 60u);
  EXPECT_FALSE(workspace.document().projection.busy());
  EXPECT_FALSE(workspace.document().comparison.busy());
}

TEST(Workspace, a_plan_that_fails_is_a_notice_until_one_succeeds) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  workspace.document().set_option("slots", "16");
  workspace.document().set_option("staging", "64KiB");  // millions of transfers
  settle(workspace);
  EXPECT_FALSE(workspace.document().projection.value());
  ASSERT_EQ(workspace.shared.notices.all().size(), 1u);
  EXPECT_EQ(workspace.shared.notices.all()[0].severity, Severity::error);
  EXPECT_NE(workspace.shared.notices.all()[0].text.find("transfers"), std::string::npos);
  workspace.document().set_option("method", "per_tensor");
  settle(workspace);
  EXPECT_TRUE(workspace.document().projection.value());
  EXPECT_TRUE(workspace.shared.notices.all().empty());
}

TEST(Workspace, closing_a_model_stops_its_planning_silently) {
  Workspace workspace("");
  workspace.show(many_tensors(100'000), "");
  workspace.close_model();
  for (const JobView& job : workspace.shared.jobs.view()) EXPECT_TRUE(job.cancelling) << job.name;
  settle(workspace);
  EXPECT_FALSE(workspace.document().projection.value());
  EXPECT_TRUE(workspace.document().comparison.value()->answer.rows.empty());
  EXPECT_TRUE(workspace.shared.notices.all().empty());
}

TEST(Workspace, measures_the_disk_of_a_file_that_is_not_there) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.measure_disk(folder / "missing/out.gguf");
  settle(workspace);
  ASSERT_TRUE(workspace.disk.value());
  EXPECT_EQ(workspace.disk.value()->folder, folder.path().string());
  EXPECT_GT(workspace.disk.value()->available, 0u);
}

TEST(Workspace, selection_and_zoom_stay_inside_the_model) {
  Workspace workspace("");
  workspace.document().select(TensorId{3});
  EXPECT_FALSE(workspace.document().selected_tensor());
  workspace.show(tiny_graph(), "");
  workspace.document().select(TensorId{2});
  EXPECT_EQ(workspace.document().selected_tensor(), TensorId{2});
  workspace.document().select(TensorId{99});
  EXPECT_EQ(workspace.document().selected_tensor(), TensorId{2});
  workspace.document().zoom(NodeId{99});
  EXPECT_EQ(workspace.document().zoomed(), kRootNode);
  workspace.close_model();
  EXPECT_FALSE(workspace.document().selected_tensor());
  EXPECT_TRUE(workspace.document().table().rows.empty());
  settle(workspace);
  EXPECT_FALSE(workspace.document().projection.value());
}

TEST(Workspace, the_tables_total_is_what_the_weights_take) {
  Workspace workspace("");
  workspace.show(encoded_graph(), "");
  EXPECT_EQ(workspace.document().table().bytes, workspace.document().model->weight_bytes);
  workspace.document().set_filter("lm_head");  // tied, but the only one shown
  EXPECT_EQ(workspace.document().table().bytes, 4096u);
}

TEST(Workspace, a_failed_open_is_a_notice_and_keeps_the_model) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  const std::uint64_t generation = workspace.document().id;
  workspace.open("/nonexistent/model");
  settle(workspace);
  ASSERT_EQ(workspace.shared.notices.all().size(), 1u);
  EXPECT_EQ(workspace.shared.notices.all()[0].severity, Severity::error);
  EXPECT_NE(workspace.shared.notices.all()[0].text.find("/nonexistent/model"), std::string::npos);
  EXPECT_EQ(workspace.document().id, generation);
  workspace.shared.notices.dismiss(0);
  EXPECT_TRUE(workspace.shared.notices.all().empty());
}

TEST(Workspace, notices_go_with_the_model_they_are_about) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  workspace.open("/nonexistent/model");
  settle(workspace);
  workspace.shared.notices.add(Severity::info, "of no model");
  ASSERT_EQ(workspace.shared.notices.all().size(), 2u);
  workspace.close_model();
  ASSERT_EQ(workspace.shared.notices.all().size(), 1u);
  EXPECT_EQ(workspace.shared.notices.all()[0].text, "of no model");
}

TEST(Workspace, what_was_cancelled_can_be_projected_again) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  for (const JobView& job : workspace.shared.jobs.view()) workspace.shared.jobs.cancel(job.id);
  settle(workspace);
  workspace.document().ask(workspace.document().asked());
  settle(workspace);
  EXPECT_TRUE(workspace.document().projection.value());
  EXPECT_FALSE(workspace.document().comparison.value()->answer.rows.empty());
  const auto before = workspace.document().projection.value();
  workspace.document().ask(workspace.document().asked());
  EXPECT_FALSE(workspace.busy());
  EXPECT_EQ(workspace.document().projection.value(), before);
}

TEST(Workspace, unsound_models_are_shown_but_not_used) {
  Workspace workspace("");
  workspace.show(unsound_graph(), "");
  settle(workspace);
  EXPECT_EQ(workspace.document().model->errors, 1u);
  EXPECT_THROW(workspace.upload(), Error);
  EXPECT_THROW(workspace.convert(conversion("safetensors", "x")), Error);
  workspace.attempt([&] { workspace.upload(); });
  EXPECT_EQ(workspace.shared.notices.all().size(), 1u);
}

// The projection shown may still be the one before: it must not be what goes to the device.
TEST(Workspace, a_new_choice_must_be_projected_before_it_is_uploaded) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  settle(workspace);
  workspace.document().set_option("method", "state_dict");
  ASSERT_TRUE(workspace.document().projection.value());
  EXPECT_NE(workspace.document().projection.value()->method->id, "state_dict");
  EXPECT_THROW(workspace.upload(), Error);
}

TEST(Workspace, verbs_without_a_model_are_refused) {
  Workspace workspace("");
  EXPECT_THROW(workspace.upload(), Error);
  EXPECT_THROW(workspace.convert(conversion("gguf", "x")), Error);
}

TEST(Workspace, the_demo_model_opens_and_converts) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.open_demo();
  settle(workspace);
  ASSERT_TRUE(workspace.document().model)
      << (workspace.shared.notices.all().empty() ? "" : workspace.shared.notices.all()[0].text);
  EXPECT_EQ(workspace.document().model->errors, 0u);
  workspace.convert(conversion("gguf", folder / "demo.gguf", {.verify = true}));
  EXPECT_TRUE(workspace.conversion.busy());
  settle(workspace);
  ASSERT_TRUE(workspace.converted());
  EXPECT_TRUE(workspace.converted()->report.verified);
  EXPECT_TRUE(std::filesystem::exists(folder / "demo.gguf"));
  workspace.convert(conversion("gguf", folder / "demo.gguf"));
  settle(workspace);
  EXPECT_FALSE(workspace.converted());
  EXPECT_EQ(workspace.shared.notices.all().back().severity, Severity::error);  // it exists
}

TEST(Workspace, a_conversion_belongs_to_the_model_it_was_started_for) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.open_demo();
  settle(workspace);
  ASSERT_TRUE(workspace.document().model);
  workspace.convert(conversion("gguf", folder / "demo.gguf"));
  workspace.show(tiny_graph(), "");
  settle(workspace);
  EXPECT_FALSE(workspace.converted());
  EXPECT_NE(workspace.done.find("demo.gguf"), std::string::npos);  // the jobs line says so
}

TEST(Workspace, the_demo_model_asked_for_twice_is_written_once) {
  Workspace workspace("");
  for (int i = 0; i < 4; ++i) {
    workspace.open_demo();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until a worker has it
  }
  settle(workspace);
  ASSERT_TRUE(workspace.document().model)
      << (workspace.shared.notices.all().empty() ? "" : workspace.shared.notices.all()[0].text);
  EXPECT_EQ(workspace.document().model->errors, 0u);
  const std::filesystem::path written = workspace.document().model->path;
  for (const auto& entry : std::filesystem::directory_iterator(written.parent_path()))
    EXPECT_EQ(entry.path(), written);
}

TEST(Workspace, cancelling_a_conversion_leaves_nothing) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.open_demo();
  settle(workspace);
  workspace.convert(conversion("safetensors", folder / "demo.safetensors"));
  for (const JobView& job : workspace.shared.jobs.view()) workspace.shared.jobs.cancel(job.id);
  settle(workspace);
  if (!workspace.converted()) {
    EXPECT_TRUE(std::filesystem::is_empty(folder.path().string()));
  }
}

TEST(Workspace, lists_folders) {
  const loadline::testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "model-b");
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / ".hidden");
  Workspace workspace("");
  workspace.browse(folder.path().string());
  settle(workspace);
  ASSERT_EQ(workspace.folder().entries.size(), 2u);
  EXPECT_EQ(workspace.folder().entries[0].name, "a");
  EXPECT_EQ(parent_folder("/a/b/"), "/a");
  EXPECT_EQ(parent_folder("/a/b"), "/a");
  EXPECT_EQ(parent_folder("/"), "/");
  workspace.browse("/nonexistent");
  settle(workspace);
  EXPECT_NE(workspace.listing.error_text().find("/nonexistent"), std::string::npos);
  EXPECT_EQ(workspace.folder().path, folder.path().string());
  workspace.browse(folder.path().string());
  EXPECT_EQ(workspace.listing.error_text(), "");
}

TEST(Workspace, goes_away_while_jobs_run) {
  for (int i = 0; i < 10; ++i) {
    Workspace workspace("");
    workspace.show(llama_70b_graph(), "");
    workspace.open("/nonexistent");
  }
}

}  // namespace
}  // namespace loadline::gui
