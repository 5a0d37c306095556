// The window's state: verbs, open models, what is selected.

#include "app/gui/state/workspace.h"

#include "app/gui/state/model/files.h"
#include "app/gui/state/summary.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace loadline::gui {

// --- The window's state without a window: verbs, jobs, what follows what.

namespace {

TEST(Workspace, plans_what_it_shows) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  EXPECT_TRUE(workspace.document().load.projection.busy());
  settle(workspace);
  ASSERT_TRUE(workspace.document().load.projection.value());
  EXPECT_EQ(workspace.document().load.projection.value()->method->id, "staged_ring");
  EXPECT_EQ(
      workspace.document().load.projection.value()->timeline.peaks[plan::index(plan::Space::device)].bytes,
      workspace.document().model->weight_bytes);
  ASSERT_EQ(workspace.document().load.comparison.value()->answer.rows.size(),
            compared_methods(workspace).size());
  for (const load::LoadRow& row : workspace.document().load.comparison.value()->answer.rows) {
    EXPECT_FALSE(row.refusal);
    if (!row.method->traits.streams && !row.method->traits.host_only)
      EXPECT_GE(row.peaks[plan::index(plan::Space::device)].bytes, workspace.document().model->weight_bytes);
    else
      EXPECT_LT(row.peaks[plan::index(plan::Space::device)].bytes, workspace.document().model->weight_bytes);
  }
}

TEST(Workspace, the_chosen_method_agrees_with_its_row) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  for (const load::Method* const chosen : load::methods_for(*workspace.document().model->graph)) {
    const load::Method& method = *chosen;
    workspace.document().load.set_option("method", method.id);
    settle(workspace);
    ASSERT_TRUE(workspace.document().load.projection.value());
    EXPECT_EQ(workspace.document().load.projection.value()->method, &method);
    for (const load::LoadRow& row : workspace.document().load.comparison.value()->answer.rows)
      if (row.method == &method) {
        EXPECT_EQ(row.unified_peak.bytes,
                  workspace.document().load.projection.value()->timeline.unified.bytes);
      }
  }
}

TEST(Workspace, a_bad_choice_is_refused_and_changes_nothing) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  settle(workspace);
  const auto before = workspace.document().load.projection.value();
  EXPECT_THROW(workspace.document().load.set_option("method", "teleport"), Error);
  Asked asked = workspace.document().load.asked();
  asked.request.slots = 0;
  EXPECT_THROW(workspace.document().load.ask(asked), Error);
  asked.request.slots = 4;
  asked.request.methods = {"teleport"};
  EXPECT_THROW(workspace.document().load.ask(asked), Error);
  EXPECT_EQ(shown_method(workspace.document().load.asked()).id, "staged_ring");
  settle(workspace);
  EXPECT_EQ(workspace.document().load.projection.value(), before);
}

TEST(Workspace, dragging_a_slider_leaves_one_projection) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  for (std::uint32_t slots = 1; slots <= 60; ++slots) {
    workspace.document().load.set_option("slots", std::to_string(slots));
    EXPECT_LE(workspace.services.jobs.view().size(), 5u);
  }
  settle(workspace);
  EXPECT_EQ(workspace.document().load.asked().request.slots, 60u);
  EXPECT_FALSE(workspace.document().load.projection.busy());
  EXPECT_FALSE(workspace.document().load.comparison.busy());
}

TEST(Workspace, a_plan_that_fails_is_a_notice_until_one_succeeds) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  workspace.document().load.set_option("slots", "16");
  workspace.document().load.set_option("staging", "64KiB");  // millions of transfers
  settle(workspace);
  EXPECT_FALSE(workspace.document().load.projection.value());
  ASSERT_EQ(workspace.services.notices.all().size(), 1u);
  EXPECT_EQ(workspace.services.notices.all()[0].severity, graph::Severity::error);
  EXPECT_NE(workspace.services.notices.all()[0].text.find("transfers"), std::string::npos);
  workspace.document().load.set_option("method", "per_tensor");
  settle(workspace);
  EXPECT_TRUE(workspace.document().load.projection.value());
  EXPECT_TRUE(workspace.services.notices.all().empty());
}

TEST(Workspace, closing_a_model_stops_its_planning_silently) {
  Workspace workspace("");
  workspace.show(many_tensors(100'000), "");
  workspace.close_model();
  for (const JobView& job : workspace.services.jobs.view()) EXPECT_TRUE(job.canceling) << job.name;
  settle(workspace);
  EXPECT_FALSE(workspace.document().load.projection.value());
  EXPECT_TRUE(workspace.document().load.comparison.value()->answer.rows.empty());
  EXPECT_TRUE(workspace.services.notices.all().empty());
}

TEST(Workspace, another_model_can_be_shown_after_activations_were_set) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  workspace.document().load.set_option("activations", "1MiB");
  settle(workspace);
  workspace.close_model();
  workspace.show(many_tensors(3), "");
  settle(workspace);
  ASSERT_TRUE(workspace.document().model);
  EXPECT_NE(workspace.document().load.judged_load(), nullptr);
}

TEST(Workspace, measures_the_disk_of_a_file_that_is_not_there) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.transfers.measure_disk(folder / "missing/out.gguf");
  settle(workspace);
  ASSERT_TRUE(workspace.transfers.disk.value());
  EXPECT_EQ(workspace.transfers.disk.value()->folder, folder.path().string());
  EXPECT_GT(workspace.transfers.disk.value()->available, 0u);
}

TEST(Workspace, selection_and_zoom_stay_inside_the_model) {
  Workspace workspace("");
  workspace.document().select(graph::TensorId{3});
  EXPECT_FALSE(workspace.document().selected_tensor());
  workspace.show(tiny_graph(), "");
  workspace.document().select(graph::TensorId{2});
  EXPECT_EQ(workspace.document().selected_tensor(), graph::TensorId{2});
  workspace.document().select(graph::TensorId{99});
  EXPECT_EQ(workspace.document().selected_tensor(), graph::TensorId{2});
  workspace.document().zoom(graph::NodeId{99});
  EXPECT_EQ(workspace.document().zoomed(), graph::kRootNode);
  workspace.close_model();
  EXPECT_FALSE(workspace.document().selected_tensor());
  EXPECT_TRUE(workspace.document().table.view().rows.empty());
  settle(workspace);
  EXPECT_FALSE(workspace.document().load.projection.value());
}

TEST(Workspace, the_tables_total_is_what_the_weights_take) {
  Workspace workspace("");
  workspace.show(encoded_graph(), "");
  EXPECT_EQ(workspace.document().table.view().bytes, workspace.document().model->weight_bytes);
  workspace.document().table.set_filter("lm_head");  // tied, but the only one shown
  EXPECT_EQ(workspace.document().table.view().bytes, 4096u);
}

