// The map: every byte of the model as area, coloured by what it is.
#include "app/gui/panels/map_paint.h"
#include "app/gui/panels/panels.h"
#include "app/gui/panels/plot_paint.h"
#include "app/gui/panels/timeline_data.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"
#include "core/view/treemap.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

using view::Rect;
using view::Tile;
using view::TileKind;

constexpr std::size_t kMostLabels = 300;

std::string leaf_label(const Model& model, const Tile& tile) {
  if (tile.kind == TileKind::aggregate) return counted(tile.tensors, "tensor");
  const ModuleNode& node = model.tree.node(tile.node);
  // "weight" says nothing: the module's own name does
  if ((node.name == "weight" || node.name == "bias") && node.parent != kRootNode)
    return model.tree.node(node.parent).name + (node.name == "bias" ? ".bias" : "");
  return node.name;
}

std::string file_name(const Model& model, std::size_t file) {
  // the format is the same for all of them
  return std::filesystem::path(model.graph->files[file].path).stem().string();
}

// Edges on whole pixels, the same for neighbours: gaps are even and sharp.
PlotArea pixels(const Rect& rect, ImVec2 at) {
  const auto edge = [](double place) { return std::round(static_cast<float>(place)); };
  return {at + ImVec2{edge(rect.x), edge(rect.y)}, at + ImVec2{edge(rect.x + rect.w), edge(rect.y + rect.h)}};
}

bool is_below(const ModuleTree& tree, NodeId node, NodeId module) {
  while (node != module && node != kRootNode) node = tree.node(node).parent;
  return node == module;
}

void draw_breadcrumb(Document& document, const Ui& ui, float room) {
  const Model& model = *document.model;
  std::vector<NodeId> path;
  for (NodeId at = document.zoomed(); at != kRootNode; at = model.tree.node(at).parent) path.push_back(at);
  const StyleScope style(ImGuiStyleVar_FramePadding, {ui.px(6), ImGui::GetStyle().FramePadding.y});
  const float each = room / static_cast<float>(path.size() + 1) - ui.px(24);
  {
    const IdScope scope("root");
    const float width = std::max(ui.px(40), std::min(each, ui.px(240)));
    if (button(ui, elided(shown(model.name), width), ButtonKind::ghost)) document.zoom(kRootNode);
  }
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    ImGui::SameLine(0, ui.px(2));
    control_text("\xE2\x80\xBA", ui.theme->muted);
    ImGui::SameLine(0, ui.px(2));
    const IdScope scope(index(*at));
    if (button(ui, elided(shown(model.tree.node(*at).name), std::max(ui.px(24), each)), ButtonKind::ghost))
      document.zoom(*at);
  }
  if (document.zoomed() != kRootNode) {
    ImGui::SameLine(0, ui.px(10));
    ImGui::AlignTextToFramePadding();
    bytes_text(ui, model.tree.node(document.zoomed()).bytes, ui.theme->muted);
  }
}

void show_tooltip(const Model& model, const Ui& ui, const Tile& tile) {
  hover_card(ui, [&] {
    const ModuleNode& node = model.tree.node(tile.node);
    {
      const FontScope font(ui.fonts.mono);
      text(shown(module_path(model.tree, tile.node)));
    }
    const double share = share_of(tile.bytes, model.tree.root().bytes);
    muted(ui, fmt::format("{}  ({} bytes, {} of the model)", format_bytes(tile.bytes),
                          format_grouped(tile.bytes), percent_text(share)));
    if (tile.kind == TileKind::tensor && node.tensor) {
      const Tensor& tensor = model.tensor(*node.tensor);
      muted(ui, fmt::format("{}  {}  {}", dtype_info(tensor.dtype).name, shape_text(tensor),
                            role_name(model.roles[index(*node.tensor)])));
    } else {
      muted(ui, fmt::format("{}{}. Double click to look inside.", counted(tile.tensors, "tensor"),
                            tile.kind == TileKind::aggregate ? ", too small to draw one by one" : ""));
    }
  });
}

