// Paints plots in painter's order; colors by role, dtype, layer or shard.
#include "app/gui/parts/plot.h"

#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <imgui.h>

namespace loadline::gui {

// --- Zooming and panning with the mouse, for all plots.

namespace {

void pull(PlotRange& range, float delta, float width) {
  if (!(width > 0)) return;
  const double shown = range.to - range.from;
  const double moved = static_cast<double>(delta / width) * shown;
  range.from = std::clamp(range.from - moved, 0.0, 1.0 - shown);
  range.to = range.from + shown;
}

}  // namespace

void zoom_with_mouse(PlotRange& range, double share, float width) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemHovered() && std::abs(io.MouseWheel) > 0)
    range = zoomed(range, share, static_cast<double>(io.MouseWheel));
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right)) pull(range, io.MouseDelta.x, width);
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) range = {};
}

void zoom_with_mouse(PlotRange& across, PlotRange& up, double share_x, double share_y, float width,
                     float height) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemHovered() && std::abs(io.MouseWheel) > 0) {
    if (!io.KeyCtrl) across = zoomed(across, share_x, static_cast<double>(io.MouseWheel));
    if (!io.KeyShift) up = zoomed(up, share_y, static_cast<double>(io.MouseWheel));
  }
  if (ImGui::IsMouseDragging(ImGuiMouseButton_Right)) {
    pull(across, io.MouseDelta.x, width);
    pull(up, -io.MouseDelta.y, height);
  }
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) across = up = {};
}

// --- Painter's order: levels are drawn from the top of a stack down, each over the one before.

std::string tick_label(std::uint64_t bytes) {
  if (bytes == 0) return "0";
  std::string label = format_bytes(bytes);
  if (const std::size_t zeros = label.find(".00"); zeros != std::string::npos) label.erase(zeros, 3);
  return label;
}

PlotArea inside_axes(const Ui& ui, ImVec2 low, ImVec2 high, float axis_width) {
  const ImVec2 corner = {std::round(low.x + ui.px(axis_width)), std::round(low.y + ui.px(8))};
  return {corner,
          {std::max(std::round(high.x - ui.px(6)), corner.x + 1),
           std::max(std::round(high.y - ui.px(kPlotAxisHeight)), corner.y + 1)}};
}

float pixel_of_share(const PlotArea& area, const PlotRange& range, double share) {
  return area.low.x + static_cast<float>((share - range.from) / (range.to - range.from)) * area.width();
}

double share_at_pixel(const PlotArea& area, const PlotRange& range, float pixel) {
  const auto seen = static_cast<double>((pixel - area.low.x) / area.width());
  return range.from + seen * (range.to - range.from);
}

float plot_y(const PlotArea& area, double most, double bytes) {
  const double share = most > 0 ? std::min(bytes / most, 1.0) : 0;
  return std::round(area.high.y - static_cast<float>(share) * area.height());
}

void paint_byte_axis(const Ui& ui, const PlotArea& area, double most) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const FontScope font(ui.fonts.small);
  const auto wanted = static_cast<std::size_t>(std::clamp(area.height() / ui.px(26), 2.0f, 10.0f));
  for (const double tick : view::byte_ticks(most, wanted)) {
    if (tick > most) continue;
    const float y = plot_y(area, most, tick);
    draw->AddLine({area.low.x, y}, {area.high.x, y}, ui.theme->grid, std::max(1.0f, ui.px(1)));
    put_text_before(area.low.x - ui.px(8), y - ImGui::GetFontSize() / 2, ui.theme->muted,
                    tick_label(static_cast<std::uint64_t>(tick)));
  }
}

void paint_level(const Ui& ui, const PlotArea& area, double most, std::span<const view::CurveColumn> columns,
                 ImU32 color) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float base = area.high.y;
  const float width = area.width() / static_cast<float>(columns.size());
  const ImU32 body = mix(ui.theme->panel, color, 0.80f);
  const ImU32 teeth = with_alpha(color, 0.5f);
  // on a light ground pale colors need a darker ink for lines
  const ImU32 edge = ui.theme->dark ? color : mix(color, ui.theme->text, 0.35f);
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t end = i + 1;
    while (end < columns.size() && columns[end] == columns[i]) ++end;
    const float x0 = area.low.x + static_cast<float>(i) * width;
    const float x1 = area.low.x + static_cast<float>(end) * width;
    const float low = plot_y(area, most, columns[i].low);
    const float high = plot_y(area, most, columns[i].high);
    if (low < base) draw->AddRectFilled({x0, low}, {x1, base}, body);
    if (high < low) draw->AddRectFilled({x0, high}, {x1, low}, teeth);
    if (high < base) draw->AddRectFilled({x0, high}, {x1, high + std::max(1.0f, ui.px(1.5f))}, edge);
    i = end;
  }
}

