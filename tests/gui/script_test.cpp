// Scripts, pictures and exports of what is seen, and the theme of the desktop.

#include "app/gui/frame/export.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/theme.h"
#include "app/gui/window/still_window.h"
#include "app/gui/window/window.h"
#include "app/gui_request.h"
#include "app/report/manual.h"
#include "core/base/error.h"
#include "core/load/request/load_options.h"
#include "tests/gui/harness.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include <dbus/dbus.h>
#include <fmt/core.h>
#include <gif_lib.h>
#include <gtest/gtest.h>
#include <stb/stb_image.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::gui {

// --- The script language: what it accepts, how it refuses, what it does.

namespace {

TEST(Script, lines_and_comments) {
  const auto lines = parse_script("# a comment\n\n  open  /a b/c \r\nwait\nquit", "s");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 3);
  EXPECT_EQ(lines[0].command, "open");
  EXPECT_EQ(lines[0].argument, "/a b/c");
  EXPECT_EQ(lines[2].number, 5);
}

TEST(Script, errors_name_the_line) {
  using loadline::testing::facts_of;
  EXPECT_EQ(facts_of([] { parse_script("wait\nfly away\n", "s"); }), "usage s 2 'fly' 'scripting'");
  EXPECT_EQ(facts_of([] { parse_script("open\n", "s"); }), "usage s 1");
  EXPECT_EQ(facts_of([] { parse_script("wait 3\n", "s"); }), "usage s 1");
}

TEST(Script, an_unknown_word_names_the_nearest_one) {
  const std::string refused = loadline::testing::error_of([] { parse_script("alocator torch", "s"); });
  EXPECT_TRUE(refused.ends_with(" allocator?")) << refused;
}

// In the part about scripts: every word between accents, at the start of its row.
TEST(Script, the_manual_lists_every_word) {
  const std::string_view page = report::find_manual_page("scripting").text;
  const std::size_t begin = page.find("## Window scripts");
  ASSERT_NE(begin, std::string_view::npos);
  const std::string_view part = page.substr(begin);
  for (const std::string_view word : script_words())
    EXPECT_NE(part.find(fmt::format("\n| `{}", word)), std::string_view::npos) << word;
}

TEST(Script, failing_commands_name_their_line) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(tiny_graph(), "");
  const auto play = [&](const std::string& text) {
    return loadline::testing::facts_of([&] { play_script(app, parse_script(text, "s"), "s"); });
  };
  EXPECT_EQ(play("wait\nselect nothing\n"), "usage s 2 'nothing'");
  EXPECT_EQ(play("size 12\n"), "usage s 1 '12'");
  EXPECT_EQ(play("size 12x99999\n"), "usage s 1 '12' 320 16384");
  EXPECT_EQ(play("scale nan\n"), "usage s 1 'nan' 0.5 4");
  EXPECT_EQ(play("theme blue\n"), "usage s 1 'blue'");
  EXPECT_EQ(play("panel nowhere\n"), "usage s 1 'nowhere'");
  EXPECT_EQ(play("method teleport\n"), "usage s 1 'teleport'");
  EXPECT_EQ(play("auto_map 8GiB,\n"), "usage s 1 '' 64MiB 5GB 4096");
  EXPECT_EQ(play("sort weight\n"), "usage s 1 'weight'");
  EXPECT_EQ(play("readers 65\n"), "usage s 1 65 64");
  EXPECT_EQ(play("reading warm\n"), "usage s 1 'warm'");
  EXPECT_EQ(play("zoom a.b\n"), "usage s 1 'a.b'");
  EXPECT_EQ(play("expect-notice boom\n"), "usage s 1 'boom'");
  EXPECT_EQ(play("close\nselect x\n"), "usage s 2");
}

TEST(Script, stops_when_the_window_is_to_close) {
  const auto window = open_null_window({});
  std::stop_source stop;
  GuiApp app(*window, "", stop.get_token());
  app.workspace().show(llama_70b_graph(), "");
  app.frame();
  EXPECT_FALSE(app.wants_close());
  stop.request_stop();
  EXPECT_TRUE(app.wants_close());
  try {
    play_script(app, parse_script("wait\n", "s"), "s");
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::canceled);
  }
  EXPECT_THROW(app.settle(), Error);
  EXPECT_THROW(app.draw_settled(), Error);
}

