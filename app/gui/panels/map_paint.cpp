// Colours by role, dtype, layer or shard.
#include "app/gui/panels/map_paint.h"

#include <algorithm>

namespace loadline::gui {

Paint paint_of(const Model& model, const Theme& theme, ColorBy mode, TensorId id) {
  const std::size_t i = index(id);
  switch (mode) {
    case ColorBy::role: {
      const auto role = static_cast<std::size_t>(model.roles[i]);
      return {static_cast<int>(role), theme.roles[role]};
    }
    case ColorBy::dtype: {
      const DType dtype = model.tensor(id).dtype;
      const auto share = std::find_if(model.dtypes.begin(), model.dtypes.end(),
                                      [&](const DTypeShare& s) { return s.dtype == dtype; });
      return {static_cast<int>(share - model.dtypes.begin()), theme.dtype(dtype)};
    }
    case ColorBy::layer: {
      if (model.layers[i] < 0) return {-1, theme.neutral};
      const int last = std::max(1, model.layer_count - 1);
      return {model.layers[i], theme.ramp(static_cast<double>(model.layers[i]) / last)};
    }
    case ColorBy::shard: {
      const FileId file = model.graph->storage(model.tensor(id).storage).file;
      if (file == kNoFile) return {-1, theme.neutral};
      return {static_cast<int>(index(file)), theme.category(index(file))};
    }
  }
  return {};
}

Paint paint_of_module(const Model& model, const Theme& theme, ColorBy mode, NodeId node) {
  const std::string path = module_path(model.tree, node);
  if (mode == ColorBy::role) {
    const Role role = tensor_role(path);
    if (role != Role::other) return {static_cast<int>(role), theme.roles[static_cast<std::size_t>(role)]};
  }
  if (mode == ColorBy::layer) {
    const auto layer = layer_number(path);
    if (layer && *layer < static_cast<std::uint64_t>(model.layer_count)) {
      const double last = std::max(1, model.layer_count - 1);
      return {static_cast<int>(*layer), theme.ramp(static_cast<double>(*layer) / last)};
    }
  }
  return {-1, theme.neutral};
}

}  // namespace loadline::gui