TEST(Workspace, a_failed_open_is_a_notice_and_keeps_the_model) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  const std::uint64_t generation = workspace.document().id;
  workspace.open("/nonexistent/model");
  settle(workspace);
  ASSERT_EQ(workspace.services.notices.all().size(), 1u);
  EXPECT_EQ(workspace.services.notices.all()[0].severity, graph::Severity::error);
  EXPECT_NE(workspace.services.notices.all()[0].text.find("/nonexistent/model"), std::string::npos);
  EXPECT_EQ(workspace.document().id, generation);
  workspace.services.notices.dismiss(0);
  EXPECT_TRUE(workspace.services.notices.all().empty());
}

TEST(Workspace, notices_go_with_the_model_they_are_about) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  workspace.open("/nonexistent/model");
  settle(workspace);
  workspace.services.notices.add(graph::Severity::info, "of no model");
  ASSERT_EQ(workspace.services.notices.all().size(), 2u);
  workspace.close_model();
  ASSERT_EQ(workspace.services.notices.all().size(), 1u);
  EXPECT_EQ(workspace.services.notices.all()[0].text, "of no model");
}

TEST(Workspace, what_was_canceled_can_be_projected_again) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  for (const JobView& job : workspace.services.jobs.view()) workspace.services.jobs.cancel(job.id);
  settle(workspace);
  workspace.document().load.ask(workspace.document().load.asked());
  settle(workspace);
  EXPECT_TRUE(workspace.document().load.projection.value());
  EXPECT_FALSE(workspace.document().load.comparison.value()->answer.rows.empty());
  const auto before = workspace.document().load.projection.value();
  workspace.document().load.ask(workspace.document().load.asked());
  EXPECT_FALSE(workspace.busy());
  EXPECT_EQ(workspace.document().load.projection.value(), before);
}

TEST(Workspace, unsound_models_are_shown_but_not_used) {
  Workspace workspace("");
  workspace.show(unsound_graph(), "");
  settle(workspace);
  EXPECT_EQ(workspace.document().model->errors, 1u);
  EXPECT_THROW(workspace.transfers.upload(workspace.document()), Error);
  EXPECT_THROW(workspace.transfers.convert(workspace.document(), conversion("safetensors", "x")), Error);
  workspace.attempt([&] { workspace.transfers.upload(workspace.document()); });
  EXPECT_EQ(workspace.services.notices.all().size(), 1u);
}

// The projection shown may still be the one before: it must not be what goes to the device.
TEST(Workspace, a_new_choice_must_be_projected_before_it_is_uploaded) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  settle(workspace);
  workspace.document().load.set_option("method", "state_dict");
  ASSERT_TRUE(workspace.document().load.projection.value());
  EXPECT_NE(workspace.document().load.projection.value()->method->id, "state_dict");
  EXPECT_THROW(workspace.transfers.upload(workspace.document()), Error);
}

TEST(Workspace, verbs_without_a_model_are_refused) {
  Workspace workspace("");
  EXPECT_THROW(workspace.transfers.upload(workspace.document()), Error);
  EXPECT_THROW(workspace.transfers.convert(workspace.document(), conversion("gguf", "x")), Error);
}

TEST(Workspace, the_demo_model_opens_and_converts) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.open_demo();
  settle(workspace);
  ASSERT_TRUE(workspace.document().model)
      << (workspace.services.notices.all().empty() ? "" : workspace.services.notices.all()[0].text);
  EXPECT_EQ(workspace.document().model->errors, 0u);
  workspace.transfers.convert(workspace.document(),
                              conversion("gguf", folder / "demo.gguf", {.verify = true}));
  EXPECT_TRUE(workspace.transfers.conversion.busy());
  settle(workspace);
  ASSERT_TRUE(workspace.transfers.converted(workspace.document()));
  EXPECT_TRUE(workspace.transfers.converted(workspace.document())->report.verified);
  EXPECT_TRUE(std::filesystem::exists(folder / "demo.gguf"));
  workspace.transfers.convert(workspace.document(), conversion("gguf", folder / "demo.gguf"));
  settle(workspace);
  EXPECT_FALSE(workspace.transfers.converted(workspace.document()));
  EXPECT_EQ(workspace.services.notices.all().back().severity, graph::Severity::error);  // it exists
}

// The tokenizer of a model may lie elsewhere, as its weights may.
TEST(Workspace, a_conversion_follows_links_as_the_opening_did) {
  const loadline::testing::TemporaryFolder folder;
  loadline::testing::write_file(folder / "in/model.safetensors", loadline::testing::sample_safetensors());
  loadline::testing::write_file(folder / "in/config.json", R"({"model_type":"llama","hidden_size":4})");
  loadline::testing::write_file(folder / "vocab.txt", "words");
  std::filesystem::create_symlink("../vocab.txt", folder / "in/vocab.txt");
  for (const bool follows : {false, true}) {
    const std::string out = folder / (follows ? "followed" : "plain");
    Workspace workspace("");
    workspace.open(folder / "in",
                   follows ? std::vector<Remedy>{{"follow_links", "on"}} : std::vector<Remedy>());
    settle(workspace);
    workspace.transfers.convert(workspace.document(), conversion("safetensors", out));
    settle(workspace);
    ASSERT_TRUE(workspace.transfers.converted(workspace.document()));
    EXPECT_EQ(std::filesystem::exists(out + "/vocab.txt"), follows);
    workspace.reload();
    settle(workspace);
    workspace.document().checks.weigh_convert(conversion("safetensors", out + "2"));
    settle(workspace);
    const std::vector<std::string>& lost = workspace.document().checks.convert_fit.or_empty().left_out;
    EXPECT_EQ(
        std::ranges::none_of(
            lost, [](const std::string& line) { return line.find("'vocab.txt'") != std::string::npos; }),
        follows);
  }
}

TEST(Workspace, a_conversion_belongs_to_the_model_it_was_started_for) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.open_demo();
  settle(workspace);
  ASSERT_TRUE(workspace.document().model);
  workspace.transfers.convert(workspace.document(), conversion("gguf", folder / "demo.gguf"));
  workspace.show(tiny_graph(), "");
  settle(workspace);
  EXPECT_FALSE(workspace.transfers.converted(workspace.document()));
  EXPECT_NE(workspace.services.done.find("demo.gguf"), std::string::npos);  // the jobs line says so
}