TEST(Script, drives_the_workspace) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(llama_70b_graph(), "");
  const bool quit =
      play_script(app,
                  parse_script("wait\npanel tensors\ntheme light\nfilter layer:3\nsort bytes descending\n"
                               "method sequential\norder largest\nstaging 128MiB\nslots 8\n"
                               "activations 1GiB\nwait\nselect lm_head.weight\nzoom model.layers\n"
                               "color shard\nreaders 2\nreading cold\nverify off\nopen "
                               "/nonexistent\nwait\nexpect-notice nonexistent\nquit\n",
                               "s"),
                  "s");
  EXPECT_TRUE(quit);
  const Workspace& workspace = app.workspace();
  EXPECT_EQ(workspace.settings.panel, "tensors");
  EXPECT_FALSE(workspace.settings.dark);
  EXPECT_EQ(workspace.document().table.view().rows.size(), 9u);
  EXPECT_EQ(workspace.document().table.view().column, SortColumn::bytes);
  EXPECT_EQ(workspace.document().load.projection.value()->method->id, "sequential");
  EXPECT_EQ(workspace.document().load.projection.value()->order, "largest");
  EXPECT_EQ(workspace.document().load.asked().request.staging_bytes, 128u << 20);
  EXPECT_EQ(workspace.document().load.asked().request.slots, 8u);
  EXPECT_EQ(workspace.document().model->tensor(*workspace.document().selected_tensor()).name,
            "lm_head.weight");
  EXPECT_EQ(graph::module_path(workspace.document().model->tree, workspace.document().zoomed()),
            "model.layers");
  EXPECT_EQ(workspace.settings.color_by, ColorBy::shard);
  EXPECT_EQ(workspace.document().load.asked().request.reads,
            (io::FileReads{.threads = 2, .reading = io::FileReading::cold}));
  EXPECT_FALSE(workspace.transfers.verify);
}