void paint_dashed(ImVec2 from, ImVec2 to, ImU32 color, float dash, float gap, float thickness) {
  const ImVec2 step = from.x < to.x ? ImVec2{dash + gap, 0} : ImVec2{0, dash + gap};
  const ImVec2 length = from.x < to.x ? ImVec2{dash, 0} : ImVec2{0, dash};
  for (ImVec2 at = from; at.x < to.x || at.y < to.y; at = at + step)
    ImGui::GetWindowDrawList()->AddLine(
        at, {std::min(at.x + length.x, to.x), std::min(at.y + length.y, to.y)}, color, thickness);
}

void paint_mark(const Ui& ui, const PlotArea& area, float x, ImU32 color, std::optional<float> dot) {
  paint_dashed({x, area.low.y}, {x, area.high.y}, color, ui.px(4), ui.px(4), std::max(1.0f, ui.px(1.25f)));
  if (!dot) return;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddCircleFilled({x, *dot}, ui.px(4.5f), ui.theme->panel);
  draw->AddCircleFilled({x, *dot}, ui.px(3.2f), color);
}

std::optional<PlotArea> paint_flag(const Ui& ui, const PlotArea& area, float x, ImU32 color,
                                   std::string_view label, std::vector<PlotArea>& taken) {
  const FontScope font(ui.fonts.small);
  const ImVec2 size = ImGui::CalcTextSize(label.data(), label.data() + label.size());
  const ImVec2 pad = {ui.px(7), ui.px(3)};
  const float width = size.x + 2 * pad.x, height = size.y + 2 * pad.y;
  const float left =
      x + ui.px(8) + width < area.high.x ? x + ui.px(8) : std::max(area.low.x, x - ui.px(8) - width);
  PlotArea flag = {{left, area.low.y + ui.px(2)}, {left + width, area.low.y + ui.px(2) + height}};
  while (std::ranges::any_of(taken, [&](const PlotArea& other) { return flag.overlaps(other); })) {
    flag.low.y += height + ui.px(2);
    flag.high.y += height + ui.px(2);
    if (flag.high.y > area.high.y) return std::nullopt;
  }
  taken.push_back(flag);
  ImGui::GetWindowDrawList()->AddRectFilled(flag.low, flag.high, color, ui.px(5));
  put_text(flag.low + pad, color == ui.theme->raised ? ui.theme->text : text_on(color), label);
  return flag;
}

void paint_curve_name(const Ui& ui, const PlotArea& area, ImVec2 at, ImU32 color, std::string_view name,
                      std::span<const PlotArea> lines, std::vector<PlotArea>& taken) {
  const FontScope font(ui.fonts.small);
  const float bar = ui.px(3), pad = ui.px(5), gap = ui.px(8);
  const ImVec2 size = {text_width(name) + bar + 2 * pad, ImGui::GetFontSize() + ui.px(2)};
  const bool right = at.x + gap + size.x < area.high.x;
  const float left = right ? at.x + gap : std::max(area.low.x, at.x - gap - size.x);
  const float line = size.y + ui.px(2);
  const auto none_over = [](const PlotArea& place, std::span<const PlotArea> others) {
    return std::ranges::none_of(others, [&](const PlotArea& other) { return place.overlaps(other); });
  };
  const auto paint_at = [&](const PlotArea& place) {
    taken.push_back(place);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const float middle = place.low.y + size.y / 2;
    if (std::abs(middle - at.y) > line)
      draw->AddLine(at, {right ? left : place.high.x, middle}, with_alpha(color, 0.7f), ui.px(1));
    draw->AddRectFilled(place.low, place.high, ui.theme->raised, ui.px(3));
    draw->AddRectFilled(place.low, {place.low.x + bar, place.high.y}, color, ui.px(2));
    put_text(place.low + ImVec2{bar + pad, ui.px(1)}, ui.theme->text, name);
  };
  constexpr int kNear = 4;
  const int most = static_cast<int>(area.height() / line);
  for (const bool beside_lines : {true, false})
    for (int off = 0; off <= (beside_lines ? std::min(kNear, most) : most); ++off)
      for (const float way : {-1.0f, 1.0f}) {
        const float top = at.y - size.y / 2 + way * static_cast<float>(off) * line;
        const PlotArea place = {{left, top}, {left + size.x, top + size.y}};
        if (top >= area.low.y && place.high.y <= area.high.y && none_over(place, taken) &&
            (!beside_lines || none_over(place, lines)))
          return paint_at(place);
      }
}

