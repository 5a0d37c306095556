// Cells are coloured on one scale around zero: negative values in the device's colour, positive ones in the
// host's, by magnitude.
#include "app/gui/panels/values_map.h"

#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

float scale_of(const ValueCells& cells, CellValue show) {
  float most = 0;
  for (const float value : show == CellValue::mean ? cells.mean : cells.largest)
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  return most;
}

ImU32 color_of(const Ui& ui, float value, float most) {
  if (!std::isfinite(value)) return ui.theme->bad;
  const float share = most > 0 ? std::sqrt(std::min(std::abs(value) / most, 1.0f)) : 0;
  return mix(ui.theme->raised, ui.theme->spaces[index(value < 0 ? Space::device : Space::host)], share);
}

// Half or twice as much around `at`, a share of the range; at least four.
void zoom_side(std::uint64_t& first, std::uint64_t& count, std::uint64_t whole, double at, bool nearer) {
  const std::uint64_t next = nearer ? std::max<std::uint64_t>(std::min<std::uint64_t>(4, whole), count / 2)
                                    : std::min(whole, count * 2);
  const double fixed = static_cast<double>(first) + at * static_cast<double>(count);
  const double start = std::max(0.0, fixed - at * static_cast<double>(next));
  first = std::min(whole - next, static_cast<std::uint64_t>(start));
  count = next;
}

// The first and the last word of an axis below a picture, and between them its name.
void axis_below(const Ui& ui, ImVec2 at, float width, std::string_view first, std::string_view last,
                std::string_view name) {
  const float gap = ui.px(8), left = text_width(first), right = text_width(last);
  put_text(at, ui.theme->muted, first);
  put_text_before(at.x + width, at.y, ui.theme->muted, last);
  const float room = width - 2 * (std::max(left, right) + gap);
  if (room < ui.px(30)) return;
  const std::string words = elided(name, room);
  put_text({at.x + (width - text_width(words)) / 2, at.y}, ui.theme->muted, words);
}

// The same at the left of a picture that begins at `at`.
void axis_beside(const Ui& ui, ImVec2 at, float height, std::string_view top, std::string_view bottom,
                 std::string_view name) {
  const float right = at.x - ui.px(6), line = ImGui::GetFontSize();
  put_text_before(right, at.y, ui.theme->muted, top);
  put_text_before(right, at.y + height - line, ui.theme->muted, bottom);
  if (height > 4 * line) put_text_before(right, at.y + (height - line) / 2, ui.theme->muted, name);
}

// What colours stand for: words, then the ends of the scale around it, at the right.
void color_scale(const Ui& ui, ImVec2 at, float width, std::string_view words, std::string_view low,
                 std::string_view high, const std::function<ImU32(float)>& color) {
  constexpr int kSteps = 16;
  const float bar = ui.px(96), gap = ui.px(6);
  const float own = text_width(low) + text_width(high) + bar + 2 * gap;
  if (own > width) return;
  if (const float room = width - own - 2 * gap; room > std::min(text_width(words), ui.px(60)))
    put_text(at, ui.theme->muted, elided(words, room));
  float x = at.x + width - own;
  put_text({x, at.y}, ui.theme->muted, low);
  x += text_width(low) + gap;
  const float top = at.y + (ImGui::GetFontSize() - ui.px(9)) / 2;
  for (int i = 0; i < kSteps; ++i) {
    const float step = bar / kSteps, from = x + step * static_cast<float>(i);
    ImGui::GetWindowDrawList()->AddRectFilled({from, top}, {from + step, top + ui.px(9)},
                                              color((static_cast<float>(i) + 0.5f) / kSteps));
  }
  put_text({x + bar + gap, at.y}, ui.theme->muted, high);
}

struct Place {
  ImVec2 at, size;
};

// Draws the axes and the scale of cells at the edges of a place; what is left is for the cells. Nothing where
// there is no room to spare.
Place draw_cells_frame(const ValueCells& cells, const CellRange& range, const Ui& ui, CellValue show,
                       Place place) {
  const FontScope font(ui.fonts.small);
  const float line = ImGui::GetFontSize() + ui.px(4);
  if (place.size.y < 6 * line) return place;
  const std::string last_row = format_grouped(range.row + range.rows - 1);
  const float gutter = std::max(text_width("row"), text_width(last_row)) + ui.px(6);
  const float most = scale_of(cells, show);
  const auto number = [](float value) { return fmt::format("{:.3g}", value); };
  color_scale(ui, place.at + ImVec2{gutter, 0}, place.size.x - gutter,
              show == CellValue::mean ? "mean of each cell" : "largest magnitude of each cell",
              number(show == CellValue::mean && most > 0 ? -most : 0), number(most), [&](float share) {
                return color_of(ui, show == CellValue::mean ? (2 * share - 1) * most : share * most, most);
              });
  place = {place.at + ImVec2{gutter, line}, place.size - ImVec2{gutter, 2 * line}};
  axis_beside(ui, place.at, place.size.y, format_grouped(range.row), last_row, "row");
  axis_below(ui, place.at + ImVec2{0, place.size.y + ui.px(2)}, place.size.x, format_grouped(range.column),
             format_grouped(range.column + range.columns - 1), "column");
  return place;
}

}  // namespace

