// The ImGui context and what its version calls keys.
#include "app/gui/window.h"

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

void Window::set_title(const std::string&) {}

void Window::set_mouse(float, float, bool) {}

bool Window::wait_events(double seconds) {
  // nothing but a job can change what a still window shows
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return false;
}

// Until version 1.87 KeysDown is indexed by the codes of the platform; GLFW's letters are ASCII.
bool shortcut_pressed(Shortcut shortcut) {
  const ImGuiIO& io = ImGui::GetIO();
  if (!io.KeyCtrl) return false;
  constexpr char kLetters[] = {'O', 'F', 'T', 'Q', 'W'};
  return ImGui::IsKeyPressed(kLetters[static_cast<std::size_t>(shortcut)], false);
}

bool list_key_pressed(ListKey key) {
  constexpr ImGuiKey kKeys[] = {ImGuiKey_UpArrow, ImGuiKey_DownArrow, ImGuiKey_LeftArrow, ImGuiKey_RightArrow,
                                ImGuiKey_Enter,   ImGuiKey_Escape,    ImGuiKey_Backspace};
  const int code = ImGui::GetKeyIndex(kKeys[static_cast<std::size_t>(key)]);
  return code >= 0 && ImGui::IsKeyPressed(code, true);
}

}  // namespace loadline::gui