TEST(Script, drives_the_comparison) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  Workspace& workspace = app.workspace();
  workspace.show(llama_70b_graph(), "");
  play_script(
      app,
      parse_script("wait\npanel methods\nmethods-view order\nframes 2\nwait\nunfold-item 1\nmove-item 1 9\n"
                   "memory unified\ndevice_budget 64GiB\nallocator torch\ncast q8_0\nshard_size 2GB\nflush "
                   "10MB\nrunai_buffer 4GB\nevery-order on\nmethods-sort held descending\noverlay "
                   "direct\nmethods-view overlay\nwait\nframes 2\n",
                   "s"),
      "s");
  EXPECT_EQ(shown_order(workspace.document().load.asked()), "custom");
  EXPECT_EQ(workspace.document().load.memory().budget.unified, 64ull << 30);
  EXPECT_EQ(workspace.document().load.asked().request.allocator, allocators::AllocatorModel::torch);
  EXPECT_EQ(workspace.document().load.asked().request.cast, graph::DType::q8_0);
  EXPECT_EQ(workspace.document().load.asked().request.shard_bytes, 2'000'000'000u);
  EXPECT_EQ(workspace.document().load.asked().request.flush_bytes, 10'000'000u);
  EXPECT_EQ(workspace.document().load.asked().request.runai_buffer, 4'000'000'000u);
  EXPECT_EQ(workspace.settings.compare_sort, (CompareSort{load::RowSort::held, false}));
  EXPECT_TRUE(workspace.document().overlaid.contains("direct"));
  EXPECT_EQ(workspace.document().load.comparison.value()->answer.rows.size(),
            compared_methods(workspace).size() * (load::orders().size() + 1));
  const auto play = [&](const std::string& text) {
    return loadline::testing::facts_of([&] { play_script(app, parse_script(text, "s"), "s"); });
  };
  EXPECT_EQ(play("host_budget 1GiB\n"), "usage s 1");
  EXPECT_EQ(play("move-item 1\n"), "usage s 1 '1'");
  EXPECT_EQ(play("move-item 0 1\n"), "usage s 1 '0' 1 83");
  EXPECT_EQ(play("load-first nothing\n"), "usage s 1 'nothing'");
  EXPECT_EQ(play("fix 1\n"), "usage s 1");
  EXPECT_NE(play("use-load nothing\n"), "");
  EXPECT_EQ(play("use-load direct forward\n"), "");
  EXPECT_EQ(workspace.document().selected(), Selected(LoadOf{"direct", "forward"}));
  EXPECT_EQ(play("methods-view pie\n"), "usage s 1 'pie'");
  EXPECT_EQ(play("target toaster\n"), "usage s 1 'toaster'");
  EXPECT_EQ(play("methods-sort weight\n"), "usage s 1 'weight'");
  EXPECT_EQ(play("overlay teleport\n"), "usage s 1 'teleport'");
  EXPECT_EQ(play("save-chart x.png\n"), "usage s 1 'x.png' .svg .html");
  EXPECT_EQ(play("cast none\nmethod accelerate\nauto_map 8GiB,16GiB\nwait\nframes 2\n"), "");
  EXPECT_EQ(workspace.document().load.asked().request.auto_map, (load::MemoryMap{8ull << 30, 16ull << 30}));
  EXPECT_EQ(play("place layer:0=host\nwait\nframes 2\n"), "");
  EXPECT_FALSE(workspace.document().load.asked().request.auto_map);
  EXPECT_EQ(workspace.document().load.asked().request.place,
            (std::vector<load::PlaceRule>{{"layer:0", load::Home::host}}));
  EXPECT_EQ(play("place nothing\n"), "usage s 1 'nothing'");
  EXPECT_EQ(play("gpu_layers 1\nwait\nframes 2\n"), "");
  EXPECT_TRUE(workspace.document().load.asked().request.place.empty());
  EXPECT_EQ(play("target none\ncast none\ngpu_layers none\ndevice_budget none\nwait\n"), "");
  EXPECT_FALSE(workspace.document().load.memory().budget.unified);
}

TEST(Script, drives_metadata_operators_and_findings) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  Workspace& workspace = app.workspace();
  workspace.show(operator_graph(2), "");
  play_script(app,
              parse_script("wait\npanel operators\nfind matmul\noperator 5\npanel metadata\nfind layers\n"
                           "metadata layers\npanel tensors\nfind size:>\nframes 2\n",
                           "s"),
              "s");
  EXPECT_EQ(workspace.document().forward.search, "matmul");
  EXPECT_EQ(workspace.document().forward.shown, 5u);
  EXPECT_EQ(workspace.document().metadata.search, "layers");
  EXPECT_EQ(workspace.document().metadata.entry(), 1u);
  EXPECT_NE(workspace.document().table.view().error, "");
  play_script(app, parse_script("doctor\nwait\npanel findings\nframes 2\n", "s"), "s");
  EXPECT_TRUE(workspace.document().checks.findings.value() ||
              !workspace.document().checks.diagnosis_error().empty());
  const auto play = [&](const std::string& text) {
    return loadline::testing::facts_of([&] { play_script(app, parse_script(text, "s"), "s"); });
  };
  EXPECT_EQ(play("filter size:>\n"), "usage s 1 'size:>' '' 64MiB 5GB 4096");
  EXPECT_EQ(play("operator 9\n"), "usage s 1 '9' 0 8");
  EXPECT_EQ(play("metadata nothing\n"), "usage s 1 'nothing'");
  EXPECT_EQ(play("element 3\n"), "usage s 1");
  EXPECT_EQ(play("search x\n"), "usage s 1");
  EXPECT_EQ(play("panel findings\nfind x\n"), "usage s 2 'findings'");
  EXPECT_EQ(play("close\ndoctor\n"), "usage s 2");
}

// The panel asks the exporter it was told to take: this one has no 8-bit floats.
TEST(Script, a_remedy_fills_in_the_convert_panel) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.workspace().show(many_tensors(100), "");
  app.workspace().settings.panel = "convert";
  app.settle();
  app.draw_settled();
  app.settle();
  EXPECT_EQ(app.workspace().document().checks.convert_fit.error_text(), "");
  app.workspace().mend({{"to", "gguf"}, {"align", "4096"}});
  app.draw_settled();
  app.settle();
  EXPECT_TRUE(app.workspace().document().checks.suggested.empty());
  EXPECT_NE(app.workspace().document().checks.convert_fit.error_text().find("GGUF"), std::string::npos)
      << app.workspace().document().checks.convert_fit.error_text();
}