TEST(Workspace, the_demo_model_asked_for_twice_is_written_once) {
  Workspace workspace("");
  for (int i = 0; i < 4; ++i) {
    workspace.open_demo();
    // until workers have all of it, or are done with it
    while (!std::ranges::all_of(workspace.services.jobs.view(), &JobView::running)) std::this_thread::yield();
  }
  settle(workspace);
  ASSERT_TRUE(workspace.document().model)
      << (workspace.services.notices.all().empty() ? "" : workspace.services.notices.all()[0].text);
  EXPECT_EQ(workspace.document().model->errors, 0u);
  const std::filesystem::path written = workspace.document().model->path;
  for (const auto& entry : std::filesystem::directory_iterator(written.parent_path()))
    EXPECT_EQ(entry.path(), written);
}

TEST(Workspace, canceling_a_conversion_leaves_nothing) {
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace("");
  workspace.open_demo();
  settle(workspace);
  workspace.transfers.convert(workspace.document(), conversion("safetensors", folder / "demo.safetensors"));
  for (const JobView& job : workspace.services.jobs.view()) workspace.services.jobs.cancel(job.id);
  settle(workspace);
  if (!workspace.transfers.converted(workspace.document())) {
    EXPECT_TRUE(std::filesystem::is_empty(folder.path().string()));
  }
}

TEST(Workspace, lists_folders) {
  const loadline::testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "model-b");
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / ".hidden");
  Workspace workspace("");
  workspace.places.browse(folder.path().string());
  settle(workspace);
  ASSERT_EQ(workspace.places.folder().entries.size(), 2u);
  EXPECT_EQ(workspace.places.folder().entries[0].name, "a");
  EXPECT_EQ(parent_folder("/a/b/"), "/a");
  EXPECT_EQ(parent_folder("/a/b"), "/a");
  EXPECT_EQ(parent_folder("/"), "/");
  workspace.places.browse("/nonexistent");
  settle(workspace);
  EXPECT_NE(workspace.places.listing.error_text().find("/nonexistent"), std::string::npos);
  EXPECT_EQ(workspace.places.folder().path, folder.path().string());
  workspace.places.browse(folder.path().string());
  EXPECT_EQ(workspace.places.listing.error_text(), "");
}

TEST(Workspace, goes_away_without_a_crash_while_jobs_run) {
  for (int i = 0; i < 10; ++i) {
    Workspace workspace("");
    workspace.show(llama_70b_graph(), "");
    workspace.open("/nonexistent");
  }
}

}  // namespace

// --- Several open models: which one is shown, what stays of each, and files that change.

namespace {

std::vector<std::string> names(const Workspace& workspace) {
  std::vector<std::string> all;
  for (const auto& document : workspace.documents())
    all.push_back(document->model ? std::filesystem::path(document->model->path).filename().string() : "-");
  return all;
}
using Names = std::vector<std::string>;

class Documents : public ::testing::Test {
 protected:
  // A file of one F32 tensor.
  std::string file(const std::string& name, std::uint64_t elements, const std::string& tensor = "w") {
    const std::string json = R"({")" + tensor + R"(":{"dtype":"F32","shape":[)" + std::to_string(elements) +
                             R"(],"data_offsets":[0,)" + std::to_string(4 * elements) + "]}}";
    loadline::testing::write_file(folder / name, loadline::testing::safetensors_bytes(json, 4 * elements));
    return folder / name;
  }
  const loadline::testing::TemporaryFolder folder;
  Workspace workspace{""};
};

TEST_F(Documents, each_path_gets_a_tab_in_the_order_asked) {
  workspace.open(file("a.safetensors", 4));
  workspace.open(file("b.safetensors", 4));
  workspace.open(file("c.safetensors", 4));
  settle(workspace);
  EXPECT_EQ(names(workspace), (Names{"a.safetensors", "b.safetensors", "c.safetensors"}));
  EXPECT_EQ(workspace.shown_document(), 2u);
  const std::uint64_t b = workspace.documents()[1]->id;
  workspace.open(folder / "b.safetensors");  // read again, in its place
  settle(workspace);
  EXPECT_EQ(names(workspace), (Names{"a.safetensors", "b.safetensors", "c.safetensors"}));
  EXPECT_EQ(workspace.shown_document(), 1u);
  EXPECT_EQ(workspace.find_document(b), nullptr);
}

TEST_F(Documents, one_that_cannot_be_opened_does_not_hold_up_the_next) {
  workspace.open(file("a.safetensors", 4));
  workspace.open(folder / "missing.safetensors");
  workspace.open(file("c.safetensors", 4));
  settle(workspace);
  EXPECT_EQ(names(workspace), (Names{"a.safetensors", "c.safetensors"}));
  EXPECT_EQ(workspace.services.notices.all().size(), 1u);
}

TEST_F(Documents, each_keeps_its_own_choices) {
  workspace.open(file("a.safetensors", 4, "first"));
  settle(workspace);
  workspace.document().load.set_option("method", "sequential");
  workspace.open(file("b.safetensors", 4, "second"));
  settle(workspace);
  EXPECT_EQ(shown_method(workspace.document().load.asked()).id, "sequential")
      << "a new one begins like its neighbor";
  workspace.document().load.set_option("method", "to_device");
  workspace.document().table.set_filter("sec");
  workspace.document().select(graph::TensorId{0});
  workspace.settings.panel = "methods";
  workspace.show_document(0);
  EXPECT_EQ(shown_method(workspace.document().load.asked()).id, "sequential");
  workspace.settings.panel = "tensors";
  EXPECT_EQ(workspace.document().table.view().filter, "");
  EXPECT_FALSE(workspace.document().selected_tensor());
  workspace.show_document(1);
  EXPECT_EQ(workspace.document().table.view().filter, "sec");
  EXPECT_TRUE(workspace.document().selected_tensor());
  EXPECT_EQ(workspace.settings.panel, "methods");
  workspace.show_document(0);
  EXPECT_EQ(workspace.settings.panel, "tensors");
}

TEST_F(Documents, quitting_while_a_file_is_written_asks_first) {
  workspace.open(file("a.safetensors", 4, "first"));
  settle(workspace);
  ConvertTask task;
  task.request.to = "safetensors";
  task.out = folder / "out.safetensors";
  workspace.transfers.convert(workspace.document(), task);
  ASSERT_TRUE(workspace.transfers.conversion.busy());
  workspace.ask_quit();
  EXPECT_FALSE(workspace.services.requests.holds<Quit>());
  EXPECT_TRUE(workspace.services.requests.holds<AskQuit>());
  workspace.ask_quit();
  EXPECT_TRUE(workspace.services.requests.holds<Quit>()) << "who asks twice means it";
  settle(workspace);
}

TEST_F(Documents, quitting_while_nothing_is_written_asks_nothing) {
  workspace.ask_quit();
  EXPECT_TRUE(workspace.services.requests.holds<Quit>());
}

TEST_F(Documents, closing_shows_the_one_beside_it) {
  for (const char* const name : {"a.safetensors", "b.safetensors", "c.safetensors"})
    workspace.open(file(name, 4));
  settle(workspace);
  workspace.show_document(1);
  workspace.close_model();
  EXPECT_EQ(names(workspace), (Names{"a.safetensors", "c.safetensors"}));
  EXPECT_EQ(workspace.shown_document(), 1u);
  workspace.close_model();
  workspace.close_model();
  EXPECT_EQ(names(workspace), (Names{"-"}));
  workspace.close_model();
  EXPECT_EQ(names(workspace), (Names{"-"}));
  settle(workspace);
}

TEST_F(Documents, reading_again_keeps_question_filter_and_selection) {
  workspace.open(file("a.safetensors", 4, "weight"));
  settle(workspace);
  workspace.document().load.set_option("method", "to_device");
  workspace.document().table.set_filter("we");
  workspace.document().select(graph::TensorId{0});
  file("a.safetensors", 1024, "weight");
  workspace.reload();
  settle(workspace);
  EXPECT_EQ(workspace.document().model->weight_bytes, 4096u);
  EXPECT_EQ(shown_method(workspace.document().load.asked()).id, "to_device");
  EXPECT_EQ(workspace.document().table.view().filter, "we");
  EXPECT_EQ(workspace.document().selected_tensor(), graph::TensorId{0});
}

TEST_F(Documents, reading_again_what_is_gone_keeps_the_model) {
  workspace.open(file("a.safetensors", 4));
  settle(workspace);
  std::filesystem::remove(folder / "a.safetensors");
  workspace.reload();
  workspace.close_model();  // the answer comes to a document that is gone
  settle(workspace);
  EXPECT_EQ(names(workspace), (Names{"-"}));
  workspace.show(tiny_graph(), "");
  EXPECT_THROW(workspace.reload(), Error);
}

TEST_F(Documents, watched_files_tell_a_change_once_it_is_complete) {
  const std::string path = file("a.safetensors", 4);
  FileWatch watch;
  watch.watch({path, folder / "missing"});
  watch.look();
  EXPECT_EQ(watch.take_changed(), Names{});
  file("a.safetensors", 8);
  watch.look();  // it may be half written
  watch.look();
  EXPECT_EQ(watch.take_changed(), Names{path});
  watch.look();
  EXPECT_EQ(watch.take_changed(), Names{});
  std::filesystem::remove(path);
  watch.look();
  watch.look();
  EXPECT_EQ(watch.take_changed(), Names{}) << "a program that saves may remove the file first";
  file("a.safetensors", 16);
  watch.look();
  watch.look();
  EXPECT_EQ(watch.take_changed(), Names{path});
}

}  // namespace

