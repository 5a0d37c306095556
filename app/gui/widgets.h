// The controls that panels are made of, in the program's own style.
#pragma once

#include "app/gui/ui.h"
#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loadline::gui {

// Pushes a font for as long as it lives.
class FontScope {
 public:
  explicit FontScope(ImFont* font) { ImGui::PushFont(font); }
  FontScope(const FontScope&) = delete;
  FontScope& operator=(const FontScope&) = delete;
  ~FontScope() { ImGui::PopFont(); }
};

// In the current font.
float text_width(std::string_view text);
float wrapped_height(std::string_view text, float width);

// A name from a file as it may be drawn: escaped, and what the current font has no glyph for too.
std::string shown(std::string_view name);
// Cut in the middle with an ellipsis so that it is at most `width` pixels wide in the current font.
std::string elided(std::string_view text, float width);
// Cut at the beginning: of a path the end says more.
std::string elided_front(std::string_view text, float width);

void text(std::string_view text);
void text_colored(ImU32 color, std::string_view text);
void muted(const Ui& ui, std::string_view text);
// Escaped, elided to `width` (the rest of the line if 0), whole name in a tooltip when cut.
void name_text(const Ui& ui, std::string_view name, float width, ImU32 color, bool cut_front = false);
// Breaks lines at the right edge of the region.
void paragraph(const Ui& ui, std::string_view text, ImU32 color);
void heading(const Ui& ui, std::string_view text);
// Bytes with the exact figure in a tooltip.
void bytes_text(const Ui& ui, std::uint64_t bytes, ImU32 color);
// The same, aligned to the right edge of a column.
void right_aligned(std::string_view text, ImU32 color);
// Inside a table of rows of one line each, below its headers: brings a row into sight that is not.
void scroll_to_row(std::size_t row);
// Whether such a table of that height knows how far it can scroll: one that was never drawn does not.
bool table_is_measured(std::size_t rows, float height);

// Words to click on, cut to `width` (the rest of the line if 0); true when they were.
bool link(const Ui& ui, const char* id, std::string_view words, float width = 0, bool cut_front = false);

enum class ButtonKind { normal, primary, ghost };
bool button(const Ui& ui, std::string_view label, ButtonKind kind = ButtonKind::normal, bool enabled = true);
// A row of exclusive choices; returns the index after this frame.
float segmented_width(const Ui& ui, std::span<const std::string_view> labels);
std::size_t segmented(const Ui& ui, const char* id, std::span<const std::string_view> labels,
                      std::size_t current);
// Labels are drawn escaped; returns the new index when one was picked.
std::optional<std::size_t> combo(const Ui& ui, const char* id, float width, std::string_view preview,
                                 std::span<const std::string_view> labels, std::size_t current);

// A slider of `width`, logarithmic where there is a lot to choose from; a double click or Ctrl+click takes
// typed digits. True when it moved.
bool number_slider(const Ui& ui, const char* id, float width, std::uint64_t& value, std::uint64_t least,
                   std::uint64_t most, std::string_view hint);
// The triangle before a line that folds.
void fold_arrow(const Ui& ui, ImVec2 center, bool open);

bool checkbox(const Ui& ui, const char* label, bool* value);
// What is typed stays until enter is pressed or the field is left.
struct TypedField {
  std::string typed = {};
  bool editing = false;
};
// A field for text, `width` pixels wide: `now` until somebody types. True when what was typed counts.
bool typed_field(const Ui& ui, const char* id, float width, TypedField& field, const std::string& now,
                 const std::string& empty, std::string_view hint);
// A label, which may be empty, before a control of `width` pixels; both on the line where they fit, if it
// continues.
void label_before(const Ui& ui, std::string_view label, float width, bool continues = true);
// The label of what is drawn next on the same line, in the first `share` of it; returns the width left.
float field(const Ui& ui, std::string_view label, float share = 0.5f);

// Continues the line if `needed` more pixels fit on it; else the next item begins a new one.
bool continue_line(const Ui& ui, float spacing, float needed);

// A small rounded label on tinted ground.
void badge(const Ui& ui, std::string_view text, ImU32 color);
// A coloured square and a word; true while hovered.
float legend_width(const Ui& ui, std::string_view text, std::string_view figure);
bool legend_entry(const Ui& ui, ImU32 color, std::string_view text, std::string_view figure);
// A horizontal bar filled to `fraction`, `size` pixels, at the cursor.
void bar(const Ui& ui, double fraction, ImU32 color, ImVec2 size);
// Parts of a whole side by side.
struct Part {
  std::string_view label;
  std::uint64_t bytes = 0;
  ImU32 color = 0;
};
void parts_bar(const Ui& ui, std::span<const Part> parts, float height);

// A bordered surface; everything until end_card() is inside. A height of 0 fits the region.
void begin_card(const Ui& ui, const char* id, ImVec2 size, bool padded = true);
void end_card();
// What a panel shows when there is nothing to show.
void empty_state(const Ui& ui, std::string_view title, std::string_view hint);
// A vertical bar to drag; returns the new value of `width`.
float splitter(const Ui& ui, const char* id, float width, float least, float most, bool vertical);

void tooltip(const Ui& ui, std::string_view text);
// While the last item is hovered: a tooltip that `build` fills.
void hover_card(const Ui& ui, const std::function<void()>& build);

// The mark: a ship's load line, a circle that a line crosses.
void load_line_mark(const Ui& ui, ImVec2 center, float radius);

std::string shape_text(const Tensor& tensor);
// "strides 1 x 4096, in elements"; empty for a contiguous tensor.
std::string strides_text(const Tensor& tensor);
std::string percent_text(double fraction);
ImU32 severity_color(const Theme& theme, Severity severity);

}  // namespace loadline::gui
