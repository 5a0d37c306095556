// Text, marks, surfaces, controls, lists, sheets, progress of jobs, lines of facts.
#pragma once

#include "app/gui/parts/theme.h"
#include "app/gui/state/base/jobs.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- The controls that panels are made of, in the program's own style.

// Calls `end` at the end of the block. The derived constructors call the matching begin function.
template <void (*end)()>
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { end(); }
};
inline void pop_color() { ImGui::PopStyleColor(); }
inline void pop_style() { ImGui::PopStyleVar(); }

struct FontScope : Scope<ImGui::PopFont> {
  explicit FontScope(ImFont* font) { ImGui::PushFont(font); }
};
struct IdScope : Scope<ImGui::PopID> {
  template <typename Id>
  explicit IdScope(Id id) {
    ImGui::PushID(id);
  }
  explicit IdScope(std::size_t id) { ImGui::PushID(static_cast<int>(id)); }
  explicit IdScope(std::string_view id) { ImGui::PushID(id.data(), id.data() + id.size()); }
};
struct ColorScope : Scope<pop_color> {
  ColorScope(ImGuiCol which, ImU32 color) { ImGui::PushStyleColor(which, color); }
};
struct StyleScope : Scope<pop_style> {
  StyleScope(ImGuiStyleVar which, float value) { ImGui::PushStyleVar(which, value); }
  StyleScope(ImGuiStyleVar which, ImVec2 value) { ImGui::PushStyleVar(which, value); }
};
struct GroupScope : Scope<ImGui::EndGroup> {
  GroupScope() { ImGui::BeginGroup(); }
};
struct ChildScope : Scope<ImGui::EndChild> {
  explicit ChildScope(const char* id, ImVec2 size = {}, bool border = false, ImGuiWindowFlags flags = 0) {
    ImGui::BeginChild(id, size, border, flags);
  }
};
// A bordered surface. A height of 0 fills the region.
inline constexpr float kCardPadding = 14;  // at the sides
struct CardScope : Scope<ImGui::EndChild> {
  CardScope(const Ui& ui, const char* id, ImVec2 size, bool padded = true);
};

// Draws the visible rows of a list. A negative `height` means that the height of the first row is measured.
template <typename Draw>
void for_rows_in_sight(std::size_t count, Draw draw, float height = -1) {
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(count), height);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) draw(static_cast<std::size_t>(i));
}

// The width in pixels in the current font.
float text_width(std::string_view text);

// A name from a file in drawable form: control characters, and those without a glyph in the font, are
// escaped.
std::string shown(std::string_view name);
// Cut in the middle with an ellipsis so that it is at most `width` pixels wide in the current font.
std::string elided(std::string_view text, float width);
// As many of its clauses, from the first, as fit: "fits, 8.00 GiB left" of "fits, 8.00 GiB left, all 2,048
// tokens". A first one that does not fit is elided.
std::string whole_clauses(std::string_view text, float width);
// The bytes of `first` that a list leaves out of all its names: the whole parts, of `shared` bytes so far,
// that `name` begins with, too.
std::size_t shared_parts(std::string_view first, std::size_t shared, std::string_view name);
// A name of parts between dots or slashes, cut in its middle: its first part, then as many of its last parts
// as fit ("h...c_fc.weight"). A layer's number counts as the first: what precedes it is the same for all
// layers.
std::string elided_name(std::string_view name, float width);
// The same as elided(), cut at the beginning, for paths, whose end matters more.
std::string elided_front(std::string_view text, float width);
// The same at a dot or a slash where there is one.
std::string elided_path(std::string_view text, float width);

std::string capitalized(std::string_view text);