void draw_values_map(ValuesView& values, const Ui& ui, ImVec2 size, CellValue show) {
  const ValueCells* const cells = values.cells();
  Place inner = {ImGui::GetCursorScreenPos(), size};
  if (cells != nullptr && !cells->mean.empty())
    inner = draw_cells_frame(*cells, values.range(), ui, show, inner);
  const ImVec2 at = inner.at;
  size = inner.size;
  ImGui::SetCursorScreenPos(at);
  plot_area("values", size);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, at + size, ui.theme->raised);
  if (cells == nullptr || cells->mean.empty()) return;
  const CellRange& range = values.range();
  const float most = scale_of(*cells, show);
  const auto& shown_cells = show == CellValue::mean ? cells->mean : cells->largest;
  // cells of the whole under a part that is still being read
  const auto place = [](std::uint64_t first, std::uint64_t count, std::size_t cell, std::size_t parts,
                        std::uint64_t from, std::uint64_t shown_count) {
    const double value = static_cast<double>(first) +
                         static_cast<double>(count) * static_cast<double>(cell) / static_cast<double>(parts);
    return (value - static_cast<double>(from)) / static_cast<double>(shown_count);
  };
  ImGui::PushClipRect(at, at + size, true);
  const CellRange& of = cells->range;
  for (std::size_t y = 0; y < cells->height; ++y) {
    const double y0 = place(of.row, of.rows, y, cells->height, range.row, range.rows);
    const double y1 = place(of.row, of.rows, y + 1, cells->height, range.row, range.rows);
    if (y1 <= 0 || y0 >= 1) continue;
    for (std::size_t x = 0; x < cells->width; ++x) {
      const double x0 = place(of.column, of.columns, x, cells->width, range.column, range.columns);
      const double x1 = place(of.column, of.columns, x + 1, cells->width, range.column, range.columns);
      if (x1 <= 0 || x0 >= 1) continue;
      const auto pixel = [](float start, float length, double share) {
        return std::round(start + length * static_cast<float>(share));
      };
      draw->AddRectFilled({pixel(at.x, size.x, x0), pixel(at.y, size.y, y0)},
                          {pixel(at.x, size.x, x1), pixel(at.y, size.y, y1)},
                          color_of(ui, shown_cells[y * cells->width + x], most));
    }
  }
  ImGui::PopClipRect();
  if (!ImGui::IsItemHovered() || !values.shown()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const double x = std::clamp(static_cast<double>((mouse.x - at.x) / size.x), 0.0, 0.999999);
  const double y = std::clamp(static_cast<double>((mouse.y - at.y) / size.y), 0.0, 0.999999);
  const auto row = range.row + static_cast<std::uint64_t>(y * static_cast<double>(range.rows));
  const auto column = range.column + static_cast<std::uint64_t>(x * static_cast<double>(range.columns));
  hover_card(ui, [&] {
    text(fmt::format("row {}, column {}", format_grouped(row), format_grouped(column)));
    if (row < of.row || row - of.row >= of.rows || column < of.column || column - of.column >= of.columns)
      return;
    const auto cell_of = [](std::uint64_t at_value, std::uint64_t first, std::uint64_t count,
                            std::size_t parts) {
      return std::min(parts - 1,
                      static_cast<std::size_t>(static_cast<double>(at_value - first) /
                                               static_cast<double>(count) * static_cast<double>(parts)));
    };
    const std::size_t cell = cell_of(row, of.row, of.rows, cells->height) * cells->width +
                             cell_of(column, of.column, of.columns, cells->width);
    muted(ui, fmt::format("mean {:.6g}, largest magnitude {:.6g}", cells->mean[cell], cells->largest[cell]));
    muted(ui, "The wheel zooms, a double click shows everything.");
  });
  const ValuePicture& picture = *values.picture.value();
  const CellRange& whole = picture.cells.range;
  CellRange next = range;
  if (const float wheel = ImGui::GetIO().MouseWheel; std::abs(wheel) > 0) {
    zoom_side(next.row, next.rows, whole.rows, y, wheel > 0);
    zoom_side(next.column, next.columns, whole.columns, x, wheel > 0);
  }
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) next = whole;
  values.zoom(next);
}

void draw_scatter(const ValueComparison& comparison, const Ui& ui, float room, float height) {
  const FontScope font(ui.fonts.small);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const std::string low = fmt::format("{:.3g}", comparison.low),
                    high = fmt::format("{:.3g}", comparison.high);
  const float line = ImGui::GetFontSize() + ui.px(4);
  const float gutter = std::max({text_width("this"), text_width(low), text_width(high)}) + ui.px(6);
  const float length = std::max(ui.px(50), std::min(room - gutter, height - 2 * line));
  const ImVec2 at = start + ImVec2{gutter, line}, size = {length, length};
  ImGui::Dummy({gutter + length, length + 2 * line});
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, at + size, ui.theme->raised);
  if (comparison.scatter.empty()) return;
  const std::uint64_t pairs = *std::ranges::max_element(comparison.scatter);
  color_scale(ui, {at.x, start.y}, size.x, "pairs", "1", format_grouped(pairs),
              [&](float share) { return ui.theme->ramp(static_cast<double>(share)); });
  axis_beside(ui, at, size.y, high, low, "this");
  axis_below(ui, {at.x, at.y + size.y + ui.px(2)}, size.x, low, high, "kept");
  const double most = std::log1p(static_cast<double>(pairs));
  const auto side = static_cast<float>(comparison.side);
  for (std::size_t i = 0; i < comparison.scatter.size(); ++i) {
    if (comparison.scatter[i] == 0) continue;
    const auto x = static_cast<float>(i % comparison.side);
    const auto y = side - 1 - static_cast<float>(i / comparison.side);  // low at the bottom
    const double share = std::log1p(static_cast<double>(comparison.scatter[i])) / std::max(most, 1e-9);
    draw->AddRectFilled({at.x + size.x * x / side, at.y + size.y * y / side},
                        {at.x + size.x * (x + 1) / side, at.y + size.y * (y + 1) / side},
                        ui.theme->ramp(share));
  }
  draw->AddLine({at.x, at.y + size.y}, {at.x + size.x, at.y}, with_alpha(ui.theme->text, 0.4f), ui.px(1));
}

}  // namespace loadline::gui
