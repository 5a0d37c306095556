// Random input at the window, for `./dev monkey`.

#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/state/workspace.h"
#include "app/lesson/lesson.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/file_names.h"
#include "core/load/request/load_options.h"
#include "core/load/request/method.h"
#include "exporters/synth.h"
#include "importers/importer.h"
#include "tests/gui/harness.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"
#include "tests/support/samples.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>
#include <unistd.h>

namespace loadline::gui {

// --- Models for random input: files of every format, valid and damaged, and graphs without files.

namespace {

class MonkeyModels {
 public:
  MonkeyModels();

  // Holds the files, and everything that is written meanwhile.
  const std::filesystem::path& folder() const { return folder_.path(); }
  // A file or a model folder; one of them does not exist.
  const std::string& path(std::mt19937_64& random) const;
  // Shows a graph that lies in no file.
  void show(Workspace& workspace, std::mt19937_64& random) const;

 private:
  // The files of tests/fuzz/corpus/FORMAT, called `name`.
  void add_seeds(std::mt19937_64& random, std::string_view format, const std::string& name);
  void add_damaged(std::mt19937_64& random, const std::string& name, const std::string& bytes);

  const loadline::testing::TemporaryFolder folder_;
  std::vector<std::string> paths_;
};

namespace fs = std::filesystem;

// How a file must be called to be taken for the format.
std::string file_name(std::string_view importer) {
  const std::string endings = graph::file_endings(importer);
  return (endings.starts_with('.') ? "model" : "") + endings.substr(0, endings.find(' '));
}

MonkeyModels::MonkeyModels() {
  std::mt19937_64 random(1);  // the same files whatever the seed of the input
  for (const importers::Importer& importer : importers::importers())
    add_seeds(random, importer.id, file_name(importer.id));
  add_seeds(random, "packing", "problem.csv");
  add_damaged(random, "model.safetensors", testing::sample_safetensors());
  for (const char* const preset : {"demo", "gpt2", "bert-base-uncased"}) {
    Progress progress;
    paths_.push_back(folder_ / preset);
    exporters::synthesize(forward::config_graph(forward::find_preset(preset)->config_json, "config.json"),
                          paths_.back(), {}, progress);
  }
  paths_.push_back(folder_ / "not there");
}

void MonkeyModels::add_seeds(std::mt19937_64& random, std::string_view format, const std::string& name) {
  std::vector<fs::path> seeds;
  for (const auto& entry : fs::directory_iterator(fs::path(LOADLINE_FUZZ_CORPUS) / format))
    seeds.push_back(entry.path());
  std::ranges::sort(seeds);
  for (const fs::path& seed : seeds) add_damaged(random, name, testing::read_file(seed.string()));
}

void MonkeyModels::add_damaged(std::mt19937_64& random, const std::string& name, const std::string& bytes) {
  std::string cut = bytes.substr(0, bytes.size() * (random() % 100) / 100);
  std::string changed = bytes;
  for (int i = 0; i < 4 && !changed.empty(); ++i)
    changed[random() % changed.size()] = static_cast<char>(random());
  for (const std::string* const content :
       {&bytes, static_cast<const std::string*>(&cut), static_cast<const std::string*>(&changed)}) {
    const fs::path folder = folder_.path() / ("model " + std::to_string(paths_.size()));
    fs::create_directory(folder);
    paths_.push_back((folder / name).string());
    testing::write_file(paths_.back(), *content);
  }
}

const std::string& MonkeyModels::path(std::mt19937_64& random) const {
  return paths_[random() % paths_.size()];
}

void MonkeyModels::show(Workspace& workspace, std::mt19937_64& random) const {
  if (random() % 2 == 0) return states()[random() % states().size()].prepare(workspace);
  constexpr const char* kPresets[] = {"demo", "llama-3-8b", "t5-small", "whisper-tiny", "mamba-130m"};
  workspace.show(preset_graph(kPresets[random() % std::size(kPresets)]), "");
}

}  // namespace

// --- One random act after the other: of the mouse, of the keyboard, or of the table of actions.

namespace {

// The app may be on any window; a real mouse and keyboard are overruled.
class Monkey {
 public:
  Monkey(GuiApp& app, const MonkeyModels& models, std::mt19937_64& random);

