// Tab Values: figures, histogram and heat map of the selected tensor.

#include "app/gui/panels/panels.h"
#include "app/gui/parts/theme.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "app/gui/state/model/model.h"
#include "core/base/text.h"
#include "core/inspect/tensor_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/core.h>

namespace loadline::gui {

// --- The heat map of a tensor's values: cells, their scale, and zooming with the mouse.

namespace {

// What a cell stands for.
enum class CellValue : std::uint8_t { mean, largest };

float scale_of(const inspect::ValueCells& cells, CellValue show) {
  float most = 0;
  for (const float value : show == CellValue::mean ? cells.mean : cells.largest)
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  return most;
}

ImU32 color_of(const Ui& ui, float value, float most) {
  if (!std::isfinite(value)) return ui.theme->bad;
  const float share = most > 0 ? std::sqrt(std::min(std::abs(value) / most, 1.0f)) : 0;
  return mix(ui.theme->raised, ui.theme->category(value < 0 ? 0 : 4), share);
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

// What colors stand for: words, then the ends of the scale around it, at the right.
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
Place draw_cells_frame(const inspect::ValueCells& cells, const inspect::CellRange& range, const Ui& ui,
                       CellValue show, Place place) {
  const FontScope font(ui.fonts.small);
  const float line = ImGui::GetFontSize() + ui.px(4);
  if (place.size.y < 6 * line) return place;
  const std::string last_row = format_grouped(range.row + range.rows - 1);
  const float gutter = std::max(text_width("row"), text_width(last_row)) + ui.px(6);
  const float most = scale_of(cells, show);
  const auto number = [](float value) { return fmt::format("{:.3g}", value); };
  color_scale(
      ui, place.at + ImVec2{gutter, 0}, place.size.x - gutter,
      show == CellValue::mean ? "mean of each cell, blue below zero" : "largest magnitude of each cell",
      number(show == CellValue::mean && most > 0 ? -most : 0), number(most), [&](float share) {
        return color_of(ui, show == CellValue::mean ? (2 * share - 1) * most : share * most, most);
      });
  place = {place.at + ImVec2{gutter, line}, place.size - ImVec2{gutter, 2 * line}};
  axis_beside(ui, place.at, place.size.y, format_grouped(range.row), last_row, "row");
  axis_below(ui, place.at + ImVec2{0, place.size.y + ui.px(2)}, place.size.x, format_grouped(range.column),
             format_grouped(range.column + range.columns - 1), "column");
  return place;
}

// Fills a place with the cells that lie in the range: those of the whole under a part that is still being
// read.
void draw_cells(const inspect::ValueCells& cells, const inspect::CellRange& range, const Ui& ui,
                CellValue show, Place place) {
  const float most = scale_of(cells, show);
  const auto& values = show == CellValue::mean ? cells.mean : cells.largest;
  const auto edge = [](std::uint64_t first, std::uint64_t count, std::size_t cell, std::size_t parts,
                       std::uint64_t from, std::uint64_t shown_count) {
    const double value = static_cast<double>(first) +
                         static_cast<double>(count) * static_cast<double>(cell) / static_cast<double>(parts);
    return (value - static_cast<double>(from)) / static_cast<double>(shown_count);
  };
  const auto pixel = [](float start, float length, double share) {
    return std::round(start + length * static_cast<float>(share));
  };
  const ImVec2 at = place.at, size = place.size;
  ImGui::PushClipRect(at, at + size, true);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const inspect::CellRange& of = cells.range;
  for (std::size_t y = 0; y < cells.height; ++y) {
    const double y0 = edge(of.row, of.rows, y, cells.height, range.row, range.rows);
    const double y1 = edge(of.row, of.rows, y + 1, cells.height, range.row, range.rows);
    if (y1 <= 0 || y0 >= 1) continue;
    for (std::size_t x = 0; x < cells.width; ++x) {
      const double x0 = edge(of.column, of.columns, x, cells.width, range.column, range.columns);
      const double x1 = edge(of.column, of.columns, x + 1, cells.width, range.column, range.columns);
      if (x1 <= 0 || x0 >= 1) continue;
      draw->AddRectFilled({pixel(at.x, size.x, x0), pixel(at.y, size.y, y0)},
                          {pixel(at.x, size.x, x1), pixel(at.y, size.y, y1)},
                          color_of(ui, values[y * cells.width + x], most));
    }
  }
  ImGui::PopClipRect();
}

// What can be done with one place of the matrix: to look closer, at it alone, or to take its figures along.
AskedMenu menu_of_cell(const ValuesView& values, std::uint64_t row, std::uint64_t column,
                       const std::string& figures) {
  const inspect::CellRange& range = values.range();
  const inspect::CellRange& whole = values.picture.value()->cells.range;
  AskedMenu menu{.title = fmt::format("Row {}, column {}", format_grouped(row), format_grouped(column))};
  const auto zoom = [&](std::string title, const inspect::CellRange& to) {
    if (to == range) return;
    menu.offers.push_back(
        {std::move(title),
         {{"values-zoom", fmt::format("{} {} {} {}", to.row, to.rows, to.column, to.columns)}}});
  };
  constexpr std::uint64_t kClose = 32;
  const auto around = [&](std::uint64_t at, std::uint64_t all) {
    const std::uint64_t count = std::min(kClose, all);
    return std::pair(std::min(at - std::min(at, count / 2), all - count), count);
  };
  const auto [first_row, rows] = around(row, whole.rows);
  const auto [first_column, columns] = around(column, whole.columns);
  zoom("Look closely around it", {first_row, rows, first_column, columns});
  zoom("Show this row alone", {row, 1, 0, whole.columns});
  zoom("Show this column alone", {0, whole.rows, column, 1});
  zoom("Show all rows and columns", whole);
  menu.offers.push_back({"Copy its place", {{"copy-words", fmt::format("[{}, {}]", row, column)}}, true});
  if (!figures.empty()) menu.offers.push_back({"Copy its figures", {{"copy-words", figures}}});
  return menu;
}

// Mean and largest magnitude of the cell that holds a place of the matrix; empty where it is not read.
std::string figures_at(const inspect::ValueCells& cells, std::uint64_t row, std::uint64_t column) {
  const inspect::CellRange& of = cells.range;
  if (row < of.row || row - of.row >= of.rows || column < of.column || column - of.column >= of.columns)
    return "";
  const auto cell_of = [](std::uint64_t at, std::uint64_t first, std::uint64_t count, std::size_t parts) {
    return std::min(parts - 1,
                    static_cast<std::size_t>(static_cast<double>(at - first) / static_cast<double>(count) *
                                             static_cast<double>(parts)));
  };
  const std::size_t cell = cell_of(row, of.row, of.rows, cells.height) * cells.width +
                           cell_of(column, of.column, of.columns, cells.width);
  return fmt::format("mean {:.6g}, largest magnitude {:.6g}", cells.mean[cell], cells.largest[cell]);
}

// Draws the cells of the view's range, with axes and a scale, into `size` pixels at the cursor. The wheel
// zooms at the place under the mouse, a double click shows everything.
void draw_values_map(Document& document, const Ui& ui, ImVec2 size, CellValue show) {
  ValuesView& values = document.values;
  const inspect::ValueCells* const cells = values.cells();
  Place inner = {ImGui::GetCursorScreenPos(), size};
  if (cells != nullptr && !cells->mean.empty())
    inner = draw_cells_frame(*cells, values.range(), ui, show, inner);
  const ImVec2 at = inner.at;
  size = inner.size;
  ImGui::SetCursorScreenPos(at);
  plot_area("values", size);
  ImGui::GetWindowDrawList()->AddRectFilled(at, at + size, ui.theme->raised);
  if (cells == nullptr || cells->mean.empty()) return;
  const inspect::CellRange& range = values.range();
  draw_cells(*cells, range, ui, show, inner);
  if (!ImGui::IsItemHovered() || !values.shown()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const double x = std::clamp(static_cast<double>((mouse.x - at.x) / size.x), 0.0, 0.999999);
  const double y = std::clamp(static_cast<double>((mouse.y - at.y) / size.y), 0.0, 0.999999);
  const auto row = range.row + static_cast<std::uint64_t>(y * static_cast<double>(range.rows));
  const auto column = range.column + static_cast<std::uint64_t>(x * static_cast<double>(range.columns));
  const std::string figures = figures_at(*cells, row, column);
  if (is_right_clicked()) document.asked_menu = menu_of_cell(values, row, column, figures);
  hover_card(ui, [&] {
    text(fmt::format("row {}, column {}", format_grouped(row), format_grouped(column)));
    if (!figures.empty()) muted(ui, figures);
    muted(ui, "The wheel zooms, a double click shows everything.");
  });
  const inspect::ValuePicture& picture = *values.picture.value();
  const inspect::CellRange& whole = picture.cells.range;
  inspect::CellRange next = range;
  if (const float wheel = ImGui::GetIO().MouseWheel; std::abs(wheel) > 0) {
    zoom_side(next.row, next.rows, whole.rows, y, wheel > 0);
    zoom_side(next.column, next.columns, whole.columns, x, wheel > 0);
  }
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) next = whole;
  values.zoom(next);
}

// Draws a square of counts with axes and a scale into the room there is: from low to high in both directions,
// the kept tensor to the right, the other one upwards.
void draw_scatter(const inspect::ValueComparison& comparison, const Ui& ui, float room, float height) {
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

}  // namespace

// --- The values of the selected tensor: figures, histogram, heat map, and a comparison with a kept one.

namespace {

std::string number_text(const std::optional<convert::Number>& number) {
  if (!number) return "none";
  return std::visit([](auto value) { return fmt::format("{:.6g}", static_cast<double>(value)); }, *number);
}

class ValuesPanel final : public Panel {
 public:
  ValuesPanel() : Panel("Shows the numbers of the selected tensor.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_toolbar(Document& document, const Ui& ui, graph::TensorId id);
  void draw_figures(const convert::ValueStats& stats, const Ui& ui) const;
  void draw_histogram(const inspect::ValueHistogram& histogram, const Ui& ui, ImVec2 size) const;
  void draw_comparison(Document& document, const Ui& ui, graph::TensorId id);

  CellValue show_ = CellValue::mean;
  bool logarithmic_ = false;
};

void ValuesPanel::draw_toolbar(Document& document, const Ui& ui, graph::TensorId id) {
  constexpr std::array<std::string_view, 2> kShows = {"Mean", "Largest"};
  show_ = static_cast<CellValue>(segmented(ui, "show", kShows, static_cast<std::size_t>(show_)));
  tooltip(ui, "What a cell of the map shows of its values");
  ImGui::SameLine(0, ui.px(8));
  checkbox(ui, "Logarithmic counts", &logarithmic_);
  ImGui::SameLine(0, ui.px(10));
  const auto kept = document.values.kept();
  if (button(ui, kept == id ? "Pinned" : "Pin to compare", ButtonKind::normal, kept != id))
    document.values.keep(id);
  tooltip(ui, "Compares the tensors selected next with this one");
  if (!kept) return;
  continue_line(ui, 8, ui.px(180));
  control_text("against", ui.theme->muted);
  ImGui::SameLine(0, ui.px(5));
  ImGui::AlignTextToFramePadding();
  name_text(ui, document.model->tensor(*kept).name.view(), ui.px(170), ui.theme->muted);
  ImGui::SameLine(0, ui.px(6));
  if (button(ui, "Unpin", ButtonKind::ghost)) document.values.keep(std::nullopt);
}

void ValuesPanel::draw_figures(const convert::ValueStats& stats, const Ui& ui) const {
  bool first = true;
  const auto put = [&](std::string_view label, const std::string& value) {
    if (!std::exchange(first, false)) continue_line(ui, 22, std::max(text_width(label), text_width(value)));
    fact(ui, label, value, ui.theme->text, ui.fonts.body, 2);
  };
  put("Values", format_grouped(stats.count));
  put("Least", number_text(stats.min));
  put("Largest", number_text(stats.max));
  put("Mean", fmt::format("{:.4g}", stats.mean));
  put("Deviation", fmt::format("{:.4g}", stats.deviation));
  put("Zeros", percent_text(share_of(stats.zeros, stats.count)));
  if (stats.groups > 0) put("2:4 sparse", percent_text(share_of(stats.sparse_groups, stats.groups)));
  if (stats.nans > 0) put("Not a number", format_grouped(stats.nans));
  if (stats.infs() > 0) put("Infinite", format_grouped(stats.infs()));
}

void ValuesPanel::draw_histogram(const inspect::ValueHistogram& histogram, const Ui& ui, ImVec2 size) const {
  ImVec2 at = ImGui::GetCursorScreenPos();
  plot_area("histogram", size);
  if (histogram.counts.empty()) return;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const float axis = ImGui::GetFontSize() + ui.px(4);
  put_text(at, ui.theme->muted, fmt::format("up to {} in a bar", counted(histogram.most(), "value")));
  at.y += axis;
  const float height = size.y - 2 * axis;
  const auto level = [&](std::uint64_t count) {
    return logarithmic_ ? std::log1p(static_cast<double>(count)) : static_cast<double>(count);
  };
  const double most = std::max(level(histogram.most()), 1e-9);
  const auto bins = static_cast<float>(histogram.counts.size());
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    const auto x = static_cast<float>(i);
    const float top = height * static_cast<float>(1 - level(histogram.counts[i]) / most);
    draw->AddRectFilled({std::floor(at.x + size.x * x / bins), at.y + top},
                        {std::floor(at.x + size.x * (x + 1) / bins) - 1, at.y + height}, ui.theme->accent);
  }
  draw->AddLine({at.x, at.y + height}, {at.x + size.x, at.y + height}, ui.theme->muted, ui.px(1));
  put_text({at.x, at.y + height + ui.px(3)}, ui.theme->muted, fmt::format("{:.4g}", histogram.low));
  put_text_before(at.x + size.x, at.y + height + ui.px(3), ui.theme->muted,
                  fmt::format("{:.4g}", histogram.high));
  if (histogram.low < 0 && histogram.high > 0) {
    const auto zero = static_cast<float>(-histogram.low / (histogram.high - histogram.low));
    draw->AddLine({at.x + size.x * zero, at.y}, {at.x + size.x * zero, at.y + height},
                  with_alpha(ui.theme->text, 0.5f), ui.px(1));
    put_text({at.x + size.x * zero - text_width("0") / 2, at.y + height + ui.px(3)}, ui.theme->muted, "0");
  }
  if (!ImGui::IsItemHovered()) return;
  const auto bin = static_cast<std::size_t>(
      std::clamp((ImGui::GetIO().MousePos.x - at.x) / size.x * bins, 0.0f, bins - 1));
  const double width = (histogram.high - histogram.low) / static_cast<double>(histogram.counts.size());
  const double from = histogram.low + width * static_cast<double>(bin);
  hover_card(ui, [&] {
    text(
        fmt::format("{} from {:.4g} to {:.4g}", counted(histogram.counts[bin], "value"), from, from + width));
  });
}

void ValuesPanel::draw_comparison(Document& document, const Ui& ui, graph::TensorId id) {
  ValuesView& values = document.values;
  const graph::Tensor &kept = document.model->tensor(*values.kept()), &now = document.model->tensor(id);
  heading(ui, "Compared with the pinned tensor");
  if (graph::elements(kept) != graph::elements(now))
    return paragraph(
        ui,
        fmt::format("Cannot be compared: this tensor is {}, the pinned one is {}. Both must have "
                    "equally many values.",
                    shape_text(now), shape_text(kept)),
        ui.theme->warning);
  values.compare(id);
  if (values.comparison.busy()) return muted(ui, "Comparing");
  if (values.comparison.error() != nullptr)
    return paragraph(ui, shown(values.comparison.error_text()), ui.theme->bad);
  if (!values.comparison.value()) return;
  const inspect::ValueComparison& found = *values.comparison.value();
  const FontScope font(ui.fonts.small);
  if (kept.shape != now.shape)
    muted(ui, fmt::format("shapes differ, {} and {}: compared in the order of the file", shape_text(now),
                          shape_text(kept)));
  text(fmt::format("{} of {} equal", format_grouped(found.equal), counted(found.count, "value")));
  text(fmt::format("largest difference {:.4g}, mean {:.4g}", found.largest, found.mean));
  text(fmt::format("relative error {:.4g}, cosine {:.6f}", found.relative, found.cosine));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  draw_scatter(found, ui, room.x, room.y - ui.px(6));
}

void ValuesPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const auto selected = document.selected_tensor();
  if (!selected)
    return empty_state(ui, "No tensor is selected", "Select one in the tree, the map or the table.");
  const graph::TensorId id = *selected;
  const graph::Tensor& tensor = document.model->tensor(id);
  if (const std::string misfit = reading_misfit(*document.model); !misfit.empty())
    return empty_state(ui, "The values cannot be read", misfit);
  if (const auto why = inspect::measure_refusal(tensor.dtype))
    return empty_state(ui, "The values cannot be shown", *why);
  ValuesView& values = document.values;
  const std::uint64_t bytes = document.model->bytes[graph::index(id)];
  if (values.shown() != id && bytes > ValuesView::kSmall) {
    heading(ui, shown(tensor.name));
    muted(ui, fmt::format("{} would be read, twice.", format_bytes(bytes)));
    if (button(ui, "Read the values", ButtonKind::primary)) values.read(id);
    return;
  }
  values.read(id);
  if (!values.picture.value()) {
    if (values.picture.error() != nullptr)
      return empty_state(ui, "The values could not be read", values.picture.error_text());
    return empty_state(ui, "Reading the values", shown(tensor.name));
  }
  draw_toolbar(document, ui, id);
  const inspect::ValuePicture& picture = *values.picture.value();
  draw_figures(picture.stats, ui);
  if (picture.cells.mean.empty()) return;
  const bool compares = values.kept() && *values.kept() != id;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = compares ? room.x * 0.6f : room.x;
  {
    const ChildScope child("pictures", {width, room.y});
    const ImVec2 inside = ImGui::GetContentRegionAvail();
    const float low = std::clamp(inside.y * 0.36f, ui.px(70), ui.px(190));
    draw_histogram(picture.histogram, ui, {inside.x, low});
    const float rest = inside.y - low - ImGui::GetStyle().ItemSpacing.y;
    if (rest > ui.px(30)) draw_values_map(document, ui, {inside.x, rest}, show_);
  }
  if (!compares) return;
  ImGui::SameLine(0, ui.px(14));
  const ChildScope child("comparison", {0, room.y});
  draw_comparison(document, ui, id);
}

}  // namespace

std::unique_ptr<Panel> make_values_panel() { return std::make_unique<ValuesPanel>(); }

}  // namespace loadline::gui