// --- The coordinates that all views share: what is selected, when it is, and the advice that changes the
// request.

namespace {

TEST(Selection, GoesBackAndForward) {
  Workspace workspace("");
  workspace.show(tiny_graph(), "");
  Document& document = workspace.document();
  EXPECT_FALSE(document.history.can_go_back());
  document.select(graph::TensorId{0});
  document.select(graph::kRootNode);
  document.select(graph::TensorId{1});
  document.history.go_back();
  EXPECT_EQ(document.selected(), Selected(graph::kRootNode));
  EXPECT_FALSE(document.selected_tensor());
  document.history.go_back();
  EXPECT_EQ(document.selected_tensor(), graph::TensorId{0});
  document.history.go_forward();
  EXPECT_EQ(document.selected(), Selected(graph::kRootNode));
  document.select(graph::TensorId{2});  // what came after is gone
  EXPECT_FALSE(document.history.can_go_forward());
  document.select(graph::TensorId{2});  // the same once more is no step
  document.history.go_back();
  EXPECT_EQ(document.selected(), Selected(graph::kRootNode));
  document.select(graph::NodeId{9999});
  EXPECT_EQ(document.selected(), Selected(graph::kRootNode)) << "what the model does not have is ignored";
}

TEST(Selection, IsBounded) {
  SelectionHistory history;
  for (std::uint32_t i = 0; i < 1000; ++i) history.select(graph::TensorId{i});
  EXPECT_EQ(history.now(), Selected(graph::TensorId{999}));
  int steps = 0;
  for (; history.can_go_back(); ++steps) history.go_back();
  EXPECT_EQ(steps, 199);
}

TEST(Selection, OfABlockEndsWithItsProjection) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  document.select(plan::BlockId{0});
  EXPECT_EQ(document.selected(), Selected(plan::BlockId{0}));
  document.load.set_option("method", "to_device");
  settle(workspace);
  EXPECT_EQ(document.selected(), Selected());
}

TEST(TimeCursor, IsAtThePeakUntilItIsMoved) {
  Workspace workspace("");
  EXPECT_EQ(workspace.document().time.step(), 0u);
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  EXPECT_EQ(document.time.step(), document.load.projection.value()->timeline.unified.step);
  document.time.set_step(3);
  EXPECT_EQ(document.time.step(), 3u);
  EXPECT_FALSE(document.time.at_peak());
  document.time.set_step(SIZE_MAX);
  EXPECT_EQ(document.time.step(), document.load.projection.value()->plan.steps.size());
  document.load.set_option("method", "to_device");
  settle(workspace);
  EXPECT_TRUE(document.time.at_peak()) << "another load has other steps";
}

TEST(TimeCursor, PlaysTheLoadToItsEnd) {
  Workspace workspace("");
  workspace.document().time.play(true);
  EXPECT_FALSE(workspace.document().time.playing()) << "there is no load";
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  const std::size_t steps = document.load.projection.value()->plan.steps.size();
  document.time.play(true);
  EXPECT_EQ(document.time.step(), 0u);
  document.time.advance(1);
  const std::size_t after = document.time.step();
  EXPECT_GT(after, steps / 10);
  EXPECT_LT(after, steps / 6);
  document.time.speed = 2;
  document.time.advance(1);
  EXPECT_NEAR(static_cast<double>(document.time.step()), 3.0 * static_cast<double>(after), 3);
  document.time.set_step(5);  // a person takes the cursor: the play goes on from there
  document.time.advance(0.001);
  EXPECT_LT(document.time.step(), 20u);
  document.time.advance(100);
  EXPECT_EQ(document.time.step(), steps);
  EXPECT_FALSE(document.time.playing());
  document.time.play(true);
  EXPECT_EQ(document.time.step(), 0u) << "from the end it begins anew";
  document.load.set_option("method", "to_device");
  settle(workspace);
  EXPECT_FALSE(document.time.playing());
}

