// Paints an arena: buffers in time and offset, lines across, bands of time.
#pragma once

#include "app/gui/arena_scene.h"
#include "app/gui/panels/plot_paint.h"
#include "app/gui/ui.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace loadline::gui {

ImU32 arena_kind_color(const Theme& theme, ArenaPalette palette, std::uint8_t kind);
std::string_view arena_kind_name(ArenaKind kind);

// The tick or byte that a place in a plot is at: files have ticks up to 2^64. 0 for nan.
std::uint64_t whole(double place);

// A plot of `area` that shows `sight`.
struct ArenaFrame {
  PlotArea area = {};
  view::ArenaSight sight = {};

  float x_of(double tick) const;  // clamped to the area
  float y_of(double byte) const;
  double tick_at(float x) const;
  double byte_at(float y) const;
};

// Bytes at the left, lines across the area.
void paint_arena_bytes(const Ui& ui, const ArenaFrame& frame);
// Ticks under `area`, which may reach below the frame's.
void paint_arena_ticks(const Ui& ui, const ArenaFrame& frame, const PlotArea& area, std::string_view tick);
// Names are written into rectangles that have room for them.
void paint_arena(const Ui& ui, const ArenaFrame& frame, const view::ArenaPicture& picture,
                 const ArenaProblem& problem);
// An outline around a buffer, or a filled rectangle with one.
struct BoxPaint {
  ImU32 fill = 0;  // 0: none
  ImU32 line = 0;
  float thickness = 1.5f;  // logical
};
void paint_box(const Ui& ui, const ArenaFrame& frame, const view::ArenaBox& box, const BoxPaint& paint,
               std::string_view name = {});
// From edge to edge at that height, if it is in sight.
void paint_level_line(const Ui& ui, const ArenaFrame& frame, double byte, ImU32 color, bool dashed);
// Its label where that is free of `taken`: at the right edge or the left, above it or below.
void paint_level_label(const Ui& ui, const ArenaFrame& frame, double byte, ImU32 color,
                       std::string_view label, std::vector<PlotArea>& taken);

}  // namespace loadline::gui
