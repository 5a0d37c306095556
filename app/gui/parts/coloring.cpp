// The rows of the legend of each coloring.
#include "app/gui/parts/plot.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <filesystem>
#include <string>

#include <fmt/core.h>

namespace loadline::gui {

namespace {

// The ramp between the first layer, or file, and the last.
void ramp_legend(const Ui& ui, const std::string& first, const std::string& last) {
  const FontScope font(ui.fonts.small);
  text(first);
  ImGui::SameLine(0, ui.px(8));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  constexpr int kSteps = 24;
  const float step = ui.px(6);
  const float top = at.y + ImGui::GetFontSize() / 2 - ui.px(5);
  for (int i = 0; i < kSteps; ++i) {
    const float x = at.x + step * static_cast<float>(i);
    ImGui::GetWindowDrawList()->AddRectFilledMultiColor(
        {x, top}, {x + step, top + ui.px(10)}, ui.theme->ramp(i / double{kSteps}),
        ui.theme->ramp((i + 1) / double{kSteps}), ui.theme->ramp((i + 1) / double{kSteps}),
        ui.theme->ramp(i / double{kSteps}));
  }
  ImGui::Dummy({step * kSteps, ImGui::GetFontSize()});
  ImGui::SameLine(0, ui.px(8));
  text(last);
}

std::string file_stem(const Model& model, std::size_t file) {
  return std::filesystem::path(model.graph->files[file].path).stem().string();
}

// Calls `entry(category, color, words, figure)` for each row.
template <typename Entry>
void for_legend_rows(const Ui& ui, const Model& model, ColorBy mode, const ModelDiff* diff, Entry entry) {
  const Theme& theme = *ui.theme;
  if (mode == ColorBy::diff && diff != nullptr) {
    for (std::size_t i = 0; i < kDiffKinds; ++i)
      if (const auto kind = static_cast<DiffKind>(i); kind != DiffKind::only_there && diff->counts[i] > 0)
        entry(static_cast<int>(i), diff_color(theme, kind), std::string(diff_kind_words(kind)),
              format_grouped(diff->counts[i]));
  } else if (mode == ColorBy::role || mode == ColorBy::diff) {
    for (std::size_t i = 0; i < graph::kRoleCount; ++i)
      if (model.role_bytes[i] > 0)
        entry(static_cast<int>(i), theme.roles[i], std::string(graph::role_name(static_cast<graph::Role>(i))),
              format_bytes(model.role_bytes[i]));
  } else if (mode == ColorBy::dtype) {
    for (std::size_t i = 0; i < model.dtypes.size(); ++i)
      entry(static_cast<int>(i), theme.dtype(model.dtypes[i].dtype),
            std::string(graph::dtype_info(model.dtypes[i].dtype).name), format_bytes(model.dtypes[i].bytes));
  } else if (mode == ColorBy::layer) {
    entry(-1, theme.neutral, std::string("not in a layer"), std::string());
  } else if (!has_file_ramp(model, theme)) {
    for (std::size_t i = 0; i < model.graph->files.size(); ++i)
      if (model.bytes_of_file[i] > 0)
        entry(static_cast<int>(i), file_color(model, theme, i),
              elided_front(shown(file_stem(model, i)), ui.px(190)), std::string());
  }
}

}  // namespace

int coloring_legend(const Ui& ui, const Model& model, ColorBy mode, const ModelDiff* diff, bool first,
                    int lines) {
  int hovered = -1;
  if (mode == ColorBy::layer && model.layer_count > 0) {
    ramp_legend(ui, "layer 0", fmt::format("layer {}", model.layer_count - 1));
    first = false;
  }
  if (mode == ColorBy::shard && has_file_ramp(model, *ui.theme)) {
    const auto name = [&](std::size_t file) {
      return elided_front(shown(file_stem(model, file)), ui.px(190));
    };
    std::size_t begin = 0;  // an index comes before the files with weights
    while (begin + 1 < model.bytes_of_file.size() && model.bytes_of_file[begin] == 0) ++begin;
    ramp_legend(ui, name(begin), name(model.bytes_of_file.size() - 1));
    first = false;
  }
  for_legend_rows(
      ui, model, mode, diff,
      [&](int category, ImU32 color, const std::string& words, const std::string& figure) {
        if (lines == 0 || (!first && !continue_line(ui, 16, legend_width(ui, words, figure)) && --lines == 0))
          return;
        first = false;
        if (legend_entry(ui, color, words, figure)) hovered = category;
      });
  return hovered;
}

}  // namespace loadline::gui
