// Words come from the program's own tables, so that most of them mean something.
#include "tests/gui/monkey_input.h"

#include "app/gui/frame/actions.h"
#include "app/gui/panels/panels.h"
#include "core/load/request/load_options.h"
#include "core/load/request/method.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

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

}  // namespace

Monkey::Monkey(GuiApp& app, const MonkeyModels& models, std::mt19937_64& random)
    : app_(app), models_(models), random_(random) {
  for (const auto& [key, code] : kKeys) ImGui::GetIO().KeyMap[key] = code;
}

std::string Monkey::act() {
  // now and then jobs come to their end, else each is cancelled by the next
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
      return std::string(any(methods()).id);
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
      const auto node = NodeId{static_cast<std::uint32_t>(below(model->tree.nodes.size()))};
      if (below(2) == 0) return module_path(model->tree, node);
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
  const LoadOption& option = any(load_options());
  std::string word = any_word();
  if (option.choices != nullptr && below(4) != 0) {
    const auto choices = option.choices();
    if (!choices.empty()) word = choices[below(choices.size())];
  }
  Workspace& workspace = app_.workspace();
  workspace.attempt([&] { workspace.document().set_option(option.id, word); });
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

}  // namespace loadline::gui