class MapPanel final : public Panel {
 public:
  MapPanel() : Panel("Its bytes will be laid out here, tensor by tensor.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override {
    const float legend = ui.px(30);
    draw_toolbar(workspace, ui);
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const ImVec2 size = {room.x, room.y - legend};
    if (size.x < ui.px(40) || size.y < ui.px(40)) return;
    draw_canvas(workspace, ui, size);
    draw_legend(workspace, ui);
  }
  void draw_toolbar(Workspace& workspace, const Ui& ui);
  void draw_canvas(Workspace& workspace, const Ui& ui, ImVec2 size);
  void draw_legend(const Workspace& workspace, const Ui& ui);
  void draw_tiles(const Document& document, const Ui& ui, ImVec2 at);
  void fill_tile(const Document& document, const Ui& ui, const Tile& tile, ImVec2 low, ImVec2 high) const;
  void refresh_spaces(const Document& document);
  void draw_labels(const Document& document, const Ui& ui, ImVec2 at);
  ImU32 ink_of(const Document& document, const Ui& ui, std::size_t tile) const;
  void draw_selection(const Document& document, const Ui& ui, ImVec2 at);
  void handle_mouse(Document& document, const Ui& ui, ImVec2 at);
  static ImU32 dimmed(const Ui& ui, ImU32 color) { return mix(ui.theme->panel, color, 0.18f); }
  // Dimmed where the legend points at another category.
  ImU32 color_of(const Ui& ui, std::size_t tile) const {
    const bool other = dimmed_except_ >= 0 && categories_[tile] != dimmed_except_;
    return other ? dimmed(ui, colors_[tile]) : colors_[tile];
  }
  void lay_out(const Document& document, const Ui& ui, ImVec2 size);
  void color_tiles(const Workspace& workspace, const Ui& ui);

  // What the geometry below was made for.
  struct Key {
    std::uint64_t generation = 0;
    NodeId root{};
    float width = 0;
    float height = 0;
    float scale = 0;
    bool operator==(const Key&) const = default;
  };
  struct ColorKey {
    Key tiles;
    ColorBy mode = ColorBy::role;
    bool dark = true;
    bool operator==(const ColorKey&) const = default;
  };
  Key key_;
  ColorKey color_key_;
  std::vector<Tile> tiles_;
  std::vector<ImU32> colors_;    // parallel to tiles_
  std::vector<int> categories_;  // parallel to tiles_: what the legend calls it, -1 = nothing
  int dimmed_except_ = -1;       // category under the mouse in the legend
  // Where each storage is at the time cursor; empty while the cursor rests at the peak.
  std::vector<std::uint8_t> spaces_;
  std::shared_ptr<const Projection> spaces_of_;
  std::size_t spaces_at_ = 0;
  std::vector<PerSpace<std::uint64_t>> held_;  // per node of the tree, at the same moment
};

void MapPanel::lay_out(const Document& document, const Ui& ui, ImVec2 size) {
  const Key key = {document.id, document.zoomed(), size.x, size.y, ui.scale};
  if (key == key_ && !tiles_.empty()) return;
  key_ = key;
  color_key_ = {};
  const view::TreemapOptions options = {
      .min_side = ui.px(4), .padding = ui.px(3), .header = ui.px(18), .header_width = ui.px(54)};
  const Model& model = *document.model;
  tiles_ = view::layout_treemap(model.tree, model.treemap_order, document.zoomed(), {0, 0, size.x, size.y},
                                options);
}

// The ramp between the first layer and the last.
void ramp_legend(const Ui& ui, const std::string& last) {
  const FontScope font(ui.fonts.small);
  text("layer 0");
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

void MapPanel::color_tiles(const Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const ColorKey key = {key_, workspace.settings.color_by, ui.theme->dark};
  if (key == color_key_ && colors_.size() == tiles_.size()) return;
  color_key_ = key;
  const Model& model = *document.model;
  colors_.resize(tiles_.size());
  categories_.resize(tiles_.size());
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const Tile& tile = tiles_[i];
    const auto tensor = model.tree.node(tile.node).tensor;
    Paint paint;
    if (tile.kind == TileKind::tensor && tensor)
      paint = paint_of(model, *ui.theme, workspace.settings.color_by, *tensor);
    else if (tile.kind == TileKind::aggregate)
      paint = paint_of_module(model, *ui.theme, workspace.settings.color_by, tile.node);
    else  // frames: the deeper, the lighter
      paint = {-1, mix(ui.theme->raised, ui.theme->active,
                       std::min(1.0f, 0.25f * static_cast<float>(tile.depth)))};
    colors_[i] = paint.color;
    categories_[i] = paint.category;
  }
}