TEST(Verdicts, SayByHowMuchALoadFits) {
  Workspace workspace("");
  EXPECT_EQ(verdict_of(workspace.document()).state, Verdict::State::unknown);
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  Document& document = workspace.document();
  EXPECT_EQ(verdict_of(document).words, "no budget");
  document.load.set_option("device_budget", "160GiB");
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits);
  EXPECT_EQ(verdict_of(document).words, "fits, 28.58 GiB left, about 59k tokens");
  document.load.set_option("method", "state_dict");
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::over);
  EXPECT_EQ(verdict_of(document).words, "102.83 GiB over");
  EXPECT_FALSE(verdict_of(document).first.empty());
  // of one row, however many are compared
  Asked asked = document.load.asked();
  asked.every_order = true;
  document.load.ask(asked);
  settle(workspace);
  EXPECT_EQ(verdict_of(document).words, "102.83 GiB over");
}

TEST(Verdicts, SayWhichWeightsFindNoRoom) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  Document& document = workspace.document();
  const auto unfit = [&] {
    settle(workspace);
    return unfit_bytes(*document.model, *document.load.projection.value(),
                       document.load.judged_load()->rows.front().verdict);
  };
  document.load.set_option("device_budget", "160GiB");
  EXPECT_TRUE(unfit().empty());
  document.load.set_option("device_budget", "100GiB");
  const std::vector<std::uint64_t> bytes = unfit();
  ASSERT_EQ(bytes.size(), document.model->tree.nodes.size());
  // what fits is what the budget holds, but for less than the weight that came too much
  const std::uint64_t fits = document.model->weight_bytes - bytes.front();
  EXPECT_LE(fits, 100ull << 30);
  EXPECT_GT(fits, (100ull << 30) - (3ull << 30));
  const auto of = [&](const char* name) {
    return bytes[graph::index(document.model->nodes[graph::index(*find_tensor(*document.model, name))])];
  };
  EXPECT_EQ(of("model.embed_tokens.weight"), 0u) << "it comes first";
  EXPECT_GT(of("lm_head.weight") + of("model.layers.79.mlp.down_proj.weight"), 0u);
}

TEST(Verdicts, SayWhetherAPromptFitsBehindTheWeights) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  Document& document = workspace.document();
  document.load.set_option("device_budget", "131.8GiB");
  Asked asked = document.load.asked();
  asked.first_token = true;
  asked.request.sequence = 512;
  document.load.ask(asked);
  settle(workspace);
  ASSERT_EQ(verdict_of(document).state, Verdict::State::fits) << verdict_of(document).words;
  const std::uint64_t most = *verdict_of(document).context;
  ASSERT_GT(most, 512u);
  asked.request.past = most;
  document.load.ask(asked);
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::tight) << verdict_of(document).words;
  EXPECT_EQ(verdict_of(document).context, most) << "the same room is left";
  asked.request.past = most - 512;  // exactly so many
  document.load.ask(asked);
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits) << verdict_of(document).words;
  document.load.set_option("device_budget", "100GiB");
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::over) << verdict_of(document).words;
}

TEST(Verdicts, SmallerFilesAreTriedWithTheSameRequest) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  Document& document = workspace.document();
  document.load.set_option("device_budget", "60GiB");
  document.load.set_option("slots", "8");
  settle(workspace);
  document.advice.search();
  settle(workspace);
  const std::vector<report::QuantizedModel>& tried = document.advice.quantizations.or_empty().models;
  ASSERT_EQ(tried.size(), std::size(report::kQuantizations));
  for (std::size_t i = 1; i < tried.size(); ++i) EXPECT_LT(tried[i].bytes, tried[i - 1].bytes);
  EXPECT_EQ(tried.front().policy, "q8_0");
  EXPECT_EQ(tried.front().verdict.state, Verdict::State::over) << tried.front().verdict.words;
  EXPECT_EQ(tried[1].policy, "q6_k");
  EXPECT_EQ(tried[1].verdict.state, Verdict::State::fits) << tried[1].verdict.words;
  // what is left is what the budget leaves of the file and the ring that was asked for
  EXPECT_EQ(*tried[1].verdict.left, (60ull << 30) - tried[1].bytes);
}

// --- The history of the request.

TEST(RequestHistory, WalksBackAndForth) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  LoadWork& load = workspace.document().load;
  EXPECT_FALSE(load.can_undo());
  const Asked first = load.asked();
  load.set_option("method", "state_dict");
  load.set_option("device_budget", "160GiB");
  const Asked last = load.asked();
  load.undo();
  EXPECT_FALSE(load.asked().request.device_budget);
  EXPECT_EQ(load.asked().request.methods.front(), "state_dict");
  load.undo();
  EXPECT_EQ(load.asked(), first);
  EXPECT_FALSE(load.can_undo());
  load.redo();
  load.redo();
  EXPECT_EQ(load.asked(), last);
  EXPECT_FALSE(load.can_redo());
  load.undo();
  load.set_option("order", "largest");
  EXPECT_FALSE(load.can_redo()) << "another way was taken";
  // what changes nothing, and what is refused, is no step
  const Asked now = load.asked();
  load.set_option("order", "largest");
  EXPECT_THROW(load.set_option("slots", "none of these"), Error);
  load.undo();
  EXPECT_NE(load.asked(), now);
  settle(workspace);
}

TEST(RequestHistory, ADragIsOneStep) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  LoadWork& load = workspace.document().load;
  const Asked first = load.asked();
  for (const char* const slots : {"5", "6", "7", "8"}) load.set_option("slots", slots);
  load.undo();
  EXPECT_EQ(load.asked(), first);
  settle(workspace);
}

TEST(RequestHistory, OptionsAreReset) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  Document& document = workspace.document();
  EXPECT_TRUE(changed_options(document).empty());
  document.load.set_option("slots", "8");
  document.load.set_option("staging", "128MiB");
  document.load.set_option("target", "h200-141gb");
  ASSERT_EQ(changed_options(document).size(), 2u) << "the target has its place in the toolbar";
  document.load.reset_options({"slots"});
  ASSERT_EQ(changed_options(document).size(), 1u);
  EXPECT_EQ(changed_options(document).front()->id, "staging");
  document.load.reset_options({"staging"});
  EXPECT_TRUE(changed_options(document).empty());
  EXPECT_EQ(document.load.asked().request.target, "h200-141gb");
  document.load.undo();
  EXPECT_EQ(changed_options(document).size(), 1u);
  settle(workspace);
}

