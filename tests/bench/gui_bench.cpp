// Frames of the window, from NewFrame to Render, and how soon it shows a model: without a display, beside the
// frame of an empty window and beside opening the model alone.
#include "app/gui/frame/gui_app.h"
#include "core/base/text.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/io/system_memory.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/bench/harness.h"
#include "tests/gui/harness.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

using Clock = std::chrono::steady_clock;

std::string program;  // this one, to start again

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

struct Frames {
  std::vector<double> took;  // milliseconds, sorted

  double at(double share) const {
    return took[std::min(took.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(took.size())))];
  }
};

// What a user does meanwhile, one part of it a frame.
struct Motion {
  std::string_view name;
  void (*step)(Workspace& workspace, std::size_t frame);
  void (*end)(Workspace& workspace);
};

constexpr std::size_t kFrames = 150;

const auto kMotions = std::to_array<Motion>({
    {"still", [](Workspace&, std::size_t) {}, [](Workspace&) {}},
    {"zooming",
     [](Workspace& workspace, std::size_t frame) {
       Document& document = workspace.document();
       const auto nodes = static_cast<std::uint32_t>(document.model->tree.nodes.size());
       document.zoom(graph::NodeId{static_cast<std::uint32_t>(frame * 7919 % nodes)});
     },
     [](Workspace& workspace) { workspace.document().zoom(graph::kRootNode); }},
    {"scrubbing",
     [](Workspace& workspace, std::size_t frame) {
       Document& document = workspace.document();
       if (document.load.projection.value())
         document.time.set_step(document.load.projection.value()->plan.steps.size() * frame / kFrames);
     },
     [](Workspace& workspace) { workspace.document().time.set_step(std::nullopt); }},
    {"typing",
     [](Workspace& workspace, std::size_t frame) {
       static constexpr std::string_view kTyped = "layers.12.mlp";
       if (frame % 5 == 0)
         workspace.document().table.set_filter(std::string(kTyped.substr(0, frame / 5 % 14)));
     },
     [](Workspace& workspace) { workspace.document().table.set_filter(""); }},
    {"playing",
     [](Workspace& workspace, std::size_t) {
       if (!workspace.document().time.playing()) workspace.document().time.play(true);
     },
     [](Workspace& workspace) {
       workspace.document().time.play(false);
       workspace.document().time.set_step(std::nullopt);
     }},
});

Frames frames(GuiApp& app, const Motion& motion) {
  Frames all;
  for (std::size_t i = 0; i < kFrames; ++i) {
    const auto start = Clock::now();
    motion.step(app.workspace(), i);  // what an event does is part of its frame
    app.frame();
    all.took.push_back(milliseconds(Clock::now() - start));
  }
  motion.end(app.workspace());
  app.settle();
  std::ranges::sort(all.took);
  return all;
}

// One line for each motion: the worst of all panels, and which one that is.
void of_panels(std::size_t tensors) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.draw_settled();
  const Frames empty = frames(app, kMotions[0]);
  app.workspace().show(many_tensors(tensors), "");
  app.settle();
  fmt::print("\n{} tensors; an empty window takes {:.2f} ms\n", format_grouped(tensors), empty.at(0.5));
  fmt::print("  {:<11} {:<10} {:>9} {:>9} {:>9} {:>14}\n", "panel", "motion", "median", "p99", "worst",
             "p99 / empty");
  for (const PanelRow& panel : panels()) {
    if (panel.tab.empty()) continue;
    app.workspace().settings.panel = panel.id;
    app.draw_settled();
    app.settle();
    app.draw_settled();
    for (const Motion& motion : kMotions) {
      const Frames took = frames(app, motion);
      fmt::print("  {:<11} {:<10} {:>6.2f} ms {:>6.2f} ms {:>6.2f} ms {:>13.1f}x\n", panel.id, motion.name,
                 took.at(0.5), took.at(0.99), took.took.back(), took.at(0.99) / empty.at(0.99));
      bench::record(fmt::format("frames, {} tensors", format_grouped(tensors)),
                    fmt::format("{}, {}", panel.id, motion.name), empty.at(0.99) / took.at(0.99),
                    took.at(0.99) / 1000);
    }
  }
  std::fflush(stdout);
}

void print_scene(std::string_view scene, std::string_view motion, const Frames& took, const Frames& empty) {
  fmt::print("  {:<11} {:<10} {:>6.2f} ms {:>6.2f} ms {:>6.2f} ms {:>13.1f}x\n", scene, motion, took.at(0.5),
             took.at(0.99), took.took.back(), took.at(0.99) / empty.at(0.99));
  bench::record(fmt::format("frames, {}", scene), std::string(motion), empty.at(0.99) / took.at(0.99),
                took.at(0.99) / 1000);
  std::fflush(stdout);
}

// The graph of 8,001 operators without modules: the boxes near one operator, which another takes the place of
// in every frame of a walk.
void of_graph() {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.draw_settled();
  const Frames empty = frames(app, kMotions[0]);
  app.workspace().show(operator_graph(2000), "");
  app.workspace().settings.panel = "graph";
  app.settle();
  app.draw_settled();
  fmt::print("\nThe graph of {} operators\n",
             format_grouped(app.workspace().document().forward.graph()->ops.size()));
  print_scene("graph", "still", frames(app, kMotions[0]), empty);
  const Motion walk = {"walking",
                       [](Workspace& workspace, std::size_t frame) {
                         workspace.document().select(OperatorAt{frame * 53 % 8000});
                       },
                       [](Workspace&) {}};
  print_scene("graph", "walking", frames(app, walk), empty);
}