void MapPanel::draw_toolbar(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr std::array<std::string_view, kColorNames.size()> labels = {"Role", "Dtype", "Layer", "Shard"};
  const float modes_width = segmented_width(ui, labels);
  const float start = ImGui::GetCursorPosX();
  const float room = ImGui::GetContentRegionAvail().x;
  draw_breadcrumb(document, ui, room - modes_width - ui.px(16));
  ImGui::SameLine(start + room - modes_width);
  ImGui::SetCursorPosX(start + room - modes_width);
  const auto mode = static_cast<std::size_t>(workspace.settings.color_by);
  workspace.settings.color_by = static_cast<ColorBy>(segmented(ui, "color", labels, mode));
}

void MapPanel::draw_canvas(Workspace& workspace, const Ui& ui, ImVec2 size) {
  Document& document = workspace.document();
  lay_out(document, ui, {std::floor(size.x), std::floor(size.y)});
  color_tiles(workspace, ui);
  refresh_spaces(document);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("map", size);
  ImGui::PushClipRect(at, at + size, true);
  if (tiles_.empty()) ImGui::GetWindowDrawList()->AddRectFilled(at, at + size, ui.theme->raised);
  draw_tiles(document, ui, at);
  draw_labels(document, ui, at);
  draw_selection(document, ui, at);
  handle_mouse(document, ui, at);
  ImGui::PopClipRect();
}

// While the cursor is moved, colours say where the bytes are instead of what they are.
void MapPanel::refresh_spaces(const Document& document) {
  const bool moved = document.projection.value() && (!document.at_peak() || document.hovered_step);
  if (!moved) {
    spaces_.clear();
    spaces_of_.reset();
    return;
  }
  const std::size_t step = document.hovered_step.value_or(document.step());
  if (spaces_of_ == document.projection.value() && spaces_at_ == step) return;
  spaces_of_ = document.projection.value();
  spaces_at_ = step;
  const Model& model = *document.model;
  spaces_ = gui::spaces_at(*spaces_of_, model.graph->storages.size(), step);
  // bytes of each node and all below it, children after their parents
  held_.assign(model.tree.nodes.size(), {});
  for (std::size_t i = model.tree.nodes.size(); i-- > 0;) {
    const ModuleNode& node = model.tree.nodes[i];
    if (node.tensor) {
      const std::uint8_t held = spaces_[index(model.tensor(*node.tensor).storage)];
      for (std::size_t space = 0; space < kSpaceCount; ++space)
        if ((held >> space & 1u) != 0) held_[i][space] += model.bytes[index(*node.tensor)];
    }
    if (i == index(kRootNode)) break;
    for (std::size_t space = 0; space < kSpaceCount; ++space)
      held_[index(node.parent)][space] += held_[i][space];
  }
}

// Side by side where the tensor is in several spaces at once. Of many small ones together, each space takes
// the share of bytes that it holds; what is left over is in no memory.
void MapPanel::fill_tile(const Document& document, const Ui& ui, const Tile& tile, ImVec2 low,
                         ImVec2 high) const {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ModuleNode& node = document.model->tree.node(tile.node);
  const PerSpace<std::uint64_t>& held = held_[index(tile.node)];
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : held) sum += bytes;
  // a tensor's copies share its tile; modules keep room for what is nowhere
  const auto whole = static_cast<double>(node.tensor ? sum : std::max(sum, node.bytes));
  if (!(whole > 0)) return;
  double filled = 0;
  float left = low.x;
  for (const Space space : kStackOrder) {
    if (held[index(space)] == 0) continue;
    filled += static_cast<double>(held[index(space)]) / whole;
    const float right = std::min(high.x, std::round(low.x + (high.x - low.x) * static_cast<float>(filled)));
    if (right > left) draw->AddRectFilled({left, low.y}, {right, high.y}, ui.theme->spaces[index(space)]);
    left = right;
  }
}

