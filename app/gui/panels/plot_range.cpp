// Zooming and pulling, as every plot does it.
#include "app/gui/panels/plot_range.h"

#include <algorithm>
#include <cmath>

#include <imgui.h>

namespace loadline::gui {

void zoom_with_mouse(PlotRange& range, double share, float width) {
  constexpr double kLeast = 1e-4;
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemHovered() && std::abs(io.MouseWheel) > 0) {
    // the place under the mouse stays where it is
    const double shown = range.to - range.from;
    const double next = std::clamp(shown * std::pow(0.8, static_cast<double>(io.MouseWheel)), kLeast, 1.0);
    const double left = share - (share - range.from) * next / shown;
    range.from = std::clamp(left, 0.0, 1.0 - next);
    range.to = range.from + next;
  }
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right) && width > 0) {
    const double shown = range.to - range.from;
    const double moved = static_cast<double>(io.MouseDelta.x / width) * shown;
    range.from = std::clamp(range.from - moved, 0.0, 1.0 - shown);
    range.to = range.from + shown;
  }
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) range = {};
}

}  // namespace loadline::gui