TEST(Theme, text_is_readable_on_every_surface) {
  for (const Theme* theme : {&dark_theme(), &light_theme()}) {
    for (const ImU32 ground : {theme->sea, theme->panel, theme->raised}) {
      EXPECT_GE(contrast(theme->text, ground), 7);
      EXPECT_GE(contrast(theme->muted, ground), 4.5);
      EXPECT_GE(contrast(theme->accent, ground), 4.5);
      EXPECT_GE(contrast(theme->good, ground), 4.5);
      EXPECT_GE(contrast(theme->warning, ground), 4.5);
      EXPECT_GE(contrast(theme->bad, ground), 4.5);
    }
    for (const ImU32 ground : {theme->hovered, theme->selected, theme->active})
      EXPECT_GE(contrast(theme->text, ground), 4.5);
    EXPECT_GE(contrast(theme->on_accent, theme->accent), 4.5);
  }
}

TEST(Theme, categories_carry_labels_and_stand_out) {
  for (const Theme* theme : {&dark_theme(), &light_theme()}) {
    for (const auto& colors : {std::vector<ImU32>(theme->spaces.begin(), theme->spaces.end()),
                               std::vector<ImU32>(theme->categories.begin(), theme->categories.end()),
                               std::vector<ImU32>(theme->roles.begin(), theme->roles.end())}) {
      for (std::size_t i = 0; i < colors.size(); ++i) {
        EXPECT_GE(contrast(text_on(colors[i]), colors[i]), 4.5);
        for (std::size_t j = i + 1; j < colors.size(); ++j) EXPECT_NE(colors[i], colors[j]);
      }
    }
    for (int i = 0; i <= 20; ++i)
      EXPECT_GE(contrast(text_on(theme->ramp(i / 20.0)), theme->ramp(i / 20.0)), 4.5);
  }
}

TEST(Scale, comes_back_to_what_it_was_where_no_monitor_says) {
  const auto window = open_null_window({.scale = 1.5f});
  GuiApp app(*window, "");
  play_script(app, parse_script("frames 1\nlarger\nframes 1\n", "s"), "s");
  EXPECT_GT(window->scale(), 1.5f);
  play_script(app, parse_script("usual-size\nframes 1\n", "s"), "s");
  EXPECT_EQ(window->scale(), 1.5f);
}

}  // namespace

// --- Frames that become pictures: through Vulkan, without a display, under the validation layer.

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
  workspace.document().load.set_option("method", "accelerate");
  workspace.document().load.set_option("auto_map",
                                       std::to_string(workspace.document().model->weight_bytes / 2));
  settle();
  workspace.transfers.upload(workspace.document());
  settle();
  ASSERT_TRUE(workspace.transfers.uploaded(workspace.document()))
      << (workspace.services.notices.all().empty() ? "" : workspace.services.notices.all()[0].text);
  const gpu::UploadReport& report = workspace.transfers.uploaded(workspace.document())->report;
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
  workspace.transfers.upload(workspace.document());
  settle();
  ASSERT_TRUE(workspace.transfers.uploaded(workspace.document()))
      << (workspace.services.notices.all().empty() ? "" : workspace.services.notices.all()[0].text);
  const auto result = workspace.transfers.uploaded(workspace.document());
  EXPECT_EQ(result->report.verified, true);
  EXPECT_TRUE(result->alone);
  for (std::size_t i = 0; i < plan::kSpaceCount; ++i)
    EXPECT_EQ(result->report.measured.peaks[i].bytes, result->projection->timeline.peaks[i].bytes);
  EXPECT_DOUBLE_EQ(result->report.projected_seconds, result->projection->seconds);
  const load::SampleLog::Entries live = workspace.transfers.live_upload->samples();
  ASSERT_FALSE(live.steps.empty());
  EXPECT_TRUE(std::ranges::is_sorted(live.steps));
  EXPECT_LE(live.steps.back(), result->projection->plan.steps.size());
  // what the system counts is the whole process's
  workspace.transfers.upload(workspace.document());
  workspace.transfers.convert(workspace.document(),
                              conversion("gguf", folder_ / "beside.gguf", {.overwrite = true}));
  settle();
  ASSERT_TRUE(workspace.transfers.uploaded(workspace.document()));
  EXPECT_FALSE(workspace.transfers.uploaded(workspace.document())->alone);
  // another method: what was measured no longer belongs to what is shown
  workspace.document().load.set_option("method", "per_tensor");
  settle();
  EXPECT_FALSE(workspace.transfers.uploaded(workspace.document()));
}

}  // namespace