  // Does something, and says what. The frame that shows it is the caller's.
  std::string act();

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }
  template <typename T>
  const T& any(std::span<const T> of) {
    return of[below(of.size())];
  }

  std::string use_mouse();
  std::string press_keys();
  std::string type_text();
  std::string run_action();
  std::string set_option();
  std::string change_window();
  std::string change_models();
  void release();
  void press(std::string_view shortcut);
  std::string any_text();
  std::string any_word();
  std::string argument_of(std::string_view action);

  GuiApp& app_;
  const MonkeyModels& models_;
  std::mt19937_64& random_;
};

// What keys are called until ImGui 1.87: GLFW's codes.
constexpr std::array<std::pair<ImGuiKey, int>, 15> kKeys = {{{ImGuiKey_Tab, 258},
                                                             {ImGuiKey_LeftArrow, 263},
                                                             {ImGuiKey_RightArrow, 262},
                                                             {ImGuiKey_UpArrow, 265},
                                                             {ImGuiKey_DownArrow, 264},
                                                             {ImGuiKey_PageUp, 266},
                                                             {ImGuiKey_PageDown, 267},
                                                             {ImGuiKey_Home, 268},
                                                             {ImGuiKey_End, 269},
                                                             {ImGuiKey_Delete, 261},
                                                             {ImGuiKey_Backspace, 259},
                                                             {ImGuiKey_Enter, 257},
                                                             {ImGuiKey_Escape, 256},
                                                             {ImGuiKey_Space, 32},
                                                             {ImGuiKey_A, 65}}};
constexpr int kF1 = 290;

// It would end the run.
constexpr std::string_view kLeftOut = "quit";

Monkey::Monkey(GuiApp& app, const MonkeyModels& models, std::mt19937_64& random)
    : app_(app), models_(models), random_(random) {
  for (const auto& [key, code] : kKeys) ImGui::GetIO().KeyMap[key] = code;
}

std::string Monkey::act() {
  // now and then jobs come to their end, else each is canceled by the next
  if (below(60) == 0) {
    constexpr int kMostFrames = 400;
    for (int i = 0; i < kMostFrames && app_.workspace().busy(); ++i) {
      app_.frame();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  const std::size_t kind = below(100);
  if (kind < 45) return use_mouse();
  release();
  if (kind < 60) return press_keys();
  if (kind < 68) return type_text();
  if (kind < 84) return run_action();
  if (kind < 92) return set_option();
  return kind < 95 ? change_window() : change_models();
}

void Monkey::release() {
  ImGuiIO& io = ImGui::GetIO();
  std::ranges::fill(io.KeysDown, false);
  io.KeyCtrl = io.KeyShift = io.KeyAlt = false;
}

std::string Monkey::use_mouse() {
  ImGuiIO& io = ImGui::GetIO();
  const ImVec2 size = app_.display_size();
  const auto x = static_cast<float>(below(static_cast<std::size_t>(std::max(1.0f, size.x)) + 40)) - 20;
  const auto y = static_cast<float>(below(static_cast<std::size_t>(std::max(1.0f, size.y)) + 40)) - 20;
  const bool down = below(2) == 0;
  app_.window().set_mouse(x, y, down);
  for (int button = 1; button < 3; ++button) io.MouseDown[button] = below(12) == 0;
  if (below(6) == 0) {
    io.MouseWheel = static_cast<float>(below(7)) - 3;
    io.KeyCtrl = below(3) == 0;
  }
  if (!down || below(3) == 0) return fmt::format("mouse at {} {}, {}", x, y, down ? "down" : "up");
  // a click where it is, or two of them
  for (std::size_t left = 1 + below(2); left > 0; --left) {
    app_.window().set_mouse(x, y, false);
    app_.frame();
    app_.window().set_mouse(x, y, true);
    app_.frame();
  }
  app_.window().set_mouse(x, y, false);
  return fmt::format("click at {} {}", x, y);
}

void Monkey::press(std::string_view shortcut) {
  ImGuiIO& io = ImGui::GetIO();
  if (shortcut == "?") return io.AddInputCharacter('?');
  const auto takes = [&](std::string_view prefix) {
    if (!shortcut.starts_with(prefix)) return false;
    shortcut.remove_prefix(prefix.size());
    return true;
  };
  io.KeyCtrl = takes("Ctrl+");
  io.KeyAlt = takes("Alt+");
  io.KeyShift = takes("Shift+");
  constexpr std::array<std::pair<std::string_view, int>, 6> kNamed = {
      {{"Tab", 258}, {"Escape", 256}, {"Backspace", 259}, {"Space", 32}, {"Left", 263}, {"Right", 262}}};
  for (const auto& [name, code] : kNamed)
    if (shortcut == name) {
      io.KeysDown[code] = true;
      return;
    }
  if (shortcut.size() == 2 && shortcut[0] == 'F')
    io.KeysDown[kF1 + shortcut[1] - '1'] = true;
  else if (shortcut.size() == 3 && shortcut.starts_with("F1"))
    io.KeysDown[kF1 + 9 + shortcut[2] - '0'] = true;
  else if (shortcut.size() == 1)
    io.KeysDown[static_cast<unsigned char>(shortcut[0])] = true;
}

std::string Monkey::press_keys() {
  if (below(2) == 0) {
    const int code = kKeys[below(kKeys.size())].second;
    ImGui::GetIO().KeyShift = below(4) == 0;
    ImGui::GetIO().KeyCtrl = code == 65 || below(6) == 0;
    ImGui::GetIO().KeysDown[code] = true;
    return fmt::format("key {}", code);
  }
  if (below(3) == 0) {
    const std::string tab = fmt::format("Ctrl+{}", 1 + below(9));
    press(tab);
    return tab;
  }
  const Action& action = any(actions());
  if (action.shortcut.empty() || action.id == kLeftOut) return "no key";
  press(action.shortcut);
  return std::string(action.shortcut);
}

// Without a slash: what is typed as a path stays in the present folder.
std::string Monkey::any_text() {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyz0123456789 .,:;_-+*=()[]{}<>\"'?!%$\\\t\xc3\xa4\xe2\x82\xac";
  std::string text;
  for (std::size_t left = 1 + below(12); left > 0; --left) text += kLetters[below(kLetters.size())];
  return text;
}

std::string Monkey::any_word() {
  constexpr std::array<const char*, 34> kWords = {"0",
                                                  "1",
                                                  "2",
                                                  "7",
                                                  "75",
                                                  "1000000",
                                                  "18446744073709551615",
                                                  "-1",
                                                  "0.5",
                                                  "nan",
                                                  "1e400",
                                                  "on",
                                                  "off",
                                                  "none",
                                                  "all",
                                                  "64MiB",
                                                  "1GiB",
                                                  "8GB",
                                                  "10%",
                                                  "7 3",
                                                  "1 2",
                                                  "0 1",
                                                  "0.2 0.4",
                                                  "0 1 0 1",
                                                  "name descending",
                                                  "size",
                                                  "layer:0",
                                                  "q_proj",
                                                  "-mlp",
                                                  "size:>1MiB",
                                                  "end",
                                                  "peak",
                                                  "json",
                                                  "model.layers.0"};
  switch (below(8)) {
    case 0:
      return any_text();
    case 1:
      return std::string(any(panels()).id);
    case 2:
      return std::string(any(load::methods()).id);
    case 3: {
      constexpr std::array<std::span<const std::string_view>, 2> kNames = {kColorNames, kCompareViewNames};
      const auto names = kNames[below(2)];
      return std::string(names[below(names.size())]);
    }
    case 4: {
      constexpr std::array<const char*, 14> kOthers = {"dark",    "light",   "device",  "host",    "pass",
                                                       "file",    "example", "staging", "packing", "steps",
                                                       "modules", "list",    "fit",     "planning"};
      return kOthers[below(kOthers.size())];
    }
    case 5: {
      const auto& model = app_.workspace().document().model;
      if (!model || model->graph->tensors.empty()) return "weight";
      const auto node = graph::NodeId{static_cast<std::uint32_t>(below(model->tree.nodes.size()))};
      if (below(2) == 0) return graph::module_path(model->tree, node);
      return model->graph->tensors[below(model->graph->tensors.size())].name.str();
    }
    default:
      return kWords[below(kWords.size())];
  }
}

std::string Monkey::argument_of(std::string_view action) {
  const auto file = [&](const char* ending) {
    return (models_.folder() / fmt::format("written {}{}", below(3), ending)).string();
  };
  if (action == "open") return models_.path(random_);
  if (action == "open-request" || action == "save-request") return file(".json");
  if (action == "load-order" || action == "save-order") return file(".txt");
  if (action == "save-chart") return file(below(2) == 0 ? ".svg" : ".html");
  if (action == "browse") return below(2) == 0 ? "" : models_.folder().string();
  // a search may take what it is given: seconds, and processors
  if (action == "arena-time") return fmt::format("{}", below(2));
  if (action == "lesson") {
    const auto& lessons = app_.workspace().lesson.all();
    return lessons[below(lessons.size())].id;
  }
  if (action == "lesson-step") {
    constexpr std::array<const char*, 4> kSteps = {"next", "back", "1", "4"};
    return kSteps[below(kSteps.size())];
  }
  if (action == "arena-threads") return fmt::format("{}", 1 + below(3));
  if (action == "convert") {
    constexpr std::array<std::pair<const char*, const char*>, 6> kFormats = {{{"safetensors", ".safetensors"},
                                                                              {"gguf", ".gguf"},
                                                                              {"npz", ".npz"},
                                                                              {"torch", ".pt"},
                                                                              {"onnx", ".onnx"},
                                                                              {"none", ".x"}}};
    const auto& [format, ending] = kFormats[below(kFormats.size())];
    return fmt::format("{} {}", format, file(ending));
  }
  return any_word();
}

std::string Monkey::run_action() {
  const Action& action = any(actions());
  Workspace& workspace = app_.workspace();
  // of models of many gigabytes a conversion or an upload would fill the machine
  constexpr std::uint64_t kMost = 64 << 20;
  const bool moves_bytes = action.id == "convert" || action.id == "upload";
  if (moves_bytes && (!workspace.document().model || workspace.document().model->weight_bytes > kMost))
    return "nothing";
  if (action.id == kLeftOut || !action.enabled(workspace)) return "nothing";
  const bool with =
      action.argument == Argument::required || (action.argument == Argument::optional && below(2) == 0);
  const std::string argument = with ? argument_of(action.id) : "";
  workspace.attempt([&] { action.run(workspace, argument); });
  return fmt::format("{} {}", action.id, argument);
}

std::string Monkey::set_option() {
  const load::LoadOption& option = any(load::load_options());
  std::string word = any_word();
  if (option.choices != nullptr && below(4) != 0) {
    const auto choices = option.choices();
    if (!choices.empty()) word = choices[below(choices.size())];
  }
  Workspace& workspace = app_.workspace();
  workspace.attempt([&] { workspace.document().load.set_option(option.id, word); });
  return fmt::format("{} {}", option.id, word);
}

std::string Monkey::type_text() {
  const std::string text = below(2) == 0 ? any_text() : any_word();
  ImGui::GetIO().AddInputCharactersUTF8(text.c_str());
  return "text " + text;
}

std::string Monkey::change_window() {
  if (below(2) == 0) {
    app_.workspace().settings.scale = 0.75f + 0.25f * static_cast<float>(below(8));
    return "scale";
  }
  const int width = 320 + static_cast<int>(below(2200)), height = 240 + static_cast<int>(below(1400));
  app_.window().set_size(width, height);
  return fmt::format("size {}x{}", width, height);
}

std::string Monkey::change_models() {
  Workspace& workspace = app_.workspace();
  constexpr std::size_t kMostModels = 5;
  if (workspace.documents().size() > kMostModels || below(4) == 0) {
    workspace.close_model();
    return "close";
  }
  if (below(3) == 0) {
    models_.show(workspace, random_);
    return "show a graph";
  }
  const std::string& path = models_.path(random_);
  workspace.open(path);
  return "open " + path;
}

}  // namespace

// --- Ends a test program that stands still, and tells what it did last.

namespace {

class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds patience) : patience_(patience), thread_([this] { watch(); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // It moves: this is done next. Aborts if nothing is said for longer than the patience.
  void say(std::string words) {
    const std::lock_guard lock(mutex_);
    words_ = std::move(words);
    last_ = std::chrono::steady_clock::now();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
      if (std::chrono::steady_clock::now() - last_ < patience_) continue;
      std::fprintf(stderr, "stands still since: %s\n", words_.c_str());
      std::abort();  // not exit(): a debugger or a core shows where
    }
  }

  const std::chrono::seconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string words_ = "the start";
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

}  // namespace loadline::gui

// --- Random input at the window, for `./dev monkey`: mouse, keys, text, actions with random arguments,
// models that are valid, odd and damaged. It must not crash, leak or hang.
//   gui_monkey [--seconds N | --events N] [--seed N] [--window]
// The same seed gives the same input; when background jobs end is up to the machine.

namespace {

using namespace loadline::gui;
using Clock = std::chrono::steady_clock;

struct Wanted {
  std::optional<std::uint64_t> events;
  std::chrono::seconds time{60};
  std::uint64_t seed = std::random_device()();
  bool desktop = false;
};

std::optional<Wanted> wanted_by(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--window") {
      wanted.desktop = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    const std::uint64_t number = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--seconds")
      wanted.time = std::chrono::seconds(number);
    else if (word == "--events")
      wanted.events = number;
    else if (word == "--seed")
      wanted.seed = number;
    else
      return std::nullopt;
  }
  return wanted;
}

void play(const Wanted& wanted) {
  constexpr std::chrono::seconds kMostForAFrame{120};  // with sanitizers, on a busy machine
  constexpr std::uint64_t kFreshWindow = 4000;         // events
  const MonkeyModels models;
  // what a path names without a folder, and what the program keeps by itself, stays in the temporary folder
  std::filesystem::current_path(models.folder());
  for (const char* const name : {"HOME", "XDG_CONFIG_HOME", "HF_HOME"})
    ::setenv(name, models.folder().c_str(), 1);
  Watchdog watchdog(kMostForAFrame);
  std::mt19937_64 random(wanted.seed);
  std::uint64_t events = 0, frames = 0;
  const Clock::time_point begin = Clock::now();
  const auto done = [&] {
    return wanted.events ? events >= *wanted.events : Clock::now() - begin >= wanted.time;
  };
  while (!done()) {
    const auto window = wanted.desktop ? open_desktop_window({.scale = 1}) : open_null_window({.scale = 1});
    GuiApp app(*window, models.folder() / "hub");
    Monkey monkey(app, models, random);
    for (std::uint64_t i = 0; i < kFreshWindow && !done(); ++i) {
      watchdog.say(monkey.act());
      ++events;
      app.frame();
      window->wait_events(0);
      ++frames;
      (void)app.workspace().services.requests.take<Quit>();
    }
    watchdog.say("closing the window");
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
  std::printf("monkey: seed %llu: %llu events, %llu frames, %lld s\n",
              static_cast<unsigned long long>(wanted.seed), static_cast<unsigned long long>(events),
              static_cast<unsigned long long>(frames), static_cast<long long>(seconds));
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Wanted> wanted = wanted_by(argc, argv);
  if (!wanted) {
    std::fprintf(stderr, "usage: gui_monkey [--seconds N | --events N] [--seed N] [--window]\n");
    return 2;
  }
  prepare_drivers();
  // first, so that it is known after a crash
  std::printf("monkey: seed %llu\n", static_cast<unsigned long long>(wanted->seed));
  std::fflush(stdout);
  try {
    play(*wanted);
  } catch (const loadline::Error& error) {
    std::fprintf(stderr, "monkey: seed %llu: an error reached the frame: %s\n",
                 static_cast<unsigned long long>(wanted->seed), error.what());
    return 1;
  }
}
