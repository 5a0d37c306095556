// Frames that become pictures: through Vulkan, without a display, under the validation layer.
#include "app/gui/frame/gui_app.h"
#include "app/gui/frame/main.h"
#include "core/base/error.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <stb/stb_image.h>

namespace loadline::gui {
namespace {

struct Size {
  int width = 0;
  int height = 0;
  int colors = 0;  // distinct, up to a few
};

Size measure(const std::string& path) {
  Size size;
  int channels = 0;
  unsigned char* pixels = stbi_load(path.c_str(), &size.width, &size.height, &channels, 4);
  if (pixels == nullptr) return {};
  std::vector<unsigned> seen;
  for (int i = 0; i < size.width * size.height && seen.size() < 32; i += 97) {
    const unsigned char* p = pixels + 4 * i;
    const unsigned color = static_cast<unsigned>(p[0] << 16 | p[1] << 8 | p[2]);
    if (std::find(seen.begin(), seen.end(), color) == seen.end()) seen.push_back(color);
  }
  size.colors = static_cast<int>(seen.size());
  stbi_image_free(pixels);
  return size;
}

class Offscreen : public ::testing::Test {
 protected:
  std::string picture(const char* name) const { return folder_ / (std::string(name) + ".png"); }

  const loadline::testing::TemporaryFolder folder_;
};

TEST_F(Offscreen, draws_resizes_and_scales_without_a_validation_message) {
  const auto window = open_offscreen_window({.width = 900, .height = 600, .validation = true});
  {
    GuiApp app(*window, "");
    app.workspace().show(llama_70b_graph(), "");
    app.settle();
    app.draw_settled();
    window->save_png(picture("first"));
    window->set_size(1280, 720);
    window->set_scale(2);
    app.workspace().settings.dark = false;
    app.draw_settled();
    window->save_png(picture("second"));
    window->save_png(picture("second"));  // replaces it
  }
  const Size first = measure(picture("first"));
  EXPECT_EQ(first.width, 900);
  EXPECT_EQ(first.height, 600);
  EXPECT_GT(first.colors, 8);
  const Size second = measure(picture("second"));
  EXPECT_EQ(second.width, 2560);
  EXPECT_EQ(second.height, 1440);
  EXPECT_EQ(window->validation_messages(), std::vector<std::string>{});
}

TEST_F(Offscreen, a_picture_larger_than_the_device_draws_is_refused) {
  const auto window = open_offscreen_window({.width = 100'000, .height = 300, .validation = true});
  {
    GuiApp app(*window, "");
    app.draw_settled();
    try {
      window->save_png(picture("never"));
      FAIL() << "a device with pictures of 100,000 pixels";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::limit);
      EXPECT_NE(std::string_view(error.what()).find("100000x300"), std::string_view::npos);
    }
  }
  EXPECT_EQ(window->validation_messages(), std::vector<std::string>{});
}

TEST_F(Offscreen, a_hundred_thousand_tensors) {
  const auto window = open_offscreen_window({.width = 1920, .height = 1080, .validation = true});
  GuiApp app(*window, "");
  app.workspace().show(many_tensors(100'000), "");
  app.workspace().settings.panel = "map";
  app.settle();
  app.draw_settled();
  window->save_png(picture("many"));
  EXPECT_GT(measure(picture("many")).colors, 8);
  EXPECT_EQ(window->validation_messages(), std::vector<std::string>{});
}

TEST_F(Offscreen, the_request_of_a_screenshot) {
  GuiRequest request;
  request.screenshot = picture("request");
  request.width = 1000;
  request.height = 700;
  request.panel = "model";
  EXPECT_EQ(run_gui(request), 0);
  EXPECT_EQ(measure(request.screenshot).width, 1000);
}

TEST_F(Offscreen, requests_that_cannot_be_met_throw) {
  GuiRequest request;
  request.screenshot = picture("never");
  std::filesystem::remove(request.screenshot);
  request.paths = {"/nonexistent/model"};
  EXPECT_THROW(run_gui(request), Error);
  EXPECT_FALSE(std::filesystem::exists(request.screenshot));
  request.paths.clear();
  request.panel = "nowhere";
  EXPECT_THROW(run_gui(request), Error);
  request.panel.clear();
  request.screenshot = "/nonexistent/folder/x.png";
  EXPECT_THROW(run_gui(request), Error);
}

TEST_F(Offscreen, a_whole_session_from_a_script) {
  const std::string script = folder_ / "session.txt";
  std::ofstream(script) << "demo\nwait\nupload\nwait\npanel upload\nscreenshot " << picture("script") << "\n";
  GuiRequest request;
  request.script = script;
  request.offscreen = true;
  EXPECT_EQ(run_gui(request), 0);
  EXPECT_GT(measure(picture("script")).colors, 8);
}

TEST_F(Offscreen, an_upload_misses_nothing_that_was_placed_elsewhere) {
  Workspace workspace("");
  const auto settle = [&] {
    while (workspace.busy()) workspace.poll();
  };
  workspace.open_demo();
  settle();
  ASSERT_TRUE(workspace.document().model);
  workspace.document().set_option("method", "accelerate");
  workspace.document().set_option("auto_map", std::to_string(workspace.document().model->weight_bytes / 2));
  settle();
  workspace.upload();
  settle();
  ASSERT_TRUE(workspace.uploaded()) << (workspace.shared.notices.all().empty()
                                            ? ""
                                            : workspace.shared.notices.all()[0].text);
  const gpu::UploadReport& report = workspace.uploaded()->report;
  EXPECT_EQ(report.verified, true) << report.mismatch;
  EXPECT_GT(report.bytes, 0u);
  EXPECT_LE(report.bytes, workspace.document().model->weight_bytes / 2);
}

TEST_F(Offscreen, a_measured_upload_lies_on_its_projection) {
  Workspace workspace("");
  const auto settle = [&] {
    while (workspace.busy()) workspace.poll();
  };
  workspace.open_demo();
  settle();
  ASSERT_TRUE(workspace.document().model);
  workspace.upload();
  settle();
  ASSERT_TRUE(workspace.uploaded()) << (workspace.shared.notices.all().empty()
                                            ? ""
                                            : workspace.shared.notices.all()[0].text);
  const auto result = workspace.uploaded();
  EXPECT_EQ(result->report.verified, true);
  EXPECT_TRUE(result->alone);
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    EXPECT_EQ(result->report.measured.peaks[i].bytes, result->projection->timeline.peaks[i].bytes);
  EXPECT_DOUBLE_EQ(result->report.projected_seconds, result->projection->seconds);
  const SampleLog::Entries live = workspace.live_upload->samples();
  ASSERT_FALSE(live.steps.empty());
  EXPECT_TRUE(std::ranges::is_sorted(live.steps));
  EXPECT_LE(live.steps.back(), result->projection->plan.steps.size());
  // what the system counts is the whole process's
  workspace.upload();
  workspace.convert(conversion("gguf", folder_ / "beside.gguf", {.overwrite = true}));
  settle();
  ASSERT_TRUE(workspace.uploaded());
  EXPECT_FALSE(workspace.uploaded()->alone);
  // another method: what was measured no longer belongs to what is shown
  workspace.document().set_option("method", "per_tensor");
  settle();
  EXPECT_FALSE(workspace.uploaded());
}

}  // namespace
}  // namespace loadline::gui