void text(std::string_view text);
void text_colored(ImU32 color, std::string_view text);
void muted(const Ui& ui, std::string_view text);
void small_text(const Ui& ui, std::string_view text, ImU32 color);
// Text in the line of a control, with the same height.
void control_text(std::string_view text, ImU32 color);
// Text at a place of the window; put_text_before() ends at `right`.
void put_text(ImVec2 at, ImU32 color, std::string_view text);
void put_text_before(float right, float y, ImU32 color, std::string_view text);
// A name, escaped and elided to `width` (the rest of the line if 0). If cut, a tooltip shows the whole name.
void name_text(const Ui& ui, std::string_view name, float width, ImU32 color, bool cut_front = false);
// Text that breaks lines at the right edge of the region.
void paragraph(const Ui& ui, std::string_view text, ImU32 color);
// A paragraph after a badge.
void badge_line(const Ui& ui, std::string_view badge, ImU32 badge_color, std::string_view text, ImU32 color,
                float gap = 8);
// A figure, in `font`, below its label.
void fact(const Ui& ui, std::string_view label, std::string_view value, ImU32 color, ImFont* font,
          float spacing);
void heading(const Ui& ui, std::string_view text);
// Bytes with the exact number in a tooltip. bytes_tooltip() adds that tooltip to any item.
void bytes_text(const Ui& ui, std::uint64_t bytes, ImU32 color);
void bytes_tooltip(const Ui& ui, std::uint64_t bytes);
// Text aligned to the right edge of a column.
void right_aligned(std::string_view text, ImU32 color);
// Inside a table of one-line rows, below its headers: scrolls to a row unless it is visible. `height`: of the
// rows' text, as table_row() takes it.
void scroll_to_row(std::size_t row, float height = 0);
// In the window of a list (in a table, below its headers), in every frame: gives the list the arrows and the
// page keys while it has the keyboard, and shows that it has. The row that they lead to from the selected row
// `at`, if any is selected; none if they do not move.
std::optional<std::size_t> row_by_keys(const Ui& ui, std::optional<std::size_t> at, std::size_t count);
// The current window scrolls by the arrows, the page keys, home and end.
void scroll_by_keys();
// Behind row_by_keys(): whether Enter was pressed in the list.
bool row_is_entered();
// Whether a table of that height knows its scroll range; a table that was never drawn does not.
bool table_is_measured(std::size_t rows, float height);

// The flags of a table of one-line rows that scroll below the headers.
inline constexpr ImGuiTableFlags kListTable = ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY |
                                              ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_PadOuterX |
                                              ImGuiTableFlags_NoBordersInBody;
void fixed_column(const Ui& ui, const char* title, float width, ImGuiTableColumnFlags flags = 0);
void stretched_column(const char* title, float weight, ImGuiTableColumnFlags flags = 0);
// Draws the titles; called after the columns are set up. Titles of `figures`, columns of numbers, stand at
// the right, as the numbers do.
void table_headers(const Ui& ui, std::initializer_list<int> figures = {});
// The title of the current cell, in a row of headers.
void column_title(const Ui& ui, std::string_view title, bool of_figures);
// Begins a row that can be selected; true when it was clicked. The first cell is next.
bool table_row(bool selected, float height = 0, ImGuiSelectableFlags flags = 0);

// The column by which a table is sorted; 0: none.
struct TableSort {
  ImGuiID column = 0;
  bool ascending = true;
  bool operator==(const TableSort&) const = default;
};
// Keeps ImGui's sort arrows in the headers and the caller's order of rows in agreement; either may change.
class SortArrows {
 public:
  // In a table, below its headers. `wanted` is the order of the rows, `at` the position of its column. The
  // new order when an arrow was clicked.
  std::optional<TableSort> agree(TableSort wanted, std::optional<std::size_t> at);

 private:
  TableSort agreed_;
};

// A button that the caller draws; outlined while it has the focus.
bool press_area(const Ui& ui, const char* id, ImVec2 size);
// Whether the right button was pressed on the last item and released without pulling it: the question what
// can be done with what lies there.
inline bool is_right_clicked() {
  const ImGuiIO& io = ImGui::GetIO();
  return ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right) &&
         io.MouseDragMaxDistanceSqr[ImGuiMouseButton_Right] < io.MouseDragThreshold * io.MouseDragThreshold;
}
// A plot that the mouse points into and the keyboard passes by.
void plot_area(const char* id, ImVec2 size);

