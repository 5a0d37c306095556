// A frame as a scalable picture: its shapes as paths, its words as text.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <imgui.h>

namespace loadline::gui {

// How a font of ImGui is called outside of it.
struct FontFace {
  std::string_view family;  // "Inter"
  int weight = 400;
  float em = 1;  // its em as a share of its line's height, which is what ImGui calls its size
};

// The part of the last frame inside the rectangle, in pixels. The frame must have been built without
// anti-aliasing, which SVG viewers do themselves. Gradients become the mean of their corners.
std::string draw_svg(const ImDrawData& data, ImVec2 low, ImVec2 high,
                     const std::function<FontFace(const ImFont&)>& face_of);

}  // namespace loadline::gui