// --- This machine, and what runs on it.

TEST(ThisMachine, IsTheFirstTargetAndThatOfTheFirstModel) {
  Workspace workspace("");
  EXPECT_EQ(workspace.services.targets->front().id, load::kThisMachine);
  EXPECT_EQ(workspace.document().load.asked().request.target, "") << "unless a person looks";
  workspace.ask_of_this_machine();
  workspace.show(llama_70b_graph(), "");
  settle(workspace);
  const Document& document = workspace.document();
  EXPECT_EQ(document.load.asked().request.target, load::kThisMachine);
  EXPECT_TRUE(document.load.asked().first_token);
  EXPECT_FALSE(document.load.can_undo()) << "nothing else was asked";
  ASSERT_TRUE(document.load.memory().deciding_budget());
  EXPECT_LE(*document.load.memory().deciding_budget(), workspace.services.memory->total);
  EXPECT_NE(verdict_of(document).state, Verdict::State::unjudged);
  // a data sheet is another question
  workspace.document().load.set_option("target", "h200-141gb");
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits) << verdict_of(document).words;
  workspace.find_devices();
  settle(workspace);
  EXPECT_EQ(document.load.asked().request.target, "h200-141gb");
}

TEST(Shelf, ReadsWhatLiesOnTheDisk) {
  const testing::TemporaryFolder folder;
  Progress progress;
  std::filesystem::create_directory(folder / "store");
  write_demo_model(folder / "store", progress);
  testing::write_file(folder / "store/broken.gguf", "no model");
  testing::write_file(folder / "mine.safetensors", testing::sample_safetensors());
  Workspace workspace(importers::StorePlaces{.folders = {folder / "store"}});
  const Shelf::Wanted wanted = {.favorites = {folder / "mine.safetensors"}, .recent = {folder / "gone"}};
  Shelf& shelf = workspace.shelf;
  EXPECT_FALSE(shelf.is_current(wanted));
  shelf.look(wanted);
  settle(workspace);
  EXPECT_TRUE(shelf.is_current(wanted));
  EXPECT_FALSE(shelf.is_current({})) << "another model was opened or is a favorite no more";
  EXPECT_EQ(shelf.unread(), 0u);
  ASSERT_EQ(shelf.models().size(), 4u);
  const ShelfModel& mine = shelf.models()[0];
  EXPECT_TRUE(mine.favorite);
  EXPECT_TRUE(mine.facts->row) << mine.facts->fault;
  EXPECT_TRUE(shelf.models()[1].recent && shelf.models()[1].gone);
  const ShelfModel& broken = shelf.models()[2];
  EXPECT_EQ(broken.stored.name, "broken.gguf");
  EXPECT_FALSE(broken.facts->row);
  EXPECT_NE(broken.facts->fault, "");
  const ShelfModel& demo = shelf.models()[3];
  ASSERT_TRUE(demo.facts->row) << demo.facts->fault;
  EXPECT_EQ(demo.facts->row->bytes, 63'980'544u);
  EXPECT_EQ(demo.facts->row->verdict.state, Verdict::State::fits) << demo.facts->row->verdict.words;
  EXPECT_FALSE(demo.facts->map.empty());
  double area = 0;
  for (const report::ThumbTile& tile : demo.facts->map) area += tile.rect.w * tile.rect.h;
  EXPECT_NEAR(area, report::kThumbWidth * report::kThumbHeight,
              0.02 * report::kThumbWidth * report::kThumbHeight);

  // what has not changed is not read again
  const auto before = demo.facts, broken_before = broken.facts;
  testing::write_file(folder / "store/broken.gguf", "no model either");
  shelf.look({});
  settle(workspace);
  ASSERT_EQ(shelf.models().size(), 2u);
  EXPECT_EQ(shelf.models()[1].facts, before);
  EXPECT_NE(shelf.models()[0].facts, broken_before);
}

TEST(Shelf, ForgetsWhatWasReadForAnotherMemory) {
  const testing::TemporaryFolder folder;
  Progress progress;
  write_demo_model(folder.path().string(), progress);
  Workspace workspace(importers::StorePlaces{.folders = {folder.path().string()}});
  const auto take = [&](std::uint64_t bytes) {
    workspace.services.targets = std::make_shared<const std::vector<load::Target>>(
        std::vector<load::Target>{load::machine_target({.system = bytes})});
  };
  take(8ull << 30);
  workspace.shelf.look({});
  settle(workspace);
  ASSERT_EQ(workspace.shelf.models().size(), 1u);
  EXPECT_TRUE(workspace.shelf.models()[0].facts->row->verdict.fits());
  take(300ull << 20);
  EXPECT_FALSE(workspace.shelf.is_current({}));
  workspace.shelf.look({});
  settle(workspace);
  EXPECT_TRUE(workspace.shelf.models()[0].facts->row->verdict.fits());
  take(0);
  workspace.shelf.look({});
  settle(workspace);
  ASSERT_TRUE(workspace.shelf.models()[0].facts->row);
  EXPECT_EQ(workspace.shelf.models()[0].facts->row->verdict.state, Verdict::State::over);
  EXPECT_NE(workspace.shelf.models()[0].facts->row->no_better, "");
}

// The next run shows what this one has read, without reading it; files that changed are read again.
TEST(Shelf, KeepsWhatItReadForTheNextRun) {
  const testing::TemporaryFolder folder;
  const std::string model = folder / "store/a.safetensors", cache = folder / "cache/new/models.json";
  std::filesystem::create_directory(folder / "store");
  const std::string bytes = testing::sample_safetensors();
  testing::write_file(model, bytes);
  const auto look = [&](const std::string& program) {
    auto workspace = std::make_unique<Workspace>(importers::StorePlaces{.folders = {folder / "store"}});
    workspace->services.targets = std::make_shared<const std::vector<load::Target>>(
        std::vector<load::Target>{load::machine_target({.system = 8ull << 30})});
    workspace->shelf.keep_in(report::KeptFacts(cache, program));
    workspace->shelf.look({});
    settle(*workspace);
    return workspace;
  };
  const auto is_read = [](const Workspace& workspace) {
    return workspace.shelf.models().at(0).facts->row.has_value();
  };
  const auto first = look("this");
  ASSERT_EQ(first->shelf.models().size(), 1u);
  ASSERT_TRUE(is_read(*first)) << first->shelf.models()[0].facts->fault;
  // the same size and time: nothing says that it changed
  const auto time = std::filesystem::last_write_time(model);
  testing::write_file(model, std::string(bytes.size(), 'x'));
  std::filesystem::last_write_time(model, time);
  const auto second = look("this");
  ASSERT_EQ(second->shelf.models().size(), 1u);
  ASSERT_TRUE(is_read(*second)) << "it was read again";
  EXPECT_EQ(second->shelf.models()[0].facts->row->verdict.words,
            first->shelf.models()[0].facts->row->verdict.words);
  EXPECT_EQ(second->shelf.models()[0].facts->map.size(), first->shelf.models()[0].facts->map.size());
  EXPECT_FALSE(is_read(*look("another"))) << "another program has other answers";
  std::filesystem::last_write_time(model, time + std::chrono::seconds(1));
  EXPECT_FALSE(is_read(*look("this"))) << "it has changed";
}

