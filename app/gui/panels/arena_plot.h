// Tab Arena: the plot of a packing, and of its steps.
#pragma once

#include "app/gui/parts/plot.h"
#include "app/gui/parts/theme.h"
#include "app/gui/state/load/arena.h"
#include "app/gui/state/workspace.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- Paints an arena: buffers in time and offset, lines across, bands of time.

ImU32 arena_kind_color(const Theme& theme, ArenaPalette palette, std::uint8_t kind);
std::string_view arena_kind_name(ArenaKind kind);

// The tick or byte at a place in a plot, limited to 64 bits: ticks in files go up to 2^64. 0 for NaN.
std::uint64_t whole(double place);

// A plot that shows the part `sight` of an arena in the rectangle `area`.
struct ArenaFrame {
  PlotArea area = {};
  view::ArenaSight sight = {};

  float x_of(double tick) const;  // clamped to the area
  float y_of(double byte) const;
  double tick_at(float x) const;
  double byte_at(float y) const;
};

// Paints the axis of bytes at the left, with lines across the area.
void paint_arena_bytes(const Ui& ui, const ArenaFrame& frame);
// Paints the ticks under `area`, which may reach below the frame's area.
void paint_arena_ticks(const Ui& ui, const ArenaFrame& frame, const PlotArea& area, std::string_view tick);
// Paints the buffers; those with room for it contain their name.
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
// Paints a line across the area at that byte, if the byte is visible; and its label where it does not overlap
// `taken`: at the right or left edge, above or below the line.
void paint_level_line(const Ui& ui, const ArenaFrame& frame, double byte, ImU32 color, bool dashed,
                      std::string_view label, std::vector<PlotArea>& taken);

// --- Step mode: a greedy run and the exact search beside each other, step by step.

// Fills the rest of the region with two plots, and below them the controls to move through the steps. Arrow
// keys step, Enter plays and stops.
class ArenaStepsView {
 public:
  void draw(Document& document, const Ui& ui);
  void forget() { waited_ = 0; }

 private:
  bool absent(Document& document, const Ui& ui) const;
  void advance(ArenaView& view, const ArenaSteps& steps);

  double waited_ = 0;  // seconds since the last step that was played
};

}  // namespace loadline::gui
