// Cells are coloured on one scale around zero: negative values in the device's colour, positive ones in the
// host's, by magnitude.
#include "app/gui/panels/values_map.h"

#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

void draw_values_map(ValuesView& values, const Ui& ui, ImVec2 size, CellValue show) {
  const ValueCells* const cells = values.cells();
  const ImVec2 at = ImGui::GetCursorScreenPos();
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

void draw_scatter(const ValueComparison& comparison, const Ui& ui, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy(size);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, at + size, ui.theme->raised);
  if (comparison.scatter.empty()) return;
  const double most = std::log1p(static_cast<double>(*std::ranges::max_element(comparison.scatter)));
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
