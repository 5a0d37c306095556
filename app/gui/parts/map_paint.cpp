// Colours by role, dtype, layer or shard.
#include "app/gui/parts/map_paint.h"

#include <algorithm>
#include <cmath>

namespace loadline::gui {

namespace {

Paint role_paint(const Theme& theme, Role role) {
  return {static_cast<int>(role), theme.roles[static_cast<std::size_t>(role)]};
}

Paint layer_paint(const Model& model, const Theme& theme, int layer) {
  return {layer, theme.ramp(static_cast<double>(layer) / std::max(1, model.layer_count - 1))};
}

}  // namespace

Paint paint_of(const Model& model, const Theme& theme, ColorBy mode, TensorId id) {
  const std::size_t i = index(id);
  switch (mode) {
    case ColorBy::role:
    case ColorBy::diff:
      return role_paint(theme, model.roles[i]);
    case ColorBy::dtype: {
      const DType dtype = model.tensor(id).dtype;
      const auto share = std::ranges::find(model.dtypes, dtype, &DTypeShare::dtype);
      return {static_cast<int>(share - model.dtypes.begin()), theme.dtype(dtype)};
    }
    case ColorBy::layer:
      return model.layers[i] < 0 ? Paint{-1, theme.neutral} : layer_paint(model, theme, model.layers[i]);
    case ColorBy::shard: {
      const FileId file = model.graph->storage(model.tensor(id).storage).file;
      if (file == kNoFile) return {-1, theme.neutral};
      return {static_cast<int>(index(file)), theme.category(index(file))};
    }
  }
  return {};
}

ImU32 diff_color(const Theme& theme, DiffKind kind) {
  const auto role = [&](Role like) { return theme.roles[static_cast<std::size_t>(like)]; };
  switch (kind) {
    case DiffKind::only_here:
    case DiffKind::only_there:
      return role(Role::embedding);
    case DiffKind::shape:
      return role(Role::head);
    case DiffKind::type:
      return role(Role::attention);
    case DiffKind::values:
      return role(Role::mlp);
    case DiffKind::refused:
      return role(Role::norm);
    case DiffKind::equal:
      break;
  }
  return mix(theme.panel, theme.neutral, 0.45f);
}

Paint paint_of_difference(const ModelDiff& diff, const Theme& theme, TensorId id) {
  const DiffKind kind = diff.of_tensor[index(id)];
  return {static_cast<int>(kind), diff_color(theme, kind)};
}

Paint paint_of_difference(const ModelDiff& diff, const Theme& theme, NodeId module) {
  return {-1, diff.touched[index(module)] ? theme.neutral : diff_color(theme, DiffKind::equal)};
}

Paint paint_of_module(const Model& model, const Theme& theme, ColorBy mode, NodeId node) {
  const std::string path = module_path(model.tree, node);
  if (mode == ColorBy::role || mode == ColorBy::diff) {
    const Role role = tensor_role(path);
    if (role != Role::other) return role_paint(theme, role);
  }
  if (mode == ColorBy::layer) {
    const auto layer = layer_number(path);
    if (layer && *layer < static_cast<std::uint64_t>(model.layer_count))
      return layer_paint(model, theme, static_cast<int>(*layer));
  }
  return {-1, theme.neutral};
}

void paint_space(const Ui& ui, Space space, ImVec2 low, ImVec2 high) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(low, high, ui.theme->spaces[index(space)]);
  const float thick = std::max(1.0f, std::round(ui.scale)), period = ui.px(4);
  const ImU32 ink = with_alpha(ui.theme->sea, 0.28f);
  // counted from the window's edge: lines of neighbours meet
  if (space == Space::host)
    for (float y = std::ceil(low.y / period) * period; y + thick <= high.y; y += period)
      draw->AddRectFilled({low.x, std::round(y)}, {high.x, std::round(y) + thick}, ink);
  if (space == Space::page_cache)
    for (float x = std::ceil(low.x / period) * period; x + thick <= high.x; x += period)
      draw->AddRectFilled({std::round(x), low.y}, {std::round(x) + thick, high.y}, ink);
}

}  // namespace loadline::gui