void MapPanel::draw_tiles(const Document& document, const Ui& ui, ImVec2 at) {
  const std::vector<bool>& lit = document.table().lit;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float gap = std::max(1.0f, std::round(ui.scale));
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    auto [low, high] = pixels(tiles_[i].rect, at);
    if (high.x - low.x > 2 * gap) high.x -= gap;
    if (high.y - low.y > 2 * gap) high.y -= gap;
    if (tiles_[i].kind == TileKind::module) {
      draw->AddRectFilled(low, high, colors_[i], ui.px(3));
      continue;
    }
    const bool filtered_out = !lit.empty() && !lit[index(tiles_[i].node)];
    const bool timed = !spaces_.empty();
    const ImU32 color = filtered_out || timed ? dimmed(ui, colors_[i]) : color_of(ui, i);
    const ImU32 bright = mix(color, IM_COL32_WHITE, 0.10f);
    const ImU32 deep = mix(color, IM_COL32_BLACK, 0.14f);
    draw->AddRectFilledMultiColor(low, high, bright, color, deep, color);
    if (timed && !filtered_out) fill_tile(document, ui, tiles_[i], low, high);
  }
}

ImU32 MapPanel::ink_of(const Document& document, const Ui& ui, std::size_t tile) const {
  if (spaces_.empty()) return text_on(color_of(ui, tile));
  const auto tensor = document.model->tree.node(tiles_[tile].node).tensor;
  const std::uint8_t held = tensor ? spaces_[index(document.model->tensor(*tensor).storage)] : 0;
  for (const Space space : kStackOrder)
    if ((held >> index(space) & 1u) != 0) return text_on(ui.theme->spaces[index(space)]);
  return ui.theme->muted;
}

void MapPanel::draw_labels(const Document& document, const Ui& ui, ImVec2 at) {
  const Model& model = *document.model;
  const FontScope font(ui.fonts.small);
  const float line = ImGui::GetFontSize();
  const float pad = ui.px(5);
  std::size_t labels = 0;
  const auto put = [&](ImVec2 pen, ImU32 color, const std::string& words) {
    put_text(pen, color, words);
    ++labels;
  };
  for (std::size_t i = 0; i < tiles_.size() && labels < kMostLabels; ++i) {
    const Tile& tile = tiles_[i];
    const auto w = static_cast<float>(tile.rect.w);
    const auto h = static_cast<float>(tile.rect.h);
    const ImVec2 low = pixels(tile.rect, at).low;
    if (tile.kind == TileKind::module) {
      if (!tile.header) continue;
      const std::string path = module_path(model.tree, tile.node);
      const std::size_t from =
          document.zoomed() == kRootNode ? 0 : module_path(model.tree, document.zoomed()).size() + 1;
      // inside other frames the last segments are enough
      const std::string name =
          tile.depth == 0 && from < path.size() ? path.substr(from) : model.tree.node(tile.node).name;
      const std::string size = format_bytes(tile.bytes);
      const float size_width = text_width(size);
      const bool with_size = w > size_width + ui.px(90);
      put({low.x + pad, low.y + ui.px(2)}, ui.theme->text,
          elided(shown(name), w - 2 * pad - (with_size ? size_width + ui.px(8) : 0)));
      if (with_size) put({low.x + w - size_width - pad - ui.px(2), low.y + ui.px(2)}, ui.theme->muted, size);
      continue;
    }
    if (w < ui.px(44) || h < line + ui.px(4)) continue;
    const ImU32 ink = ink_of(document, ui, i);
    const std::string name = shown(leaf_label(model, tile));
    // half a name in a narrow tile tells nothing
    if (w < ui.px(76) && text_width(name) > w - 2 * pad) continue;
    put({low.x + pad, low.y + ui.px(3)}, ink, elided(name, w - 2 * pad));
    if (h > 2 * line + ui.px(8) && w > ui.px(66))
      put({low.x + pad, low.y + ui.px(4) + line}, with_alpha(ink, 0.82f),
          elided(format_bytes(tile.bytes), w - 2 * pad));
  }
}

