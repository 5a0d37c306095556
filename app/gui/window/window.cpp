// The ImGui context and what its version calls keys.
#include "app/gui/window/window.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <imgui.h>

namespace loadline::gui {

Window::Window() {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // the layout follows the window, nothing to remember
  io.LogFilename = nullptr;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  // long lists and maps go past 65536 vertices; every renderer here can offset them
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
}

Window::~Window() { ImGui::DestroyContext(); }

void Window::set_mouse(float, float, bool) {}

bool Window::wait_events(double seconds) {
  // nothing but a job can change what a still window shows
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return false;
}

namespace {

// Until version 1.87 KeysDown is indexed by the codes of the platform; GLFW's letters are ASCII.
constexpr int kTab = 258, kF1 = 290;

int code_of(std::string_view key) { return key == "Tab" ? kTab : key[0]; }

}  // namespace

bool shortcut_pressed(std::string_view shortcut) {
  constexpr std::string_view kControl = "Ctrl+", kShifted = "Ctrl+Shift+";
  if (shortcut == "Escape") return list_key_pressed(ListKey::escape);
  if (shortcut == "Backspace") return list_key_pressed(ListKey::backspace);
  if (shortcut.size() == 2 && shortcut[0] == 'F') return ImGui::IsKeyPressed(kF1 + shortcut[1] - '1', false);
  if (shortcut == "?") {  // on whichever key it lies
    const auto& typed = ImGui::GetIO().InputQueueCharacters;
    return std::find(typed.begin(), typed.end(), ImWchar{'?'}) != typed.end();
  }
  if (shortcut == "Space") return ImGui::IsKeyPressed(' ', false);
  if (shortcut.size() == 1) return !ImGui::GetIO().KeyCtrl && ImGui::IsKeyPressed(shortcut[0], true);
  if (shortcut == "Alt+Left") return ImGui::GetIO().KeyAlt && list_key_pressed(ListKey::left);
  if (shortcut == "Alt+Right") return ImGui::GetIO().KeyAlt && list_key_pressed(ListKey::right);
  if (!ImGui::GetIO().KeyCtrl || !shortcut.starts_with(kControl)) return false;
  const bool shifted = shortcut.starts_with(kShifted);
  if (ImGui::GetIO().KeyShift != shifted) return false;
  return ImGui::IsKeyPressed(code_of(shortcut.substr(shifted ? kShifted.size() : kControl.size())), false);
}

bool list_key_pressed(ListKey key) {
  constexpr ImGuiKey kKeys[] = {ImGuiKey_UpArrow, ImGuiKey_DownArrow, ImGuiKey_LeftArrow, ImGuiKey_RightArrow,
                                ImGuiKey_Enter,   ImGuiKey_Escape,    ImGuiKey_Backspace};
  const int code = ImGui::GetKeyIndex(kKeys[static_cast<std::size_t>(key)]);
  return code >= 0 && ImGui::IsKeyPressed(code, true);
}

}  // namespace loadline::gui