// --- Files of what is seen: tables of every view, drawings, and plays.

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// A window without pixels of its own: each picture is one color.
class Painted final : public StillWindow {
 public:
  Painted() : StillWindow({}) {}
  void frame(const std::function<void()>& build) override {
    if (!ImGui::GetIO().Fonts->IsBuilt()) upload_fonts();
    build_frame(build);
  }
  Picture picture() override {
    shade_ = static_cast<unsigned char>(shade_ + 40);
    return {32, 16, std::vector<unsigned char>(std::size_t{4} * 32 * 16, shade_)};
  }
  void upload_fonts() override { ImGui::GetIO().Fonts->Build(); }

 private:
  unsigned char shade_ = 0;
};

class Exports : public ::testing::Test {
 protected:
  Exports() {
    app.workspace().show(preset_graph("demo"), "");
    app.settle();
  }
  void run(const std::string& script) { play_script(app, parse_script(script, "inline"), "inline"); }

  const loadline::testing::TemporaryFolder folder;
  const std::unique_ptr<Window> window = open_null_window({});
  GuiApp app{*window, ""};
};

TEST_F(Exports, EveryTabHasATable) {
  for (const PanelRow& panel : panels()) {
    if (panel.tab.empty()) {
      if (panel.id != "diff") EXPECT_THROW(view_csv(app.workspace().document(), panel.id), Error) << panel.id;
      continue;
    }
    run("panel " + std::string(panel.id) + "\nwait\n");
    if (panel.id == "values") {
      EXPECT_THROW(view_csv(app.workspace().document(), panel.id), Error) << "no tensor was read";
      continue;
    }
    const std::string csv = view_csv(app.workspace().document(), panel.id);
    // this model has no findings, and no file holds its bytes
    EXPECT_GE(lines(csv), panel.id == "findings" || panel.id == "bytes" ? 1u : 2u) << panel.id;
    const std::string titles = csv.substr(0, csv.find('\r'));
    const auto columns = std::ranges::count(titles, ',');
    if (csv.find('"') == std::string::npos)
      EXPECT_EQ(std::ranges::count(csv, ','), columns * static_cast<long>(lines(csv))) << panel.id;
  }
}

TEST_F(Exports, TablesHoldWhatPassesTheFilter) {
  run("filter layer:3\nexport " + (folder / "rows.csv") + "\nwait\n");
  const std::string csv = content(folder / "rows.csv");
  EXPECT_EQ(lines(csv), 10u);
  EXPECT_NE(csv.find("model.layers.3.mlp.down_proj.weight,BF16,512x1408,1441792,mlp,3,"), std::string::npos)
      << csv;
}

TEST_F(Exports, DrawingsHoldTheWords) {
  run("export window " + (folder / "all.svg") + "\nwait\nexport timeline " + (folder / "part.svg") +
      "\nwait\n");
  const std::string all = content(folder / "all.svg"), part = content(folder / "part.svg");
  EXPECT_TRUE(all.starts_with("<svg "));
  EXPECT_TRUE(all.ends_with("</svg>\n"));
  for (const char* const word : {">Options</text>", ">In the load, at the peak</text>", ">Methods</text>"})
    EXPECT_NE(all.find(word), std::string::npos) << word;
  EXPECT_EQ(part.find(">In the load, at the peak</text>"), std::string::npos) << "that is in the inspector";
  EXPECT_NE(part.find(">Split</text>"), std::string::npos);
  EXPECT_TRUE(ImGui::GetStyle().AntiAliasedFill) << "only the frame of the drawing goes without";
}

// The part has the size that was asked for, in pixels, whatever the window's is; and the window stays as it
// is.
TEST_F(Exports, HaveTheSizeAndTheThemeAskedFor) {
  const auto size_of = [&](const std::string& name) {
    const std::string svg = content(folder / name);
    const std::size_t at = svg.find("width=");
    return svg.substr(at, svg.find(" viewBox") - at);
  };
  const auto background = [&](const std::string& name) {
    const std::string svg = content(folder / name);
    const std::size_t at = svg.find("fill=\"#");
    return at == std::string::npos ? svg.substr(0, 120) : svg.substr(at + 6, 7);
  };
  const ImVec2 before = app.display_size();
  const std::string flags = " --size 900x500 --scale 2 --theme light\nwait\n";
  run("panel map\nexport " + (folder / "panel.svg") + flags + "export timeline " + (folder / "time.svg") +
      flags + "export window " + (folder / "window.svg") + flags);
  for (const char* const name : {"panel.svg", "time.svg", "window.svg"})
    EXPECT_EQ(size_of(name), "width=\"1800\" height=\"1000\"") << name;
  run("export window " + (folder / "seen.svg") + "\nwait\n");
  EXPECT_NE(background("window.svg"), background("seen.svg"));
  EXPECT_EQ(app.display_size().x, before.x);
  EXPECT_EQ(app.display_size().y, before.y);
  EXPECT_TRUE(app.workspace().settings.dark);
  for (const char* const wrong : {"--size 12", "--size 8x8", "--scale 2", "--theme blue", "--color red"})
    EXPECT_THROW(run("export map.png " + std::string(wrong) + "\n"), Error) << wrong;
}

