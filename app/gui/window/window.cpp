// The ImGui context.
#include "app/gui/window/window.h"

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

}  // namespace loadline::gui
