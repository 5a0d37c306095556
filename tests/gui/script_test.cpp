// The script language: what it accepts, how it refuses, what it does.
#include "app/gui/frame/gui_app.h"
#include "app/gui/parts/theme.h"
#include "app/report/manual.h"
#include "tests/gui/null_window.h"
#include "tests/gui/sample_graphs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Script, lines_and_comments) {
  const auto lines = parse_script("# a comment\n\n  open  /a b/c \r\nwait\nquit", "s");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 3);
  EXPECT_EQ(lines[0].command, "open");
  EXPECT_EQ(lines[0].argument, "/a b/c");
  EXPECT_EQ(lines[2].number, 5);
}

TEST(Script, errors_name_the_line) {
  EXPECT_EQ(message_of([] { parse_script("wait\nfly away\n", "s"); }),
            "s: line 2: unknown word 'fly'; the manual's page 'scripting' lists the words");
  EXPECT_EQ(message_of([] { parse_script("open\n", "s"); }), "s: line 1: open needs an argument");
  EXPECT_EQ(message_of([] { parse_script("wait 3\n", "s"); }), "s: line 1: wait takes no argument");
}

TEST(Script, an_unknown_word_names_the_nearest_one) {
  EXPECT_EQ(message_of([] { parse_script("alocator torch", "s"); }),
            "s: line 1: unknown word 'alocator'; did you mean allocator?");
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
    return message_of([&] { play_script(app, parse_script(text, "s"), "s"); });
  };
  EXPECT_EQ(play("wait\nselect nothing\n"), "s: line 2: no tensor 'nothing'");
  EXPECT_EQ(play("size 12\n"), "s: line 1: '12' is not WIDTHxHEIGHT");
  EXPECT_EQ(play("size 12x99999\n"), "s: line 1: '12' is not a number between 320 and 16384");
  EXPECT_EQ(play("scale nan\n"), "s: line 1: 'nan' is not a number between 0.5 and 4");
  EXPECT_EQ(play("theme blue\n"), "s: line 1: no theme 'blue'; there are: dark, light, system");
  EXPECT_NE(play("panel nowhere\n").find("there are: map"), std::string::npos);
  EXPECT_NE(play("method teleport\n").find("line 1"), std::string::npos);
  EXPECT_NE(play("auto_map 8GiB,\n").find("s: line 1: "), std::string::npos);
  EXPECT_EQ(play("sort weight\n"),
            "s: line 1: no column 'weight'; there are: name, dtype, shape, bytes, file, offset");
  EXPECT_EQ(play("readers 65\n"), "s: line 1: 65 is more than 64, the most possible");
  EXPECT_EQ(play("reading warm\n"), "s: line 1: 'warm' is none of: cache, direct, cold");
  EXPECT_EQ(play("zoom a.b\n"), "s: line 1: no module 'a.b'");
  EXPECT_EQ(play("expect-notice boom\n"), "s: line 1: no notice says 'boom'");
  EXPECT_EQ(play("close\nselect x\n"), "s: line 2: no model is open");
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
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
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
  EXPECT_EQ(workspace.document().table().rows.size(), 9u);
  EXPECT_EQ(workspace.document().table().column, SortColumn::bytes);
  EXPECT_EQ(workspace.document().projection.value()->method->id, "sequential");
  EXPECT_EQ(workspace.document().projection.value()->order, "largest");
  EXPECT_EQ(workspace.document().asked().request.staging_bytes, 128u << 20);
  EXPECT_EQ(workspace.document().asked().request.slots, 8u);
  EXPECT_EQ(workspace.document().model->tensor(*workspace.document().selected_tensor()).name,
            "lm_head.weight");
  EXPECT_EQ(module_path(workspace.document().model->tree, workspace.document().zoomed()), "model.layers");
  EXPECT_EQ(workspace.settings.color_by, ColorBy::shard);
  EXPECT_EQ(workspace.document().asked().request.reads,
            (FileReads{.threads = 2, .reading = FileReading::cold}));
  EXPECT_FALSE(workspace.settings.verify_upload);
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
  EXPECT_EQ(shown_order(workspace.document().asked()), "custom");
  EXPECT_EQ(workspace.document().memory().budget.unified, 64ull << 30);
  EXPECT_EQ(workspace.document().asked().request.allocator, AllocatorModel::torch);
  EXPECT_EQ(workspace.document().asked().request.cast, DType::q8_0);
  EXPECT_EQ(workspace.document().asked().request.shard_bytes, 2'000'000'000u);
  EXPECT_EQ(workspace.document().asked().request.flush_bytes, 10'000'000u);
  EXPECT_EQ(workspace.document().asked().request.runai_buffer, 4'000'000'000u);
  EXPECT_EQ(workspace.settings.compare_sort, (CompareSort{RowSort::held, false}));
  EXPECT_TRUE(workspace.document().overlaid.contains("direct"));
  EXPECT_EQ(workspace.document().comparison.value()->answer.rows.size(),
            methods().size() * (orders().size() + 1));
  const auto play = [&](const std::string& text) {
    return message_of([&] { play_script(app, parse_script(text, "s"), "s"); });
  };
  EXPECT_NE(play("host_budget 1GiB\n").find("s: line 1: unified memory has one budget"), std::string::npos);
  EXPECT_EQ(play("move-item 1\n"), "s: line 1: '1' is not FROM TO");
  EXPECT_NE(play("move-item 0 1\n").find("is not a number between 1 and"), std::string::npos);
  EXPECT_EQ(play("methods-view pie\n"), "s: line 1: no view 'pie'; there are: table, curves, overlay, order");
  EXPECT_NE(play("target toaster\n").find("toaster"), std::string::npos);
  EXPECT_NE(play("methods-sort weight\n").find("no order of rows is called 'weight'"), std::string::npos);
  EXPECT_NE(play("overlay teleport\n").find("teleport"), std::string::npos);
  EXPECT_NE(play("save-chart x.png\n").find(".svg"), std::string::npos);
  EXPECT_EQ(play("cast none\nmethod accelerate\nauto_map 8GiB,16GiB\nwait\nframes 2\n"), "");
  EXPECT_EQ(workspace.document().asked().request.auto_map, (MemoryMap{8ull << 30, 16ull << 30}));
  EXPECT_EQ(play("place layer:0=host\nwait\nframes 2\n"), "");
  EXPECT_FALSE(workspace.document().asked().request.auto_map);
  EXPECT_EQ(workspace.document().asked().request.place, (std::vector<PlaceRule>{{"layer:0", Home::host}}));
  EXPECT_NE(play("place nothing\n").find("is no EXPR="), std::string::npos);
  EXPECT_EQ(play("gpu_layers 1\nwait\nframes 2\n"), "");
  EXPECT_TRUE(workspace.document().asked().request.place.empty());
  EXPECT_EQ(play("target none\ncast none\ngpu_layers none\ndevice_budget none\nwait\n"), "");
  EXPECT_FALSE(workspace.document().memory().budget.unified);
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
  EXPECT_EQ(workspace.document().operator_search, "matmul");
  EXPECT_EQ(workspace.document().operator_shown, 5u);
  EXPECT_EQ(workspace.document().metadata.search, "layers");
  EXPECT_EQ(workspace.document().metadata.entry(), 1u);
  EXPECT_NE(workspace.document().table().error, "");
  play_script(app, parse_script("doctor\nwait\npanel findings\nframes 2\n", "s"), "s");
  EXPECT_TRUE(workspace.document().findings.value() || !diagnosis_error(workspace.document()).empty());
  const auto play = [&](const std::string& text) {
    return message_of([&] { play_script(app, parse_script(text, "s"), "s"); });
  };
  EXPECT_NE(play("filter size:>\n").find("s: line 1: filter term 'size:>'"), std::string::npos);
  EXPECT_EQ(play("operator 9\n"), "s: line 1: '9' is not a number between 0 and 8");
  EXPECT_EQ(play("metadata nothing\n"), "s: line 1: no metadata 'nothing'");
  EXPECT_EQ(play("element 3\n"), "s: line 1: no array is looked at");
  EXPECT_EQ(play("search x\n"), "s: line 1: no array is looked at");
  EXPECT_EQ(play("panel findings\nfind x\n"), "s: line 2: the panel 'findings' has no search box");
  EXPECT_EQ(play("close\ndoctor\n"), "s: line 2: no model is open");
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
  EXPECT_EQ(app.workspace().document().convert_fit.error_text(), "");
  app.workspace().mend({{"to", "gguf"}, {"align", "4096"}});
  app.draw_settled();
  app.settle();
  EXPECT_TRUE(app.workspace().document().wants_convert.empty());
  EXPECT_NE(app.workspace().document().convert_fit.error_text().find("GGUF"), std::string::npos)
      << app.workspace().document().convert_fit.error_text();
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
}  // namespace loadline::gui