// What lies under the mouse is explained to a person, not to those who are shown the picture.
TEST_F(Exports, HaveNothingUnderTheMouse) {
  constexpr std::string_view kCard = "Click to keep the cursor here.";
  window->set_mouse(600, 690, false);  // over the timeline
  app.draw_settled();
  ASSERT_NE(drawn_text().find(without_blanks(kCard)), std::string::npos);
  run("export window " + (folder / "still.svg") + "\nwait\n");
  EXPECT_EQ(content(folder / "still.svg").find("keep the cursor"), std::string::npos);
}

TEST_F(Exports, AreCopiedAsWords) {
  app.workspace().services.requests.add(ExportRequest{.path = "clipboard.csv", .copies = true});
  app.settle();
  EXPECT_TRUE(std::string(ImGui::GetClipboardText()).starts_with("tensor,dtype,shape,bytes,"));
  EXPECT_FALSE(std::filesystem::exists("clipboard.csv"));
}

TEST_F(Exports, WhatCannotBeWrittenIsAMessage) {
  EXPECT_THROW(run("export map.gif\n"), Error);
  EXPECT_THROW(run("export-play play.svg\n"), Error);
  EXPECT_THROW(run("export-play play.gif 1\n"), Error);
  const auto messages = [&] { return app.workspace().services.notices.all().size(); };
  run("export " + (folder / "no/such/folder/map.csv") + "\nwait\n");
  EXPECT_EQ(messages(), 1u);
  EXPECT_FALSE(app.workspace().busy() || app.moves());
  run("panel convert\nexport " + (folder / "convert.csv") + "\nwait\n");
  EXPECT_EQ(messages(), 2u);
  run("panel map\ntimeline off\nexport timeline " + (folder / "hidden.png") + "\nwait\ntimeline on\n");
  EXPECT_EQ(messages(), 3u) << "a part that is not shown";
  run("close\nexport " + (folder / "none.csv") + "\nwait\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "none.csv"));
}

TEST(Plays, BecomeAnimationsAndSeries) {
  const loadline::testing::TemporaryFolder folder;
  Painted window;
  GuiApp app(window, "");
  app.workspace().show(preset_graph("demo"), "");
  app.settle();
  app.workspace().document().time.set_step(7);
  play_script(app,
              parse_script("export-play " + (folder / "play.gif") + " 5\nwait\nexport-play " +
                               (folder / "play.png") + " 3\nwait\n",
                           "inline"),
              "inline");
  EXPECT_EQ(app.workspace().document().time.step(), 7u) << "the cursor is where it was";
  for (const char* const name : {"play-0001.png", "play-0002.png", "play-0003.png"})
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  EXPECT_FALSE(std::filesystem::exists(folder / "play-0004.png"));
  GifFileType* const gif = DGifOpenFileName((folder / "play.gif").c_str(), nullptr);
  ASSERT_NE(gif, nullptr);
  ASSERT_EQ(DGifSlurp(gif), GIF_OK);
  EXPECT_EQ(gif->ImageCount, 5);
  EXPECT_EQ(gif->SWidth, 32);
  EXPECT_EQ(gif->SHeight, 16);
  GraphicsControlBlock control = {};
  EXPECT_EQ(DGifSavedExtensionToGCB(gif, 0, &control), GIF_OK);
  EXPECT_EQ(control.DelayTime, 10);
  for (int i = 0; i < 5; ++i) {
    const SavedImage& image = gif->SavedImages[i];
    EXPECT_NEAR(image.ImageDesc.ColorMap->Colors[image.RasterBits[0]].Red, 40 * (i + 1), 8);
  }
  DGifCloseFile(gif, nullptr);
}

TEST(Pictures, AreCutToWhatThereIs) {
  Picture picture{4, 2, {}};
  for (unsigned char i = 0; i < 32; ++i) picture.rgba.push_back(i);
  const Picture part = cropped(picture, 3, 1, 10, 10);
  EXPECT_EQ(part.width, 1u);
  EXPECT_EQ(part.height, 1u);
  EXPECT_EQ(part.rgba, (std::vector<unsigned char>{28, 29, 30, 31}));
  EXPECT_TRUE(cropped(picture, 9, 9, 1, 1).rgba.empty());
}

}  // namespace

