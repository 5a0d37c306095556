// Zooming and panning with the mouse, for all plots.
#include "app/gui/parts/plot_zoom.h"

#include <algorithm>
#include <cmath>

#include <imgui.h>

namespace loadline::gui {

namespace {

// The place under the mouse stays where it is.
void zoom(PlotRange& range, double share, float wheel) {
  constexpr double kLeast = 1e-4;
  const double shown = range.to - range.from;
  const double next = std::clamp(shown * std::pow(0.8, static_cast<double>(wheel)), kLeast, 1.0);
  const double left = share - (share - range.from) * next / shown;
  range.from = std::clamp(left, 0.0, 1.0 - next);
  range.to = range.from + next;
}

void pull(PlotRange& range, float delta, float width) {
  if (!(width > 0)) return;
  const double shown = range.to - range.from;
  const double moved = static_cast<double>(delta / width) * shown;
  range.from = std::clamp(range.from - moved, 0.0, 1.0 - shown);
  range.to = range.from + shown;
}

}  // namespace

void zoom_with_mouse(PlotRange& range, double share, float width) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemHovered() && std::abs(io.MouseWheel) > 0) zoom(range, share, io.MouseWheel);
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right)) pull(range, io.MouseDelta.x, width);
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) range = {};
}

void zoom_with_mouse(PlotRange& across, PlotRange& up, double share_x, double share_y, float width,
                     float height) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemHovered() && std::abs(io.MouseWheel) > 0) {
    if (!io.KeyCtrl) zoom(across, share_x, io.MouseWheel);
    if (!io.KeyShift) zoom(up, share_y, io.MouseWheel);
  }
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right)) {
    pull(across, io.MouseDelta.x, width);
    pull(up, -io.MouseDelta.y, height);
  }
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) across = up = {};
}

}  // namespace loadline::gui