TEST(Shelf, AsksForThePromptAndTheContextThatArePutIn) {
  const testing::TemporaryFolder folder;
  Progress progress;
  write_demo_model(folder.path().string(), progress);
  Workspace workspace(importers::StorePlaces{.folders = {folder.path().string()}});
  const auto look = [&] {
    workspace.look_for_models();
    settle(workspace);
    return workspace.shelf.models().at(0).facts;
  };
  EXPECT_TRUE(look()->row->verdict.fits());
  workspace.ask_models(512, 1500);
  EXPECT_EQ(workspace.document().load.asked().request.sequence, 512u);
  EXPECT_EQ(workspace.document().load.asked().request.past, 988u)
      << "the model that is opened next is asked it";
  EXPECT_TRUE(look()->row->verdict.fits());
  EXPECT_EQ(workspace.shelf.question().tokens(), 1500u);
  workspace.ask_models(512, 100'000);
  const auto long_one = look();
  EXPECT_FALSE(long_one->row->verdict.fits()) << long_one->row->verdict.words;
  EXPECT_TRUE(long_one->row->verdict.too_long) << "the model has 2,048 positions";
  workspace.ask_models(512, 1500);
  EXPECT_TRUE(look()->row->verdict.fits());
}

TEST(Shelf, FiltersAndSortsItsRows) {
  const auto model = [](std::string name, std::uint64_t bytes, report::RunVerdict::State state,
                        std::int64_t used) {
    ShelfModel made;
    made.stored = {.name = name, .path = "/models/" + name, .bytes = bytes};
    made.used = used;
    report::ModelFacts facts;
    facts.row = report::ModelRow{.format = "gguf", .type = bytes > 5 ? "q8_0" : "q4_0", .bytes = bytes};
    facts.row->verdict.state = state;
    if (used > 0) facts.row->verdict.context = bytes * 100;
    made.facts = std::make_shared<const report::ModelFacts>(std::move(facts));
    return made;
  };
  using State = report::RunVerdict::State;
  std::vector<ShelfModel> models = {model("Mixtral 10", 9, State::over, 0),
                                    model("mixtral 9", 4, State::fits, 20),
                                    model("llama", 7, State::tight, 30)};
  ShelfModel unread;
  unread.stored = {.name = "new", .path = "/elsewhere/new"};
  models.push_back(unread);
  using Rows = std::vector<std::size_t>;
  ShelfView view;
  EXPECT_EQ(shelf_rows(models, view), (Rows{0, 2, 1, 3})) << "while one is read, by size";
  EXPECT_EQ(shelf_rows(std::span(models).first(3), view), (Rows{1, 2, 0})) << "what runs, then the others";
  models[0].recent = true;
  EXPECT_EQ(shelf_rows(std::span(models).first(3), view), (Rows{0, 1, 2})) << "recent ones first";
  models[0].recent = false;
  view.by = ShelfColumn::name;
  EXPECT_EQ(shelf_rows(models, view), (Rows{2, 1, 0, 3})) << "numbers count as numbers";
  view.ascending = false;
  EXPECT_EQ(shelf_rows(models, view), (Rows{3, 0, 1, 2}));
  view.by = ShelfColumn::size;
  EXPECT_EQ(shelf_rows(models, view), (Rows{0, 2, 1, 3})) << "what has no size comes last";
  view.ascending = true;
  EXPECT_EQ(shelf_rows(models, view), (Rows{1, 2, 0, 3}));
  view.by = ShelfColumn::verdict;
  EXPECT_EQ(shelf_rows(models, view), (Rows{1, 2, 0, 3})) << "what runs comes first";
  view.by = ShelfColumn::context;
  view.ascending = false;
  EXPECT_EQ(shelf_rows(models, view), (Rows{2, 1, 0, 3}));
  view.by = ShelfColumn::used;
  EXPECT_EQ(shelf_rows(models, view), (Rows{2, 1, 0, 3}));
  view = {};
  view.filter = "MIX q8";
  EXPECT_EQ(shelf_rows(models, view), Rows{0});
  view.filter = "models  ";
  EXPECT_EQ(shelf_rows(models, view), (Rows{0, 2, 1})) << "while one is read, by size";
  view.only_runs = true;
  EXPECT_EQ(shelf_rows(models, view), Rows{1});
}

// A method that was chosen for the model before, and does not read this one: a notice says which, and why.
TEST(Workspace, a_method_that_cannot_open_the_next_model_is_replaced_and_named) {
  Workspace workspace("");
  workspace.document().load.set_option("method", "llama_cpp_mmap");
  graph::MetaGraph graph = *tiny_graph();
  graph.format = "safetensors";
  workspace.show(std::make_shared<const graph::MetaGraph>(std::move(graph)), "");
  EXPECT_EQ(shown_method(workspace.document().load.asked()).id, "staged_ring");
  const auto& notices = workspace.services.notices.all();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices.front().severity, graph::Severity::info);
  for (const char* const word : {"staged_ring", "llama_cpp_mmap", "safetensors"})
    EXPECT_NE(notices.front().text.find(word), std::string::npos) << notices.front().text;
}

// A step of training needs no context, and is judged as soon as it is asked for.
TEST(Verdicts, AreOfATrainingStepOnceItIsAskedFor) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  workspace.document().load.set_option("device_budget", "200GiB");
  settle(workspace);
  EXPECT_EQ(verdict_of(workspace.document()).state, Verdict::State::fits);
  workspace.document().load.set_option("train", "full");
  settle(workspace);
  EXPECT_EQ(verdict_of(workspace.document()).state, Verdict::State::over);
  workspace.document().load.set_option("train", "none");
  settle(workspace);
  EXPECT_EQ(verdict_of(workspace.document()).state, Verdict::State::fits);
}