// The start page of 300 models in a folder: frames while it reads them and afterwards.
void of_start(const std::string& folder) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.draw_settled();
  const Frames empty = frames(app, kMotions[0]);
  app.workspace().settings.folders = {folder};
  fmt::print("\nThe start page of 300 models\n");
  Frames reading;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    app.workspace().poll();
    app.frame();
    reading.took.push_back(milliseconds(Clock::now() - start));
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  } while (app.workspace().busy() && Clock::now() - begin < std::chrono::seconds(60));
  const double seconds = milliseconds(Clock::now() - begin) / 1000;
  std::ranges::sort(reading.took);
  print_scene("start page", "reading", reading, empty);
  print_scene("start page", "still", frames(app, kMotions[0]), empty);
  fmt::print("  all rows are there after {:.2f} s\n", seconds);
}

// With the rasteriser of this machine: the whole frame, shown in an image.
void rasterised(std::size_t tensors) {
  std::unique_ptr<Window> window;
  try {
    window = open_offscreen_window({});
  } catch (const Error& error) {
    return fmt::print("  not rasterised: {}\n", error.what());
  }
  GuiApp app(*window, "");
  app.workspace().show(many_tensors(tensors), "");
  app.settle();
  app.draw_settled();
  Frames took;
  for (std::size_t i = 0; i < kFrames; ++i) {
    const auto start = Clock::now();
    app.frame();
    (void)window->picture();
    took.took.push_back(milliseconds(Clock::now() - start));
  }
  std::ranges::sort(took.took);
  fmt::print("  map, rasterised to 1280x800: median {:.2f} ms, p99 {:.2f} ms, worst {:.2f} ms\n",
             took.at(0.5), took.at(0.99), took.took.back());
  std::fflush(stdout);
}

// A window that opens a model, taken down by close(): that is no part of any time.
class Opened {
 public:
  void close() {
    app_.reset();
    window_.reset();
  }
  void show_first_frame(const std::string& path) {
    window_ = open_null_window({});
    app_ = std::make_unique<GuiApp>(*window_, "");
    if (!path.empty()) app_->workspace().open(path);
    app_->frame();
  }
  // Until the model's tree and map are drawn; a window that waits draws nothing meanwhile.
  void show_model(const std::string& path) {
    show_first_frame(path);
    while (!app_->workspace().document().model) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      app_->workspace().poll();
    }
    app_->frame();
  }

 private:
  std::unique_ptr<Window> window_;
  std::unique_ptr<GuiApp> app_;
};

void opening(const std::string& path) {
  Opened window;
  const auto close = [&] { window.close(); };
  bench::print("the first frame of a window",
               bench::measure({{"empty", [&] { window.show_first_frame(""); }, close},
                               {"with the model", [&] { window.show_first_frame(path); }, close}},
                              15),
               0);
  std::shared_ptr<const graph::MetaGraph> graph;
  const auto drop = [&] {
    window.close();
    graph.reset();
  };
  bench::print(
      "until the model is there",
      bench::measure({{"what inspect does: open_model, count",
                       [&] {
                         window.show_first_frame("");
                         graph = std::make_shared<const graph::MetaGraph>(importers::open_model(path, {}));
                         (void)forward::model_claims(*graph, *forward::built_in_assets());
                       },
                       drop},
                      {"its tree and map are drawn", [&] { window.show_model(path); }, drop}},
                     15),
      0);
}

int show_memory(const std::string& path) {
  const auto window = open_null_window({});
  GuiApp app(*window, "");
  app.draw_settled();
  const std::uint64_t empty = io::read_process_memory().rss_anon;
  const auto start = Clock::now();
  app.workspace().open(path);
  app.settle();
  app.draw_settled();
  app.settle();
  const double took = milliseconds(Clock::now() - start) / 1000;
  const std::uint64_t full = io::read_process_memory().rss_anon;
  fmt::print("  {}: RssAnon {} above an empty window's {}, all background work done after {:.2f} s\n",
             safe_display(path, 60), format_bytes(full - std::min(full, empty)), format_bytes(empty), took);
  return 0;
}

}  // namespace
}  // namespace loadline::gui

int main(int count, char** arguments) {
  using namespace loadline;
  if (count == 3 && std::string_view(arguments[1]) == "--memory") return gui::show_memory(arguments[2]);
  gui::program = arguments[0];
  const testing::TemporaryFolder folder;
  {
    const std::string models = folder / "models";
    const forward::Preset& small = *forward::find_preset("demo");
    const graph::MetaGraph shapes = forward::config_graph(small.config_json, "demo");
    Progress progress;
    for (int i = 0; i < 300; ++i)
      exporters::synthesize(shapes, fmt::format("{}/model-{:03}", models, i), {}, progress);
    gui::of_start(models);
    gui::of_graph();
  }
  if (count == 2 && std::string_view(arguments[1]) == "--scenes") return 0;
  const std::string path = folder / "deepseek-v3";
  Progress progress;
  const forward::Preset& preset = *forward::find_preset("deepseek-v3");
  exporters::synthesize(forward::config_graph(preset.config_json, "deepseek-v3"), path,
                        {.seed = {}, .max_shard_bytes = preset.max_shard_bytes, .overwrite = false},
                        progress);
  gui::opening(path);
  std::fflush(stdout);
  if (std::system(fmt::format("'{}' --memory '{}'", gui::program, path).c_str()) != 0)
    fmt::print("  memory: failed\n");
  for (const std::size_t tensors : {std::size_t{1'000}, std::size_t{100'000}, std::size_t{1'000'000}}) {
    gui::of_panels(tensors);
    gui::rasterised(tensors);
  }
}