// Text to click on, cut to `width` (the rest of the line if 0); true when clicked.
bool link(const Ui& ui, const char* id, std::string_view words, float width = 0, bool cut_front = false);

enum class ButtonKind { normal, primary, ghost };
// A square button drawn by `paint(center, color)`, with a tooltip.
bool icon_button(const Ui& ui, const char* id, std::string_view hint,
                 const std::function<void(ImVec2 center, ImU32 color)>& paint);
void paint_cross(const Ui& ui, ImVec2 center, ImU32 color);
bool button(const Ui& ui, std::string_view label, ButtonKind kind = ButtonKind::normal, bool enabled = true);
// A row of exclusive choices; returns the index after this frame.
float segmented_width(const Ui& ui, std::span<const std::string_view> labels);
std::size_t segmented(const Ui& ui, const char* id, std::span<const std::string_view> labels,
                      std::size_t current);
// Labels are drawn escaped; returns the new index when one was picked.
std::optional<std::size_t> combo(const Ui& ui, const char* id, float width, std::string_view preview,
                                 std::span<const std::string_view> labels, std::size_t current);
std::optional<std::size_t> combo(const Ui& ui, const char* id, float width, std::string_view preview,
                                 const std::vector<std::string>& labels, std::size_t current);
// Rows of a longer list: a heading stands above the first of the rows that share it, and the words `beside`
// a label at the right.
struct ComboRow {
  std::string label = {}, heading = {}, beside = {};
};
std::optional<std::size_t> combo(const Ui& ui, const char* id, float width, std::string_view preview,
                                 const std::vector<ComboRow>& rows, std::size_t current);

// A slider of `width` pixels, logarithmic for a wide range. A double click makes it a field for a number,
// which may be written "8k". True when the value changed. `words` stand for a value that is not
// set.
bool number_slider(const Ui& ui, const char* id, float width, std::uint64_t& value, std::uint64_t least,
                   std::uint64_t most, std::string_view hint, std::string_view words = {});
// The triangle before a line that folds.
void fold_arrow(const Ui& ui, ImVec2 center, bool open);

bool checkbox(const Ui& ui, const char* label, bool* value);
// The state of a text field: typed text takes effect when Enter is pressed or the field is left.
struct TypedField {
  std::string typed = {};
  bool editing = false;
};
// A text field, `width` pixels wide, that shows `now` until the user types. True when typed text takes
// effect.
bool typed_field(const Ui& ui, const char* id, float width, TypedField& field, const std::string& now,
                 const std::string& empty, std::string_view hint);
// A label, which may be empty, before a control of `width` pixels; both on the line where they fit, if it
// continues.
void label_before(const Ui& ui, std::string_view label, float width, bool continues = true);
// A label in the first `share` of a line; the control is drawn next. Returns the width left for the control.
float field(const Ui& ui, std::string_view label, float share = 0.5f);

// A field for a path, with a button that looks for one: true when that was pressed.
bool path_field(const Ui& ui, std::string_view label, float share, std::string& path);

// Continues the line if `needed` more pixels fit on it; else the next item begins a new one.
bool continue_line(const Ui& ui, float spacing, float needed);

// A small rounded label on tinted ground.
void badge(const Ui& ui, std::string_view text, ImU32 color);
// A colored square and a word; true while hovered.
float legend_width(const Ui& ui, std::string_view text, std::string_view figure);
bool legend_entry(const Ui& ui, ImU32 color, std::string_view text, std::string_view figure);
// A horizontal bar filled to `fraction`, `size` pixels, at the cursor.
void bar(const Ui& ui, double fraction, ImU32 color, ImVec2 size);
// A bar in a line of text, with a figure at the right edge, in `room` logical units.
void bar_with_figure(const Ui& ui, double fraction, ImU32 color, float room, std::string_view figure,
                     ImU32 figure_color);
