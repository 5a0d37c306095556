// Several open models: which one is shown, what stays of each, and files that change.
#include "app/gui/state/model/files.h"
#include "app/gui/state/workspace.h"
#include "tests/gui/sample_graphs.h"
#include "tests/gui/settle.h"
#include "tests/support/builders.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace loadline::gui {
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
  EXPECT_EQ(workspace.shared.notices.all().size(), 1u);
}

TEST_F(Documents, each_keeps_its_own_choices) {
  workspace.open(file("a.safetensors", 4, "first"));
  settle(workspace);
  workspace.document().set_option("method", "sequential");
  workspace.open(file("b.safetensors", 4, "second"));
  settle(workspace);
  EXPECT_EQ(shown_method(workspace.document().asked()).id, "sequential")
      << "a new one begins like its neighbour";
  workspace.document().set_option("method", "to_device");
  workspace.document().set_filter("sec");
  workspace.document().select(TensorId{0});
  workspace.settings.panel = "methods";
  workspace.show_document(0);
  EXPECT_EQ(shown_method(workspace.document().asked()).id, "sequential");
  workspace.settings.panel = "tensors";
  EXPECT_EQ(workspace.document().table().filter, "");
  EXPECT_FALSE(workspace.document().selected_tensor());
  workspace.show_document(1);
  EXPECT_EQ(workspace.document().table().filter, "sec");
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
  workspace.convert(task);
  ASSERT_TRUE(workspace.conversion.busy());
  workspace.ask_quit();
  EXPECT_FALSE(workspace.wants_quit);
  EXPECT_TRUE(workspace.asks_quit);
  workspace.ask_quit();
  EXPECT_TRUE(workspace.wants_quit) << "who asks twice means it";
  settle(workspace);
}

TEST_F(Documents, quitting_while_nothing_is_written_asks_nothing) {
  workspace.ask_quit();
  EXPECT_TRUE(workspace.wants_quit);
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
  workspace.document().set_option("method", "to_device");
  workspace.document().set_filter("we");
  workspace.document().select(TensorId{0});
  file("a.safetensors", 1024, "weight");
  workspace.reload();
  settle(workspace);
  EXPECT_EQ(workspace.document().model->weight_bytes, 4096u);
  EXPECT_EQ(shown_method(workspace.document().asked()).id, "to_device");
  EXPECT_EQ(workspace.document().table().filter, "we");
  EXPECT_EQ(workspace.document().selected_tensor(), TensorId{0});
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
}  // namespace loadline::gui