void paint_tick(const Ui& ui, const PlotArea& area, float x, std::string_view label) {
  const FontScope font(ui.fonts.small);
  const float width = text_width(label);
  ImGui::GetWindowDrawList()->AddLine({x, area.high.y}, {x, area.high.y + ui.px(4)}, ui.theme->muted,
                                      std::max(1.0f, ui.px(1)));
  const float left = std::clamp(x - width / 2, area.low.x, std::max(area.low.x, area.high.x - width));
  put_text({left, area.high.y + ui.px(6)}, ui.theme->muted, label);
}

float list_width(const Ui& ui, ImVec2 room) {
  return room.x > ui.px(640) && room.y > ui.px(84) ? std::min(ui.px(320), room.x * 0.34f) : 0;
}

std::size_t tick_room(const Ui& ui, const PlotArea& area) {
  return static_cast<std::size_t>(std::max(1.0f, area.width() / ui.px(110)));
}

// --- Colors by role, dtype, layer or shard.

namespace {

Paint role_paint(const Theme& theme, graph::Role role) {
  return {static_cast<int>(role), theme.roles[static_cast<std::size_t>(role)]};
}

Paint layer_paint(const Model& model, const Theme& theme, int layer) {
  return {layer, theme.ramp(static_cast<double>(layer) / std::max(1, model.layer_count - 1))};
}

// Calls `take(tensor, bytes)` for all tensors of a module.
template <typename Take>
void for_tensors_of(const Model& model, graph::NodeId module, Take take) {
  for (std::vector<graph::NodeId> below = {module}; !below.empty();) {
    const graph::ModuleNode& node = model.tree.node(below.back());
    below.pop_back();
    below.insert(below.end(), node.children.begin(), node.children.end());
    if (node.tensor) take(*node.tensor, graph::tensor_bytes(*model.graph, model.tensor(*node.tensor)));
  }
}

// Of what holds at least half of the module's bytes.
Paint most_common_paint(const Model& model, const Theme& theme, ColorBy mode, graph::NodeId module) {
  std::map<int, std::pair<std::uint64_t, Paint>> found;
  std::uint64_t all = 0;
  for_tensors_of(model, module, [&](graph::TensorId tensor, std::uint64_t bytes) {
    const Paint paint = paint_of(model, theme, mode, tensor);
    auto& [sum, first] = found[paint.category];
    sum += bytes, all += bytes, first = paint;
  });
  for (const auto& [category, part] : found)
    if (part.first >= all - part.first) return part.second;
  return {-1, theme.neutral};
}

double place_of_file(const Model& model, std::size_t file) {
  return static_cast<double>(file) /
         static_cast<double>(std::max<std::size_t>(2, model.graph->files.size()) - 1);
}

// The middle of the files that hold a module, along the ramp.
Paint middle_file_paint(const Model& model, const Theme& theme, graph::NodeId module) {
  double sum = 0, all = 0;
  for_tensors_of(model, module, [&](graph::TensorId tensor, std::uint64_t bytes) {
    const graph::FileId file = model.graph->storage(model.tensor(tensor).storage).file;
    if (file == graph::kNoFile) return;
    sum += place_of_file(model, graph::index(file)) * static_cast<double>(bytes);
    all += static_cast<double>(bytes);
  });
  return {-1, all > 0 ? theme.ramp(sum / all) : theme.neutral};
}

}  // namespace

bool has_file_ramp(const Model& model, const Theme& theme) {
  return model.graph->files.size() > theme.categories.size();
}

ImU32 file_color(const Model& model, const Theme& theme, std::size_t file) {
  if (!has_file_ramp(model, theme)) return theme.category(file);
  return theme.ramp(place_of_file(model, file));
}