// A progress bar beside a button that stops the work; true when the button was pressed.
bool progress_with_stop(const Ui& ui, double fraction);
// Parts of a whole side by side.
struct Part {
  std::string_view label;
  std::uint64_t bytes = 0;
  ImU32 color = 0;
};
void parts_bar(const Ui& ui, std::span<const Part> parts, float height);

// The content of an empty panel.
void empty_state(const Ui& ui, std::string_view title, std::string_view hint);
// A bar to drag; returns the new value of `width`, which is what lies before it, or `behind` it.
float splitter(const Ui& ui, const char* id, float width, float least, float most, bool vertical,
               bool behind = false);

// A tooltip for the last item; nothing if the text is empty.
void tooltip(const Ui& ui, std::string_view text);
// While the last item is hovered: a tooltip that `build` fills.
void hover_card(const Ui& ui, const std::function<void()>& build);

// A line of a list with a mark of `color` before a name, which is cut to fit, and a figure at the right. A
// `letter` stands on the mark and says the same as its color. True when it was clicked.
bool marked_row(const Ui& ui, bool selected, ImU32 color, std::string_view name, std::string_view figure,
                ImU32 figure_color, std::string_view letter = {});
float marked_row_height(const Ui& ui);

// The program's mark: a ship's load line, a circle crossed by a line.
void load_line_mark(const Ui& ui, ImVec2 center, float radius);

std::string shape_text(const graph::Tensor& tensor);
// "strides 1 x 4096, in elements"; empty for a contiguous tensor.
std::string strides_text(const graph::Tensor& tensor);
std::string percent_text(double fraction);
double share_of(std::uint64_t part, std::uint64_t whole);
ImU32 severity_color(const Theme& theme, graph::Severity severity);

// --- A sheet lies over everything else in the middle of the window: palette, keys, manual, a question.

// Between the constructor and the end of the block the sheet's content is drawn. It keeps the keyboard.
class SheetScope {
 public:
  // `size` in pixels, cut to what the window has; `top` too, else the sheet stands in the middle.
  SheetScope(const Ui& ui, const char* id, ImVec2 size, float top = -1);
  SheetScope(const SheetScope&) = delete;
  SheetScope& operator=(const SheetScope&) = delete;
  ~SheetScope() { ImGui::End(); }
};

// A sheet that keeps mouse and keyboard until it is closed, in the middle of the window: the dialog of files,
// the sheet of exports. A height of 0 follows the content.
class ModalScope {
 public:
  // Opens it with `appears`. Its content is drawn while visible(). `own_arrows`: the arrows are not ImGui's.
  ModalScope(const Ui& ui, const char* id, std::string_view title, ImVec2 size, bool appears,
             bool own_arrows = false);
  ModalScope(const ModalScope&) = delete;
  ModalScope& operator=(const ModalScope&) = delete;
  ~ModalScope();
  bool visible() const { return visible_; }
  void close() { closes_ = true; }

 private:
  bool visible_ = false, closes_ = false;
};

// In a sheet: whether Escape was pressed, or a mouse button outside of it.
bool sheet_is_left();

// --- The progress of a job that moves bytes: a bar with a button that stops it, its rate and the time left.

// Keeps the rate from frame to frame.
class JobProgress {
 public:
  // True when the button that stops the job was pressed.
  bool draw(const Ui& ui, const JobView& job);

 private:
  RecentRate rate_;
  std::uint64_t rated_ = 0;  // bytes at the last frame
};

// --- Lines of facts: labels, and values that are never cut as long as lines can be broken.

// Every line, of small text with 4 pixels between, is as high as this.
float fact_height(const Ui& ui);
// The name of what the facts are about.
void fact_title(const Ui& ui, std::string_view name);
// The value stands at the right of the label or, without room there, below it.
void fact_row(const Ui& ui, std::string_view label, std::string_view value, std::string_view hint = {});

}  // namespace loadline::gui
