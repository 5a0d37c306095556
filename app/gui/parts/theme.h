// Colors, fonts and measures, and the context of every drawing function.
#pragma once

#include "core/graph/dtype_and_shape.h"
#include "core/graph/names/tensor_names.h"
#include "core/plan/plan.h"

#include <array>

#include <imgui.h>

namespace loadline::gui {

// --- Colors, fonts and measures: the look of the window.

// Text on every surface has a contrast of at least 4.5 (WCAG AA; tested). Category colors begin with those
// of Okabe and Ito, Color Universal Design, 2008, and are moved apart until they are distinct without red,
// green or blue cones, too (tested).
struct Theme {
  bool dark = true;
  ImU32 sea = 0;      // behind everything
  ImU32 panel = 0;    // panels
  ImU32 raised = 0;   // controls and cards on panels
  ImU32 hovered = 0;  // controls under the mouse
  ImU32 active = 0;
  ImU32 border = 0;
  ImU32 grid = 0;  // lines inside plots
  ImU32 text = 0;
  ImU32 muted = 0;  // secondary text
  ImU32 accent = 0;
  ImU32 on_accent = 0;
  ImU32 selected = 0;   // rows that are selected
  ImU32 highlight = 0;  // outline of the selection on colored ground
  ImU32 good = 0;
  ImU32 warning = 0;
  ImU32 bad = 0;
  ImU32 neutral = 0;                  // categories without a color: aggregates, "other"
  plan::PerSpace<ImU32> spaces = {};  // of a family apart from that of the roles: both stand in one picture
  std::array<ImU32, 8> categories = {};
  std::array<ImU32, graph::kRoleCount> roles = {};  // by Role

  // Of a forward pass or a training step: weights, cache, optimizer states, gradients, activations kept for
  // the backward pass, other activations, temporaries. None is a color of a role or a space.
  std::array<ImU32, 7> lives = {};

  ImU32 dtype(graph::DType type) const;
  ImU32 category(std::size_t i) const { return categories[i % categories.size()]; }
  // A color ramp that is ordered for every kind of color vision (Nunez, Anderton, Renslow: cividis, 2018);
  // `t` in [0, 1].
  ImU32 ramp(double t) const;
};

const Theme& dark_theme();
const Theme& light_theme();

// WCAG 2.1 contrast ratio, 1 to 21.
double contrast(ImU32 a, ImU32 b);
// Black or white, whichever reads better on `ground`.
ImU32 text_on(ImU32 ground);
ImU32 with_alpha(ImU32 color, float alpha);
// `t` of the way from a to b.
ImU32 mix(ImU32 a, ImU32 b, float t);

struct Fonts {
  ImFont* body = nullptr;
  ImFont* small = nullptr;
  ImFont* strong = nullptr;  // body size, semi-bold
  ImFont* title = nullptr;
  ImFont* hero = nullptr;
  ImFont* mono = nullptr;
};

// Replaces the fonts of the current ImGui context by the embedded ones at `scale`.
Fonts load_fonts(float scale);
// Sets ImGui's style from the theme.
void apply_theme(const Theme& theme, float scale);

// --- The context of every drawing function: theme, fonts and scale of this frame.

inline ImVec2 operator+(ImVec2 a, ImVec2 b) { return {a.x + b.x, a.y + b.y}; }
inline ImVec2 operator-(ImVec2 a, ImVec2 b) { return {a.x - b.x, a.y - b.y}; }
inline ImVec2 operator/(ImVec2 a, float by) { return {a.x / by, a.y / by}; }

struct Ui {
  const Theme* theme = nullptr;
  Fonts fonts;
  float scale = 1;

  // Logical units to pixels.
  float px(float logical) const { return logical * scale; }
};

}  // namespace loadline::gui
