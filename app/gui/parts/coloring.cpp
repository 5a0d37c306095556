// The rows of the legend of each coloring: of what tensors are, and of where their bytes are at a time.
#include "app/gui/parts/plot.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
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

// --- Where the bytes are at a time.

namespace {

// What is allocated, and how much of it tiles show unless they show all of it.
std::string held_figure(const HeldBytes& held, plan::Space space) {
  const std::uint64_t used = plan::usage_at(held.projection()->timeline, held.step(), plan::space_bit(space));
  const std::uint64_t arrived = held.arrived()[plan::index(space)];
  const std::string all = format_bytes(used), there = format_bytes(arrived);
  return arrived >= used || all == there ? all
                                         : fmt::format("{}, {} arrived", all, arrived == 0 ? "none" : there);
}

}  // namespace

ImU32 unloaded_color(const Ui& ui, ImU32 color) { return mix(ui.theme->panel, color, 0.18f); }

std::string held_figures(const std::array<HeldBytes, 2>& maps, plan::Space space) {
  std::array<std::string, 2> figures = {};
  bool any = false;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (maps[i].empty()) continue;
    figures[i] = held_figure(maps[i], space);
    any = any || plan::usage_at(maps[i].projection()->timeline, maps[i].step(), plan::space_bit(space)) > 0;
  }
  if (!any || maps[1].empty()) return any ? figures[0] : "";
  return fmt::format("{} | {}", figures[0], figures[1]);
}

void paint_unloaded(const Model& model, const Ui& ui, const PlotArea& square) {
  constexpr std::size_t kParts = 3;
  std::array<std::size_t, graph::kRoleCount> roles = {};
  for (std::size_t i = 0; i < roles.size(); ++i) roles[i] = i;
  std::ranges::stable_sort(roles, std::greater{}, [&](std::size_t role) { return model.role_bytes[role]; });
  const float width = square.width() / float{kParts};
  for (std::size_t i = 0; i < kParts; ++i) {
    if (model.role_bytes[roles[i]] == 0) break;
    const float x = square.low.x + width * static_cast<float>(i);
    ImGui::GetWindowDrawList()->AddRectFilled({x, square.low.y}, {square.high.x, square.high.y},
                                              unloaded_color(ui, ui.theme->roles[roles[i]]));
  }
  ImGui::GetWindowDrawList()->AddRect(square.low, square.high, with_alpha(ui.theme->muted, 0.6f));
}

float moment_chip_width(const Ui& ui, std::string_view words) {
  return text_width(words) + ui.px(10 + 8 + 10 + 10);
}

bool moment_chip(const Ui& ui, std::string_view words) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = {moment_chip_width(ui, words), ImGui::GetFrameHeight()};
  const bool clicked = press_area(ui, "moment", size);
  const bool hovered = ImGui::IsItemHovered();
  tooltip(ui, "Tiles show where their bytes are at this time. A click shows again what they are");
  ImGui::GetWindowDrawList()->AddRectFilled(at, at + size, ui.theme->accent, ui.px(6));
  put_text({at.x + ui.px(10), at.y + ImGui::GetStyle().FramePadding.y}, ui.theme->on_accent, words);
  paint_cross(ui, {at.x + size.x - ui.px(14), at.y + size.y / 2},
              with_alpha(ui.theme->on_accent, hovered ? 1.0f : 0.75f));
  return clicked;
}

plan::Space largest_space(const load::Projection& projection) {
  const auto& peaks = projection.timeline.peaks;
  return *std::ranges::max_element(plan::kSpaceOrder, {},
                                   [&](plan::Space space) { return peaks[plan::index(space)].bytes; });
}

}  // namespace loadline::gui