// --- The desktop's answer to what theme it wants: a bus and a portal of this test's own.

namespace {

// A session bus, for as long as the object lives; without an address where dbus-daemon is not installed.
class Bus {
 public:
  Bus() {
    std::array<int, 2> ends = {};
    if (pipe(ends.data()) != 0) return;
    daemon_ = fork();
    if (daemon_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      execlp("dbus-daemon", "dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1",
             nullptr);
      _exit(127);
    }
    close(ends[1]);
    char letter = 0;
    while (read(ends[0], &letter, 1) == 1 && letter != '\n') address += letter;
    close(ends[0]);
    if (!address.empty()) setenv("DBUS_SESSION_BUS_ADDRESS", address.c_str(), 1);
  }
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;
  ~Bus() {
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    if (daemon_ <= 0) return;
    kill(daemon_, SIGTERM);
    waitpid(daemon_, nullptr, 0);
  }

  std::string address;

 private:
  pid_t daemon_ = -1;
};

// Answers every call with a number, two variants deep.
class Portal {
 public:
  explicit Portal(std::uint32_t scheme) : scheme_(scheme) {
    connection_ = dbus_bus_get_private(DBUS_BUS_SESSION, nullptr);
    dbus_connection_set_exit_on_disconnect(connection_, 0);
    dbus_bus_request_name(connection_, "org.freedesktop.portal.Desktop", 0, nullptr);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  Portal(const Portal&) = delete;
  Portal& operator=(const Portal&) = delete;
  ~Portal() {
    thread_.request_stop();
    thread_.join();
    dbus_connection_close(connection_);
    dbus_connection_unref(connection_);
  }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      dbus_connection_read_write(connection_, 20);
      DBusMessage* const call = dbus_connection_pop_message(connection_);
      if (call == nullptr) continue;
      if (dbus_message_is_method_call(call, "org.freedesktop.portal.Settings", "Read") != 0) answer(call);
      dbus_message_unref(call);
    }
  }
  void answer(DBusMessage* call) {
    DBusMessage* const reply = dbus_message_new_method_return(call);
    DBusMessageIter at, outer, inner;
    dbus_message_iter_init_append(reply, &at);
    dbus_message_iter_open_container(&at, DBUS_TYPE_VARIANT, "v", &outer);
    dbus_message_iter_open_container(&outer, DBUS_TYPE_VARIANT, "u", &inner);
    const dbus_uint32_t number = scheme_;
    dbus_message_iter_append_basic(&inner, DBUS_TYPE_UINT32, &number);
    dbus_message_iter_close_container(&outer, &inner);
    dbus_message_iter_close_container(&at, &outer);
    dbus_connection_send(connection_, reply, nullptr);
    dbus_connection_flush(connection_);
    dbus_message_unref(reply);
  }

  std::uint32_t scheme_;
  DBusConnection* connection_ = nullptr;
  std::jthread thread_;
};

TEST(DesktopTheme, IsWhatThePortalSays) {
  const Bus bus;
  if (bus.address.empty()) GTEST_SKIP() << "dbus-daemon is not installed";
  EXPECT_EQ(desktop_prefers_dark(), std::nullopt) << "there is no portal yet";
  for (const auto& [scheme, dark] :
       {std::pair(0u, std::optional<bool>()), {1u, true}, {2u, false}, {7u, {}}}) {
    const Portal portal(scheme);
    EXPECT_EQ(desktop_prefers_dark(), dark) << scheme;
  }
}

TEST(DesktopTheme, IsUnknownWithoutABus) {
  unsetenv("DBUS_SESSION_BUS_ADDRESS");
  setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
  EXPECT_EQ(desktop_prefers_dark(), std::nullopt);
  setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
  EXPECT_EQ(desktop_prefers_dark(), std::nullopt);
}

}  // namespace

}  // namespace loadline::gui

// --- GoogleTest with the software driver.

int main(int argc, char** argv) {
  loadline::gui::prepare_drivers();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