Paint paint_of(const Model& model, const Theme& theme, ColorBy mode, graph::TensorId id) {
  const std::size_t i = graph::index(id);
  switch (mode) {
    case ColorBy::role:
    case ColorBy::diff:
      return role_paint(theme, model.roles[i]);
    case ColorBy::dtype: {
      const graph::DType dtype = model.tensor(id).dtype;
      const auto share = std::ranges::find(model.dtypes, dtype, &DTypeShare::dtype);
      return {static_cast<int>(share - model.dtypes.begin()), theme.dtype(dtype)};
    }
    case ColorBy::layer:
      return model.layers[i] < 0 ? Paint{-1, theme.neutral} : layer_paint(model, theme, model.layers[i]);
    case ColorBy::shard: {
      const graph::FileId file = model.graph->storage(model.tensor(id).storage).file;
      if (file == graph::kNoFile) return {-1, theme.neutral};
      return {static_cast<int>(graph::index(file)), file_color(model, theme, graph::index(file))};
    }
  }
  return {};
}

ImU32 diff_color(const Theme& theme, DiffKind kind) {
  switch (kind) {
    case DiffKind::only_here:
    case DiffKind::only_there:
      return theme.category(5);
    case DiffKind::shape:
      return theme.category(4);
    case DiffKind::type:
      return theme.category(0);
    case DiffKind::values:
      return theme.category(6);
    case DiffKind::refused:
      return theme.category(1);
    case DiffKind::equal:
      break;
  }
  return mix(theme.panel, theme.neutral, 0.45f);
}

Paint paint_of_difference(const ModelDiff& diff, const Theme& theme, graph::TensorId id) {
  const DiffKind kind = diff.of_tensor[graph::index(id)];
  return {static_cast<int>(kind), diff_color(theme, kind)};
}

Paint paint_of_difference(const ModelDiff& diff, const Theme& theme, graph::NodeId module) {
  return {-1, diff.touched[graph::index(module)] ? theme.neutral : diff_color(theme, DiffKind::equal)};
}

Paint paint_of_module(const Model& model, const Theme& theme, ColorBy mode, graph::NodeId node) {
  const std::string path = graph::module_path(model.tree, node);
  if (mode == ColorBy::role || mode == ColorBy::diff) {
    // of what is mixed, as the module is called
    const graph::Role own = model.module_roles[graph::index(node)];
    const graph::Role role = own == graph::Role::other ? graph::tensor_role(path) : own;
    if (role != graph::Role::other) return role_paint(theme, role);
  }
  if (mode == ColorBy::layer) {
    const auto layer = graph::layer_number(path);
    if (layer && *layer < static_cast<std::uint64_t>(model.layer_count))
      return layer_paint(model, theme, static_cast<int>(*layer));
  }
  if (mode == ColorBy::shard && has_file_ramp(model, theme)) return middle_file_paint(model, theme, node);
  if (mode == ColorBy::shard || mode == ColorBy::dtype) return most_common_paint(model, theme, mode, node);
  return {-1, theme.neutral};
}

void hatch_over(const Ui& ui, ImVec2 low, ImVec2 high) {
  const float apart = ui.px(7);
  for (float sum = std::ceil((low.x + low.y) / apart) * apart; sum < high.x + high.y; sum += apart) {
    const float left = std::max(low.x, sum - high.y), right = std::min(high.x, sum - low.y);
    ImGui::GetWindowDrawList()->AddLine({left, sum - left}, {right, sum - right}, ui.theme->bad,
                                        std::max(1.0f, ui.px(1.2f)));
  }
}

void paint_space(const Ui& ui, plan::Space space, ImVec2 low, ImVec2 high) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(low, high, ui.theme->spaces[plan::index(space)]);
  const float thick = std::max(1.0f, std::round(ui.scale)), period = ui.px(4), broad = 2 * thick;
  const ImU32 ink = with_alpha(ui.theme->sea, 0.28f);
  // counted from the window's edge: lines of neighbors meet
  if (space == plan::Space::host)
    for (float y = std::ceil(low.y / period) * period; y + thick <= high.y; y += period)
      draw->AddRectFilled({low.x, std::round(y)}, {high.x, std::round(y) + thick}, ink);
  if (space == plan::Space::page_cache)
    for (float x = std::ceil(low.x / (2 * period)) * 2 * period; x + broad <= high.x; x += 2 * period)
      draw->AddRectFilled({std::round(x), low.y}, {std::round(x) + broad, high.y}, ink);
}

}  // namespace loadline::gui
