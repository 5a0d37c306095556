// Saved requests and remedies: what is asked again, otherwise, or of another model.
#include "app/gui/frame/gui_app.h"
#include "app/gui/state/base/shared.h"
#include "core/inspect/doctor.h"
#include "core/load/request/load_options.h"
#include "exporters/convert.h"
#include "tests/gui/drawn_text.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

namespace fs = std::filesystem;

class Requests : public ::testing::Test {
 protected:
  void play(const std::string& lines) { play_script(app_, parse_script(lines, "s"), "s"); }
  std::string refusal(const std::string& lines) {
    try {
      play(lines);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  // The demo model in a folder of its own.
  std::string demo() {
    play("demo\nwait\n");
    const std::string copy = folder_ / "model";
    fs::copy(workspace_.document().model->path, copy, fs::copy_options::recursive);
    play("close\n");
    return copy;
  }
  const LoadRequest& request() const { return workspace_.document().asked().request; }

  const loadline::testing::TemporaryFolder folder_;
  const std::unique_ptr<Window> window_ = open_null_window({});
  GuiApp app_{*window_, ""};
  Workspace& workspace_ = app_.workspace();
};

TEST_F(Requests, a_model_whose_shard_is_a_link_elsewhere_can_be_opened) {
  const std::string model = demo();
  fs::path shard;
  for (const auto& entry : fs::directory_iterator(model))
    if (entry.path().extension() == ".safetensors") shard = entry.path();
  ASSERT_FALSE(shard.empty());
  fs::rename(shard, folder_ / "elsewhere.safetensors");
  fs::create_symlink(folder_ / "elsewhere.safetensors", shard);
  play("open " + model + "\nwait\nexpect-notice elsewhere.safetensors\n");
  EXPECT_FALSE(workspace_.document().model);
  ASSERT_EQ(workspace_.shared.notices.all().size(), 1u);
  EXPECT_EQ(workspace_.shared.notices.all()[0].remedy, (Remedy{"follow_links", "on"}));
  app_.draw_settled();
  EXPECT_NE(drawn_text().find("Followlinks"), std::string::npos);
  play("mend\nwait\n");
  ASSERT_TRUE(workspace_.document().model);
  EXPECT_EQ(workspace_.document().model->errors, 0u);
  EXPECT_TRUE(workspace_.shared.notices.all().empty());
  EXPECT_EQ(refusal("mend\n"), "s: line 1: no message offers a remedy");
}

TEST_F(Requests, findings_set_options_of_the_load_and_of_a_conversion) {
  workspace_.show(many_tensors(10), "");
  app_.settle();
  EXPECT_EQ(remedy_title(std::vector<Remedy>{{"order", "largest"}}), "Set Order to largest");
  workspace_.mend({{"order", "largest"}});
  EXPECT_EQ(request().orders, std::vector<std::string>{"largest"});
  const std::vector<Remedy> settings = {{"to", "gguf"}, {"align", "4096"}};
  EXPECT_EQ(remedy_kind(settings), RemedyKind::convert);
  workspace_.mend(settings);
  EXPECT_EQ(workspace_.settings.panel, "convert");
  EXPECT_EQ(workspace_.document().wants_convert, settings);
  EXPECT_THROW(workspace_.mend({{"no_such_option", "on"}}), Error);
}

TEST_F(Requests, are_saved_and_opened_with_their_model) {
  const std::string model = demo();
  const std::string file = folder_ / "small.json";
  play("open " + model +
       "\nwait\nmethod accelerate\norder largest\nevery-order on\nauto_map 16MiB\nseq 64\n"
       "device_budget 64MiB\nsave-request " +
       file + "\n");
  EXPECT_EQ(read_request(file).request.sequence, 0u);  // no pass follows the load
  EXPECT_EQ(read_request(file).model, model);
  play("first-token on\nactivations 1MiB\nsave-request " + file + "\nclose\nmethod direct\n");
  const LoadRequest saved = read_request(file).request;
  EXPECT_EQ(saved.sequence, 64u);
  EXPECT_EQ(saved.activation_bytes, 0u);
  check_request(saved);
  for (const char* word : {"open-request ", "open "}) {
    play("close\ntarget none\n" + (word + file) + "\nwait\n");
    ASSERT_TRUE(workspace_.document().model) << word;
    const Asked& asked = workspace_.document().asked();
    EXPECT_EQ(shown_method(asked).id, "accelerate");
    EXPECT_EQ(shown_order(asked), "largest");
    EXPECT_TRUE(asked.every_order);
    EXPECT_TRUE(asked.first_token);
    EXPECT_EQ(request().auto_map, MemoryMap{16 << 20});
    EXPECT_EQ(workspace_.document().memory().budget.device, 64u << 20);
  }
  EXPECT_NE(refusal("save-request " + folder_ / "small.txt").find(".json"), std::string::npos);
  loadline::testing::write_file(file, std::string_view(R"({"schema_version": 2, "options": {"slotz": 3}})"));
  EXPECT_NE(refusal("open-request " + file).find("slots"), std::string::npos);
  EXPECT_EQ(shown_method(workspace_.document().asked()).id, "accelerate");
}

TEST_F(Requests, an_order_that_no_file_holds_is_not_saved) {
  workspace_.show(llama_70b_graph(), "");
  play("wait\npanel methods\nmethods-view order\nframes 2\nwait\nmove-item 1 3\nwait\n");
  const std::string file = folder_ / "own.json", order = folder_ / "order.txt";
  EXPECT_NE(refusal("save-request " + file).find("arranged by hand"), std::string::npos);
  EXPECT_FALSE(fs::exists(file));
  play("save-order " + order + "\nwait\norder " + order + "\nwait\nsave-request " + file + "\n");
  EXPECT_EQ(read_request(file).request.orders, std::vector<std::string>{order});
  EXPECT_EQ(workspace_.document().projection.value()->order, order);
}

TEST_F(Requests, targets_of_ones_own_are_offered) {
  Target own = built_in_targets().front();
  own.id = "my-machine";
  workspace_.shared.targets = std::make_shared<const std::vector<Target>>(1, own);
  workspace_.show(llama_70b_graph(), "");
  play("wait\ntarget my-machine\nwait\n");
  EXPECT_EQ(workspace_.document().memory().target->id, "my-machine");
  EXPECT_EQ(workspace_.document().comparison.value()->answer.bound->target->id, "my-machine");
}

}  // namespace
}  // namespace loadline::gui
