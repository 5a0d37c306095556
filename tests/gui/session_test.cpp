// The window's state without a window: verbs, jobs, what follows what.
#include "app/gui/session.h"

#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace loadline::gui {
namespace {

void settle(Session& session) {
  while (session.busy())
    if (!session.poll()) std::this_thread::yield();
}

TEST(Session, plans_what_it_shows) {
  Session session("");
  session.show(llama_70b_graph(), "");
  EXPECT_TRUE(session.planning());
  settle(session);
  ASSERT_TRUE(session.projection());
  EXPECT_EQ(session.projection()->method->id, "staged_ring");
  EXPECT_EQ(session.projection()->timeline.peaks[index(Space::device)].bytes, session.model()->weight_bytes);
  ASSERT_EQ(session.comparison().size(), methods().size());
  for (const report::PlanRow& row : session.comparison()) {
    EXPECT_FALSE(row.refusal);
    if (!row.method->traits.streams)
      EXPECT_GE(row.peaks[index(Space::device)].bytes, session.model()->weight_bytes);
    else
      EXPECT_LT(row.peaks[index(Space::device)].bytes, session.model()->weight_bytes);
  }
}

TEST(Session, the_chosen_method_agrees_with_its_row) {
  Session session("");
  session.show(llama_70b_graph(), "");
  for (const Method& method : methods()) {
    PlanChoice choice = session.choice();
    choice.method = method.id;
    session.set_plan(choice);
    settle(session);
    ASSERT_TRUE(session.projection());
    EXPECT_EQ(session.projection()->method, &method);
    for (const report::PlanRow& row : session.comparison())
      if (row.method == &method) {
        EXPECT_EQ(row.unified.bytes, session.projection()->timeline.unified.bytes);
      }
  }
}

TEST(Session, a_bad_choice_is_refused_and_changes_nothing) {
  Session session("");
  session.show(tiny_graph(), "");
  settle(session);
  const auto before = session.projection();
  PlanChoice choice = session.choice();
  choice.method = "teleport";
  EXPECT_THROW(session.set_plan(choice), Error);
  choice = session.choice();
  choice.options.slots = 0;
  EXPECT_THROW(session.set_plan(choice), Error);
  EXPECT_EQ(session.choice().method, "staged_ring");
  settle(session);
  EXPECT_EQ(session.projection(), before);
}

TEST(Session, dragging_a_slider_leaves_one_projection) {
  Session session("");
  session.show(llama_70b_graph(), "");
  PlanChoice choice = session.choice();
  for (std::uint32_t slots = 1; slots <= 60; ++slots) {
    choice.options.slots = slots;
    session.set_plan(choice);
    EXPECT_LE(session.jobs().size(), 5u);
  }
  settle(session);
  EXPECT_EQ(session.choice().options.slots, 60u);
  EXPECT_FALSE(session.planning());
  EXPECT_FALSE(session.comparing());
}

TEST(Session, a_plan_that_fails_is_a_notice_until_one_succeeds) {
  Session session("");
  session.show(llama_70b_graph(), "");
  PlanChoice choice = session.choice();
  choice.options = {.staging_bytes = 64 << 10, .slots = 16};  // millions of transfers
  session.set_plan(choice);
  settle(session);
  EXPECT_FALSE(session.projection());
  ASSERT_EQ(session.notices().size(), 1u);
  EXPECT_EQ(session.notices()[0].severity, Severity::error);
  EXPECT_NE(session.notices()[0].text.find("transfers"), std::string::npos);
  choice.method = "per_tensor";
  session.set_plan(choice);
  settle(session);
  EXPECT_TRUE(session.projection());
  EXPECT_TRUE(session.notices().empty());
}

TEST(Session, closing_a_model_stops_its_planning_silently) {
  Session session("");
  session.show(many_tensors(100'000), "");
  session.close_model();
  for (const JobView& job : session.jobs()) EXPECT_TRUE(job.cancelling) << job.name;
  settle(session);
  EXPECT_FALSE(session.projection());
  EXPECT_TRUE(session.comparison().empty());
  EXPECT_TRUE(session.notices().empty());
}

TEST(Session, measures_the_disk_of_a_file_that_is_not_there) {
  const loadline::testing::TemporaryFolder folder;
  Session session("");
  session.measure_disk(folder / "missing/out.gguf");
  settle(session);
  ASSERT_TRUE(session.disk());
  EXPECT_EQ(session.disk()->folder, folder.path().string());
  EXPECT_GT(session.disk()->available, 0u);
}

TEST(Session, selection_and_zoom_stay_inside_the_model) {
  Session session("");
  session.select(TensorId{3});
  EXPECT_FALSE(session.selection());
  session.show(tiny_graph(), "");
  session.select(TensorId{2});
  EXPECT_EQ(session.selection(), TensorId{2});
  session.select(TensorId{99});
  EXPECT_EQ(session.selection(), TensorId{2});
  session.zoom(NodeId{99});
  EXPECT_EQ(session.zoomed(), kRootNode);
  session.close_model();
  EXPECT_FALSE(session.selection());
  EXPECT_TRUE(session.table().rows.empty());
  settle(session);
  EXPECT_FALSE(session.projection());
}

TEST(Session, the_tables_total_is_what_the_weights_take) {
  Session session("");
  session.show(encoded_graph(), "");
  EXPECT_EQ(session.table().bytes, session.model()->weight_bytes);
  session.set_filter("lm_head");  // tied, but the only one shown
  EXPECT_EQ(session.table().bytes, 4096u);
}

TEST(Session, a_failed_open_is_a_notice_and_keeps_the_model) {
  Session session("");
  session.show(tiny_graph(), "");
  const std::uint64_t generation = session.generation();
  session.open("/nonexistent/model");
  settle(session);
  ASSERT_EQ(session.notices().size(), 1u);
  EXPECT_EQ(session.notices()[0].severity, Severity::error);
  EXPECT_NE(session.notices()[0].text.find("/nonexistent/model"), std::string::npos);
  EXPECT_EQ(session.generation(), generation);
  session.dismiss(0);
  EXPECT_TRUE(session.notices().empty());
}

TEST(Session, notices_go_with_the_model_they_are_about) {
  Session session("");
  session.show(tiny_graph(), "");
  session.open("/nonexistent/model");
  settle(session);
  session.notify(Severity::info, "of no model");
  ASSERT_EQ(session.notices().size(), 2u);
  session.show(tiny_graph(), "");
  ASSERT_EQ(session.notices().size(), 1u);
  EXPECT_EQ(session.notices()[0].text, "of no model");
}

TEST(Session, what_was_cancelled_can_be_projected_again) {
  Session session("");
  session.show(llama_70b_graph(), "");
  for (const JobView& job : session.jobs()) session.cancel(job.id);
  settle(session);
  session.set_plan(session.choice());
  settle(session);
  EXPECT_TRUE(session.projection());
  EXPECT_FALSE(session.comparison().empty());
  const auto before = session.projection();
  session.set_plan(session.choice());
  EXPECT_FALSE(session.busy());
  EXPECT_EQ(session.projection(), before);
}

TEST(Session, only_the_newest_open_counts) {
  Session session("");
  session.open("/nonexistent/one");
  session.open("/nonexistent/two");
  session.show(tiny_graph(), "shown");
  settle(session);
  EXPECT_EQ(session.model()->path, "shown");
  EXPECT_TRUE(session.notices().empty());
}

TEST(Session, unsound_models_are_shown_but_not_used) {
  Session session("");
  session.show(unsound_graph(), "");
  settle(session);
  EXPECT_EQ(session.model()->errors, 1u);
  EXPECT_THROW(session.upload(), Error);
  EXPECT_THROW(session.convert({.exporter = "safetensors", .out = "x"}), Error);
  session.attempt([&] { session.upload(); });
  EXPECT_EQ(session.notices().size(), 1u);
}

// The projection shown may still be the one before: it must not be what goes to the device.
TEST(Session, a_new_choice_must_be_projected_before_it_is_uploaded) {
  Session session("");
  session.show(tiny_graph(), "");
  settle(session);
  PlanChoice choice = session.choice();
  choice.method = "state_dict";
  session.set_plan(choice);
  ASSERT_TRUE(session.projection());
  EXPECT_NE(session.projection()->method->id, "state_dict");
  EXPECT_THROW(session.upload(), Error);
}

TEST(Session, verbs_without_a_model_are_refused) {
  Session session("");
  EXPECT_THROW(session.upload(), Error);
  EXPECT_THROW(session.convert({.exporter = "gguf", .out = "x"}), Error);
}

TEST(Session, the_demo_model_opens_and_converts) {
  const loadline::testing::TemporaryFolder folder;
  Session session("");
  session.open_demo();
  settle(session);
  ASSERT_TRUE(session.model()) << (session.notices().empty() ? "" : session.notices()[0].text);
  EXPECT_EQ(session.model()->errors, 0u);
  session.convert({.exporter = "gguf", .out = folder / "demo.gguf"});
  EXPECT_TRUE(session.converting());
  settle(session);
  ASSERT_TRUE(session.convert_report());
  EXPECT_TRUE(session.convert_report()->verified);
  EXPECT_TRUE(std::filesystem::exists(folder / "demo.gguf"));
  session.convert({.exporter = "gguf", .out = folder / "demo.gguf"});
  settle(session);
  EXPECT_FALSE(session.convert_report());
  EXPECT_EQ(session.notices().back().severity, Severity::error);  // it exists
}

TEST(Session, a_conversion_belongs_to_the_model_it_was_started_for) {
  const loadline::testing::TemporaryFolder folder;
  Session session("");
  session.open_demo();
  settle(session);
  ASSERT_TRUE(session.model());
  session.convert({.exporter = "gguf", .out = folder / "demo.gguf"});
  session.show(tiny_graph(), "");
  settle(session);
  EXPECT_FALSE(session.convert_report());
  ASSERT_EQ(session.notices().size(), 1u);
  EXPECT_NE(session.notices()[0].text.find("demo.gguf"), std::string::npos);
}

TEST(Session, the_demo_model_asked_for_twice_is_written_once) {
  Session session("");
  for (int i = 0; i < 4; ++i) {
    session.open_demo();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until a worker has it
  }
  settle(session);
  ASSERT_TRUE(session.model()) << (session.notices().empty() ? "" : session.notices()[0].text);
  EXPECT_EQ(session.model()->errors, 0u);
  const std::filesystem::path written = session.model()->path;
  for (const auto& entry : std::filesystem::directory_iterator(written.parent_path()))
    EXPECT_EQ(entry.path(), written);
}

TEST(Session, cancelling_a_conversion_leaves_nothing) {
  const loadline::testing::TemporaryFolder folder;
  Session session("");
  session.open_demo();
  settle(session);
  session.convert({.exporter = "safetensors", .out = folder / "demo.safetensors"});
  for (const JobView& job : session.jobs()) session.cancel(job.id);
  settle(session);
  if (!session.convert_report()) {
    EXPECT_TRUE(std::filesystem::is_empty(folder.path().string()));
  }
}

TEST(Session, lists_folders) {
  const loadline::testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "model-b");
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / ".hidden");
  Session session("");
  session.browse(folder.path().string());
  settle(session);
  ASSERT_EQ(session.folder().entries.size(), 2u);
  EXPECT_EQ(session.folder().entries[0].name, "a");
  EXPECT_EQ(parent_folder("/a/b/"), "/a");
  EXPECT_EQ(parent_folder("/a/b"), "/a");
  EXPECT_EQ(parent_folder("/"), "/");
  session.browse("/nonexistent");
  settle(session);
  EXPECT_NE(session.browse_error().find("/nonexistent"), std::string::npos);
  EXPECT_EQ(session.folder().path, folder.path().string());
  session.browse(folder.path().string());
  EXPECT_EQ(session.browse_error(), "");
}

TEST(Session, goes_away_while_jobs_run) {
  for (int i = 0; i < 10; ++i) {
    Session session("");
    session.show(llama_70b_graph(), "");
    session.open("/nonexistent");
  }
}

}  // namespace
}  // namespace loadline::gui