void MapPanel::draw_selection(const Document& document, const Ui& ui, ImVec2 at) {
  if (!document.selected_tensor()) return;
  const Model& model = *document.model;
  const NodeId node = model.nodes[index(*document.selected_tensor())];
  // its own tile, or else the innermost one that it is part of
  auto tile = std::find_if(tiles_.rbegin(), tiles_.rend(), [&](const Tile& candidate) {
    return candidate.kind == TileKind::tensor && candidate.node == node;
  });
  if (tile == tiles_.rend())
    tile = std::find_if(tiles_.rbegin(), tiles_.rend(), [&](const Tile& candidate) {
      return candidate.kind == TileKind::aggregate && is_below(model.tree, node, candidate.node);
    });
  if (tile == tiles_.rend()) return;
  const auto [low, end] = pixels(tile->rect, at);
  const ImVec2 high = end - ImVec2{ui.px(1), ui.px(1)};
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRect(low, high, ui.theme->sea, ui.px(2), 0, ui.px(5));
  draw->AddRect(low, high, ui.theme->highlight, ui.px(2), 0, ui.px(2.5f));
}

void MapPanel::handle_mouse(Document& document, const Ui& ui, ImVec2 at) {
  if (!ImGui::IsItemHovered()) return;
  const Model& model = *document.model;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const Tile* tile = view::tile_at(tiles_, mouse.x - at.x, mouse.y - at.y);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Right) && document.zoomed() != kRootNode)
    document.zoom(model.tree.node(document.zoomed()).parent);
  if (tile == nullptr) return;
  const Rect& r = tile->rect;
  ImGui::GetWindowDrawList()->AddRect(
      {at.x + static_cast<float>(r.x), at.y + static_cast<float>(r.y)},
      {at.x + static_cast<float>(r.x + r.w), at.y + static_cast<float>(r.y + r.h)},
      with_alpha(ui.theme->highlight, 0.7f), ui.px(2), 0, ui.px(1.5f));
  show_tooltip(model, ui, *tile);
  const ModuleNode& node = model.tree.node(tile->node);
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    document.zoom(tile->kind == TileKind::tensor ? node.parent : tile->node);
  else if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) && tile->kind == TileKind::tensor && node.tensor)
    document.select(selected_or_nothing(node.tensor));
}

void MapPanel::draw_legend(const Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const Model& model = *document.model;
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ui.px(2));
  dimmed_except_ = -1;
  bool first = true;
  const auto entry = [&](int category, ImU32 color, std::string_view words, std::string_view figure) {
    if (!first && !continue_line(ui, 16, legend_width(ui, words, figure))) return;
    first = false;
    if (legend_entry(ui, color, words, figure)) dimmed_except_ = category;
  };
  const Theme& theme = *ui.theme;
  if (!spaces_.empty()) {
    for (const Space space : kStackOrder)
      if (const std::uint64_t bytes = usage_at(spaces_of_->timeline, spaces_at_, 1u << index(space));
          spaces_of_->timeline.peaks[index(space)].bytes > 0)
        entry(-1, theme.spaces[index(space)], space_title(space), format_bytes(bytes));
    return entry(-1, dimmed(ui, theme.neutral), "not in memory", "");
  }
  switch (workspace.settings.color_by) {
    case ColorBy::role:
      for (std::size_t i = 0; i < kRoleCount; ++i)
        if (model.role_bytes[i] > 0)
          entry(static_cast<int>(i), theme.roles[i], role_name(static_cast<Role>(i)),
                format_bytes(model.role_bytes[i]));
      break;
    case ColorBy::dtype:
      for (std::size_t i = 0; i < model.dtypes.size(); ++i)
        entry(static_cast<int>(i), theme.dtype(model.dtypes[i].dtype), dtype_info(model.dtypes[i].dtype).name,
              format_bytes(model.dtypes[i].bytes));
      break;
    case ColorBy::layer:
      if (model.layer_count > 0) {
        first = false;
        ramp_legend(ui, fmt::format("layer {}", model.layer_count - 1));
      }
      entry(-1, theme.neutral, "outside the layers", "");
      break;
    case ColorBy::shard:
      for (std::size_t i = 0; i < model.graph->files.size(); ++i)
        if (model.bytes_of_file[i] > 0)
          entry(static_cast<int>(i), theme.category(i), elided(shown(file_name(model, i)), ui.px(190)), "");
      break;
  }
}

}  // namespace

std::unique_ptr<Panel> make_map_panel() { return std::make_unique<MapPanel>(); }

}  // namespace loadline::gui