TEST(Verdicts, NeverSayThatAnIncompleteModelFits) {
  for (const auto& graph : {unsound_graph(), lacking_graph()}) {
    Workspace workspace("");
    workspace.show(graph, "");
    settle(workspace);
    const Document& document = workspace.document();
    EXPECT_EQ(verdict_of(document).state, Verdict::State::incomplete) << "without a budget";
    workspace.document().load.set_option("device_budget", "160GiB");
    settle(workspace);
    EXPECT_EQ(verdict_of(document).state, Verdict::State::incomplete);
    EXPECT_EQ(verdict_of(document).words, "incomplete");
    EXPECT_NE(verdict_of(document).first, "");
    workspace.document().load.set_option("device_budget", "1KiB");
    settle(workspace);
    EXPECT_EQ(verdict_of(document).state, Verdict::State::over);
  }
}

TEST(Verdicts, AreEstimatesWhereASettingIsNotUnderstood) {
  Workspace workspace("");
  workspace.show(unread_setting_graph(), "");
  Document& document = workspace.document();
  document.load.set_option("device_budget", "160GiB");
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::estimated);
  EXPECT_EQ(verdict_of(document).words.rfind("fits by estimate, ", 0), 0u) << verdict_of(document).words;
  EXPECT_EQ(verdict_of(document).first, "'nobody_reads_this' is 7");
  for (const load::LoadRow& row : document.load.comparison.value()->answer.rows)
    EXPECT_TRUE(row.refusal || row.estimated) << row.method->id;
}

TEST(Verdicts, OfFilesAreEstimatesOnlyWithThePassThatDependsOnTheSetting) {
  graph::MetaGraph graph = *unread_setting_graph();
  graph.format = "safetensors";  // the sizes of weights in files are known
  Workspace workspace("");
  workspace.show(std::make_shared<const graph::MetaGraph>(std::move(graph)), "");
  Document& document = workspace.document();
  document.load.set_option("device_budget", "160GiB");
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits);
  Asked asked = document.load.asked();
  asked.first_token = true;
  document.load.ask(asked);
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::estimated);
}

TEST(Caveats, AreTheGravestFirstAndOfManySome) {
  const auto texts = [](const graph::MetaGraphPtr& graph) {
    Workspace workspace("");
    workspace.show(graph, "");
    settle(workspace);
    std::vector<std::string> found;
    for (const Caveat& caveat : workspace.document().caveats())
      found.push_back(std::string(graph::severity_name(caveat.severity)) + " " + caveat.text);
    return found;
  };
  EXPECT_TRUE(texts(llama_70b_graph()).empty());
  const auto unsound = texts(unsound_graph());
  ASSERT_EQ(unsound.size(), 2u) << "a note that informs is none";
  EXPECT_EQ(unsound[0].substr(0, 7), "error x");
  EXPECT_EQ(unsound[1], "warning lm_head.weight: looks odd");
  const auto lacking = texts(lacking_graph());
  ASSERT_EQ(lacking.size(), 1u);
  EXPECT_NE(lacking[0].find("'model.norm.weight'"), std::string::npos) << lacking[0];
  const auto unread = texts(unread_setting_graph());
  ASSERT_EQ(unread.size(), 1u);
  EXPECT_NE(unread[0].find("'nobody_reads_this' is 7"), std::string::npos) << unread[0];
  const auto many = texts(talkative_graph());
  ASSERT_EQ(many.size(), 4u);
  EXPECT_NE(many[3].find("59,997 more warnings"), std::string::npos) << many[3];
}

TEST(Verdicts, OfALargeModelNeedNoComparison) {
  Workspace workspace("");
  workspace.show(many_tensors(20'001), "");
  workspace.document().load.set_option("device_budget", "160GiB");
  settle(workspace);
  const Document& document = workspace.document();
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits);
  EXPECT_TRUE(document.load.comparison.value()->answer.rows.empty());
  workspace.document().load.want_comparison();
  workspace.document().load.want_comparison();
  EXPECT_TRUE(document.load.comparison.busy());
  workspace.services.jobs.cancel_all();
  settle(workspace);
}

TEST(Verdicts, AreOfTheRowInTheComparison) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  for (const char* const method : {"staged_ring", "state_dict", "mmap_copy", "cast_on_host"}) {
    workspace.document().load.set_option("method", method);
    workspace.document().load.set_option("host_budget", "20GiB");
    settle(workspace);
    const load::LoadAnswer* const judged = workspace.document().load.judged_load();
    ASSERT_NE(judged, nullptr);
    for (const load::LoadRow& row : workspace.document().load.comparison.value()->answer.rows) {
      if (row.method->id != method) continue;
      EXPECT_EQ(row.fits(), judged->rows.at(0).fits()) << method;
      EXPECT_EQ(row.most_over(), judged->rows.at(0).most_over()) << method;
      EXPECT_EQ(row.held_peak, judged->rows.at(0).held_peak) << method;
    }
  }
}

TEST(Verdicts, AdviceIsTakenOverAndBack) {
  Workspace workspace("");
  workspace.show(llama_70b_graph(), "");
  Document& document = workspace.document();
  document.load.set_option("method", "state_dict");
  document.load.set_option("device_budget", "160GiB");
  settle(workspace);
  const Asked before = document.load.asked();
  EXPECT_FALSE(document.advice.is_current());
  document.advice.search();
  settle(workspace);
  ASSERT_TRUE(document.advice.is_current());
  ASSERT_TRUE(document.advice.answer.value());
  ASSERT_TRUE(document.advice.answer.value()->advice);
  const auto answer = document.advice.answer.value();
  const std::vector<load::AdvisedLoad>& loads = answer->advice->advice.loads;
  ASSERT_FALSE(loads.empty());
  document.advice.preview(&loads.front());
  settle(workspace);
  ASSERT_TRUE(document.advice.previewed.value());
  EXPECT_EQ(document.advice.previewed.value()->method, loads.front().method);
  document.advice.preview(nullptr);
  EXPECT_FALSE(document.advice.previewed.value());
  document.advice.apply(loads.front());
  settle(workspace);
  EXPECT_EQ(verdict_of(document).state, Verdict::State::fits) << verdict_of(document).words;
  EXPECT_EQ(&shown_method(document.load.asked()), loads.front().method);
  EXPECT_FALSE(document.advice.is_current()) << "it is of the load before";
  ASSERT_TRUE(document.advice.can_take_back());
  document.advice.take_back();
  EXPECT_EQ(document.load.asked(), before);
  EXPECT_FALSE(document.advice.can_take_back());
}

}  // namespace

}  // namespace loadline::gui
