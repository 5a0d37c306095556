// The map: every byte of the model as area, colored by what it is.
#include "app/gui/panels/panels.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/timeline_plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/load/load.h"
#include "core/base/text.h"
#include "core/view/layouts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

using view::Rect;
using view::Tile;
using view::TileKind;

std::string leaf_label(const Model& model, const Tile& tile) {
  if (tile.kind == TileKind::aggregate) return counted(tile.tensors, "tensor");
  const graph::ModuleNode& node = model.tree.node(tile.node);
  // "weight" says nothing: the module's own name does
  if ((node.name == "weight" || node.name == "bias") && node.parent != graph::kRootNode)
    return model.tree.node(node.parent).name + (node.name == "bias" ? ".bias" : "");
  return node.name;
}

bool is_number(std::string_view s) { return s.find_first_not_of("0123456789") == std::string_view::npos; }

// For a group without room for how many tensors it has: the number of its layer, unless a frame says it.
std::string group_label(const Model& model, graph::NodeId group, const std::vector<graph::NodeId>& framed) {
  for (graph::NodeId at = group; at != graph::kRootNode; at = model.tree.node(at).parent) {
    if (std::ranges::find(framed, at) != framed.end()) break;
    if (is_number(model.tree.node(at).name)) return model.tree.node(at).name;
  }
  return model.tree.node(group).name;
}

// A layer in one tile has its number, as others have it in their frame.
std::string tile_label(const Model& model, const Tile& tile, const std::vector<graph::NodeId>& framed,
                       float room) {
  std::string name = leaf_label(model, tile);
  if (tile.kind != TileKind::aggregate) return name;
  const bool layer = is_number(model.tree.node(tile.node).name);
  return layer || text_width(name) > room ? group_label(model, tile.node, framed) : name;
}

// Edges on whole pixels, the same for neighbors: gaps are even and sharp.
PlotArea pixels(const Rect& rect, ImVec2 at) {
  const auto edge = [](double place) { return std::round(static_cast<float>(place)); };
  return {at + ImVec2{edge(rect.x), edge(rect.y)}, at + ImVec2{edge(rect.x + rect.w), edge(rect.y + rect.h)}};
}

bool is_below(const graph::ModuleTree& tree, graph::NodeId node, graph::NodeId module) {
  while (node != module && node != graph::kRootNode) node = tree.node(node).parent;
  return node == module;
}

void draw_breadcrumb(Document& document, const Ui& ui, float room) {
  const Model& model = *document.model;
  std::vector<graph::NodeId> path;
  for (graph::NodeId at = document.zoomed(); at != graph::kRootNode; at = model.tree.node(at).parent)
    path.push_back(at);
  const StyleScope style(ImGuiStyleVar_FramePadding, {ui.px(6), ImGui::GetStyle().FramePadding.y});
  const float each = room / static_cast<float>(path.size() + 1) - ui.px(24);
  const std::string whole_model = shown(model.name);
  const std::string cut_model = elided(whole_model, std::max(ui.px(40), std::min(each, ui.px(240))));
  if (button(ui, cut_model, ButtonKind::ghost)) document.zoom(graph::kRootNode);
  if (cut_model != whole_model) tooltip(ui, whole_model);
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    ImGui::SameLine(0, ui.px(2));
    control_text("\xE2\x80\xBA", ui.theme->muted);
    ImGui::SameLine(0, ui.px(2));
    const IdScope scope(graph::index(*at));
    const std::string whole = shown(model.tree.node(*at).name);
    const std::string cut = elided_name(whole, std::max(ui.px(24), each));
    if (button(ui, cut, ButtonKind::ghost)) document.zoom(*at);
    if (cut != whole) tooltip(ui, whole);
  }
  if (document.zoomed() != graph::kRootNode) {
    ImGui::SameLine(0, ui.px(10));
    ImGui::AlignTextToFramePadding();
    bytes_text(ui, model.tree.node(document.zoomed()).bytes, ui.theme->muted);
  }
}

void show_tooltip(const Model& model, const Ui& ui, const Tile& tile) {
  hover_card(ui, [&] {
    const graph::ModuleNode& node = model.tree.node(tile.node);
    {
      const FontScope font(ui.fonts.mono);
      text(shown(graph::module_path(model.tree, tile.node)));
    }
    const double share = share_of(tile.bytes, model.tree.root().bytes);
    muted(ui, fmt::format("{}  ({} bytes, {} of the model)", format_bytes(tile.bytes),
                          format_grouped(tile.bytes), percent_text(share)));
    if (tile.kind == TileKind::tensor && node.tensor) {
      const graph::Tensor& tensor = model.tensor(*node.tensor);
      muted(ui, fmt::format("{}  {}  {}", graph::dtype_info(tensor.dtype).name, shape_text(tensor),
                            graph::role_name(model.roles[graph::index(*node.tensor)])));
      muted(ui, "Double click to see its values.");
    } else {
      muted(ui, fmt::format("{}{}. Double click to look inside.", counted(tile.tensors, "tensor"),
                            tile.kind == TileKind::aggregate ? ", too small to draw one by one" : ""));
    }
  });
}

class MapPanel final : public Panel {
 public:
  MapPanel() : Panel("Shows the bytes of the model, tensor by tensor.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override {
    const float legend = std::max(legend_, ui.px(30));
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
  void refresh_held(const Document& document);
  void refresh_unfit(const Document& document);
  void hatch_unfit(const Document& document, const Ui& ui, const Tile& tile, ImVec2 low, ImVec2 high) const;
  const HeldBytes& held() const { return held_bytes_[drawn_map_]; }
  void draw_part(Workspace& workspace, const Ui& ui, ImVec2 size);
  std::string moment_words(const Document& document) const;
  static void leave_moment(Document& document);
  void draw_moment(const load::Projection& projection, const Ui& ui, ImVec2 at, float width) const;
  void draw_labels(const Document& document, const Ui& ui, ImVec2 at);
  ImU32 ink_of(const Document& document, const Ui& ui, std::size_t tile) const;
  std::optional<ImU32> plate_of(const Document& document, const Ui& ui, std::size_t tile) const;
  std::optional<Rect> place_of(const graph::ModuleTree& tree, graph::NodeId node) const;
  void draw_selection(const Document& document, const Ui& ui, ImVec2 at);
  void handle_mouse(Workspace& workspace, const Ui& ui, ImVec2 at);
  static ImU32 dimmed(const Ui& ui, ImU32 color) { return unloaded_color(ui, color); }
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
    graph::NodeId root{};
    float width = 0, height = 0, scale = 0;
    bool operator==(const Key&) const = default;
  };
  struct ColorKey {
    Key tiles;
    ColorBy mode = ColorBy::role;
    std::shared_ptr<const ModelDiff> diff = nullptr;
    bool dark = true;
    bool operator==(const ColorKey&) const = default;
  };
  Key key_;
  ColorKey color_key_;
  std::vector<Tile> tiles_;
  std::vector<ImU32> colors_;    // parallel to tiles_
  std::vector<int> categories_;  // parallel to tiles_: what the legend calls it, -1 = nothing
  float legend_ = 0;             // its height in the last frame
  int dimmed_except_ = -1;       // category under the mouse in the legend
  // At the time cursor; empty while that rests at the peak. The second is of the load played in step.
  std::array<HeldBytes, 2> held_bytes_;
  std::shared_ptr<const load::LoadAnswer> unfit_of_;
  std::vector<std::uint64_t> unfit_;  // unfit_bytes() of the load; empty: it fits, or is not judged
  std::size_t drawn_map_ = 0;         // the part that is being drawn
};

void MapPanel::lay_out(const Document& document, const Ui& ui, ImVec2 size) {
  const Key key = {document.id, document.zoomed(), size.x, size.y, ui.scale};
  if (key == key_ && !tiles_.empty()) return;
  key_ = key;
  color_key_ = {};
  const view::TreemapOptions options = {.min_side = ui.px(4),
                                        .padding = ui.px(3),
                                        .header = ui.px(18),
                                        .header_width = ui.px(54),
                                        .number_width = ui.px(26)};
  const Model& model = *document.model;
  tiles_ = view::layout_treemap(model.tree, model.treemap_order, document.zoomed(), {0, 0, size.x, size.y},
                                options);
}

void MapPanel::color_tiles(const Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const ModelDiff* const diff =
      workspace.settings.color_by == ColorBy::diff ? document.diff.result.value().get() : nullptr;
  const ColorKey key = {key_, workspace.settings.color_by, diff ? document.diff.result.value() : nullptr,
                        ui.theme->dark};
  if (key == color_key_ && colors_.size() == tiles_.size()) return;
  color_key_ = key;
  const Model& model = *document.model;
  colors_.resize(tiles_.size());
  categories_.resize(tiles_.size());
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const Tile& tile = tiles_[i];
    const auto tensor = model.tree.node(tile.node).tensor;
    Paint paint;
    if (tile.kind == TileKind::tensor && tensor && diff != nullptr)
      paint = paint_of_difference(*diff, *ui.theme, *tensor);
    else if (tile.kind == TileKind::aggregate && diff != nullptr)
      paint = paint_of_difference(*diff, *ui.theme, tile.node);
    else if (tile.kind == TileKind::tensor && tensor)
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

// "at the end": what the colors of memory show.
std::string MapPanel::moment_words(const Document& document) const {
  const std::size_t steps = held().projection()->plan.steps.size();
  if (held().step() + 1 >= steps) return "at the end";
  if (document.time.at_peak() && !document.hover.step) return "at the peak";
  return fmt::format("at step {}", format_grouped(held().step()));
}

// Tiles have the colors of what they are again.
void MapPanel::leave_moment(Document& document) {
  document.time.set_step(std::nullopt);
  if (document.load.beside.value()) document.load.set_beside("");
}

void MapPanel::draw_toolbar(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  constexpr std::array<std::string_view, kColorNames.size()> all = {"Role", "Dtype", "Layer", "Shard",
                                                                    "Diff"};
  const std::span<const std::string_view> labels(all.data(), all.size() - (document.diff.there() ? 0 : 1));
  // at the time cursor the colors are those of memory: none of these is on, and choosing one ends that
  const bool by_memory = !held().empty();
  const std::string moment = by_memory ? moment_words(document) : "";
  const float chip = moment.empty() ? 0 : moment_chip_width(ui, moment) + ui.px(8);
  const float modes_width = segmented_width(ui, labels) + chip;
  const float start = ImGui::GetCursorPosX();
  const float room = ImGui::GetContentRegionAvail().x;
  draw_breadcrumb(document, ui, room - modes_width - ui.px(16));
  ImGui::SameLine(start + room - modes_width);
  ImGui::SetCursorPosX(start + room - modes_width);
  if (!moment.empty()) {
    if (moment_chip(ui, moment)) leave_moment(document);
    ImGui::SameLine(0, ui.px(8));
  }
  const std::size_t mode = std::min(static_cast<std::size_t>(workspace.settings.color_by), labels.size());
  const std::size_t chosen = segmented(ui, "color", labels, by_memory ? labels.size() : mode);
  if (by_memory && chosen < labels.size()) leave_moment(document);
  if (chosen < labels.size()) workspace.settings.color_by = static_cast<ColorBy>(chosen);
}

// Once, or twice side by side: the load, and the one that is played in step with it.
void MapPanel::draw_canvas(Workspace& workspace, const Ui& ui, ImVec2 size) {
  Document& document = workspace.document();
  const bool two = document.load.beside.value() && document.load.projection.value();
  const float gap = two ? ui.px(12) : 0, title = two ? ImGui::GetTextLineHeightWithSpacing() : 0;
  const ImVec2 part = {std::floor((size.x - gap) / (two ? 2 : 1)), std::floor(size.y - title)};
  const ImVec2 start = ImGui::GetCursorScreenPos();
  lay_out(document, ui, part);
  color_tiles(workspace, ui);
  refresh_held(document);
  refresh_unfit(document);
  for (drawn_map_ = 0; drawn_map_ < (two ? 2u : 1u); ++drawn_map_) {
    const ImVec2 at = start + ImVec2{drawn_map_ == 0 ? 0 : part.x + gap, 0};
    if (two)
      draw_moment(drawn_map_ == 0 ? *document.load.projection.value() : *document.load.beside.value(), ui, at,
                  part.x);
    ImGui::SetCursorScreenPos(at + ImVec2{0, title});
    draw_part(workspace, ui, part);
  }
  drawn_map_ = 0;
}

// Above each of two maps: the method, and what it holds now.
void MapPanel::draw_moment(const load::Projection& projection, const Ui& ui, ImVec2 at, float width) const {
  const std::size_t step = held().empty() ? 0 : held().step();
  const bool ended = held().empty() || step + 1 >= projection.plan.steps.size();
  const std::string held_now = format_bytes(plan::usage_at(projection.timeline, step, plan::kAllSpaces));
  const FontScope font(ui.fonts.small);
  const std::string figure = ended ? held_now + ", done" : held_now;
  put_text(at, ui.theme->text, elided(projection.method->id, width - text_width(figure) - ui.px(10)));
  put_text_before(at.x + width, at.y, ui.theme->muted, figure);
}

void MapPanel::draw_part(Workspace& workspace, const Ui& ui, ImVec2 size) {
  const Document& document = workspace.document();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const IdScope scope(drawn_map_);
  plot_area("map", size);
  ImGui::PushClipRect(at, at + size, true);
  if (tiles_.empty()) ImGui::GetWindowDrawList()->AddRectFilled(at, at + size, ui.theme->raised);
  draw_tiles(document, ui, at);
  draw_labels(document, ui, at);
  draw_selection(document, ui, at);
  handle_mouse(workspace, ui, at);
  ImGui::PopClipRect();
}

// While the cursor is moved, colors say where the bytes are instead of what they are.
void MapPanel::refresh_held(const Document& document) {
  const bool two = document.load.beside.value() != nullptr;
  const bool moved =
      document.load.projection.value() && (two || !document.time.at_peak() || document.hover.step);
  if (!moved || !two) held_bytes_[1].clear();
  if (!moved) return held_bytes_[0].clear();
  const std::size_t step = document.hover.step.value_or(document.time.step());
  held_bytes_[0].move_to(document.model, document.load.projection.value(), step);
  if (two)
    held_bytes_[1].move_to(
        document.model, document.load.beside.value(),
        step_at_same_time(*document.load.projection.value(), step, *document.load.beside.value()));
}

void MapPanel::refresh_unfit(const Document& document) {
  const auto& judged = document.load.judged.value();
  if (judged == unfit_of_) return;
  unfit_of_ = judged;
  unfit_.clear();
  if (judged && document.load.projection.value() && !judged->rows.front().refusal)
    unfit_ = unfit_bytes(*document.model, *document.load.projection.value(), judged->rows.front().verdict);
}

// Red lines over the part of a tile that finds no room: on the right, where bytes arrive last.
void MapPanel::hatch_unfit(const Document& document, const Ui& ui, const Tile& tile, ImVec2 low,
                           ImVec2 high) const {
  const std::uint64_t out = unfit_[graph::index(tile.node)], all = document.model->tree.node(tile.node).bytes;
  if (out == 0 || all == 0) return;
  low.x = high.x - (high.x - low.x) * static_cast<float>(share_of(std::min(out, all), all));
  hatch_over(ui, low, high);
}

// Side by side where the tensor is in several spaces at once. Of many small ones together, each space takes
// the share of bytes that it holds; what is left over is in no memory.
void MapPanel::fill_tile(const Document& document, const Ui& ui, const Tile& tile, ImVec2 low,
                         ImVec2 high) const {
  const graph::ModuleNode& node = document.model->tree.node(tile.node);
  const plan::PerSpace<std::uint64_t>& in = held().at(tile.node);
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : in) sum += bytes;
  // copies share the tile; room stays for what has not arrived
  const auto whole = static_cast<double>(std::max(sum, node.bytes));
  if (!(whole > 0)) return;
  double filled = 0;
  float left = low.x;
  for (const plan::Space space : plan::kSpaceOrder) {
    if (in[plan::index(space)] == 0) continue;
    filled += static_cast<double>(in[plan::index(space)]) / whole;
    const float right = std::min(high.x, std::round(low.x + (high.x - low.x) * static_cast<float>(filled)));
    if (right > left) paint_space(ui, space, {left, low.y}, {right, high.y});
    if (right > left && left > low.x)  // two spaces may look alike
      ImGui::GetWindowDrawList()->AddLine({left, low.y}, {left, high.y}, ui.theme->sea, ui.px(1));
    left = right;
  }
}

void MapPanel::draw_tiles(const Document& document, const Ui& ui, ImVec2 at) {
  const std::vector<bool>& lit = document.table.view().lit;
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
    const bool filtered_out = !lit.empty() && !lit[graph::index(tiles_[i].node)];
    const bool timed = !held().empty();
    const ImU32 color = filtered_out || timed ? dimmed(ui, colors_[i]) : color_of(ui, i);
    const ImU32 bright = mix(color, IM_COL32_WHITE, 0.10f);
    const ImU32 deep = mix(color, IM_COL32_BLACK, 0.14f);
    draw->AddRectFilledMultiColor(low, high, bright, color, deep, color);
    if (timed && !filtered_out) fill_tile(document, ui, tiles_[i], low, high);
    if (!unfit_.empty() && drawn_map_ == 0 && !filtered_out) hatch_unfit(document, ui, tiles_[i], low, high);
  }
}

ImU32 MapPanel::ink_of(const Document& document, const Ui& ui, std::size_t tile) const {
  const std::vector<bool>& lit = document.table.view().lit;
  if (!lit.empty() && !lit[graph::index(tiles_[tile].node)]) return ui.theme->muted;
  if (held().empty()) return text_on(color_of(ui, tile));
  // where part may be nowhere the ground is mixed
  const graph::ModuleNode& node = document.model->tree.node(tiles_[tile].node);
  for (const plan::Space space : plan::kSpaceOrder)
    if (held().at(tiles_[tile].node)[plan::index(space)] >= node.bytes)
      return text_on(ui.theme->spaces[plan::index(space)]);
  return ui.theme->muted;
}

// The ground of words on a tile that is hatched.
std::optional<ImU32> MapPanel::plate_of(const Document& document, const Ui& ui, std::size_t tile) const {
  const std::size_t node = graph::index(tiles_[tile].node);
  const std::vector<bool>& lit = document.table.view().lit;
  if (!lit.empty() && !lit[node]) return std::nullopt;
  const bool unfit = !unfit_.empty() && drawn_map_ == 0 && unfit_[node] > 0;
  if (held().empty()) return unfit ? std::optional(color_of(ui, tile)) : std::nullopt;
  const plan::PerSpace<std::uint64_t>& in = held().at(tiles_[tile].node);
  if (!unfit && in[plan::index(plan::Space::host)] == 0 && in[plan::index(plan::Space::page_cache)] == 0)
    return std::nullopt;
  const std::uint64_t bytes = document.model->tree.node(tiles_[tile].node).bytes;
  for (const plan::Space space : plan::kSpaceOrder)
    if (in[plan::index(space)] >= bytes) return ui.theme->spaces[plan::index(space)];
  return ui.theme->panel;
}

void MapPanel::draw_labels(const Document& document, const Ui& ui, ImVec2 at) {
  const Model& model = *document.model;
  const FontScope font(ui.fonts.small);
  const float line = ImGui::GetFontSize();
  const float pad = ui.px(5);
  std::vector<graph::NodeId> framed;
  // a label needs a place of its own: the map's area limits how many there are
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const Tile& tile = tiles_[i];
    const auto w = static_cast<float>(tile.rect.w), h = static_cast<float>(tile.rect.h);
    const ImVec2 low = pixels(tile.rect, at).low;
    if (tile.kind == TileKind::module) {
      if (!tile.header) continue;
      // the frames around what follows
      while (!framed.empty() && !is_below(model.tree, tile.node, framed.back())) framed.pop_back();
      framed.push_back(tile.node);
      const std::string path = graph::module_path(model.tree, tile.node);
      const std::size_t from = document.zoomed() == graph::kRootNode
                                   ? 0
                                   : graph::module_path(model.tree, document.zoomed()).size() + 1;
      // inside other frames the last segments are enough
      const std::string name =
          tile.depth == 0 && from < path.size() ? path.substr(from) : model.tree.node(tile.node).name;
      const std::string size = format_bytes(tile.bytes);
      const float size_width = text_width(size);
      const bool with_size = w > size_width + ui.px(90);
      put_text({low.x + pad, low.y + ui.px(2)}, ui.theme->text,
               elided_name(shown(name), w - 2 * pad - (with_size ? size_width + ui.px(8) : 0)));
      if (with_size)
        put_text({low.x + w - size_width - pad - ui.px(2), low.y + ui.px(2)}, ui.theme->muted, size);
      continue;
    }
    const float room = w - 2 * pad;
    if (h < line + ui.px(4) || room < ui.px(6)) continue;  // no room for a letter
    const ImU32 ink = ink_of(document, ui, i);
    std::string name = shown(tile_label(model, tile, framed, room));
    const auto tensor = color_key_.diff ? model.tree.node(tile.node).tensor : std::nullopt;
    const DiffKind kind = tensor ? color_key_.diff->of_tensor[graph::index(*tensor)] : DiffKind::equal;
    if (const std::string letter = {diff_kind_letter(kind)}; kind != DiffKind::equal)
      name = text_width(name) + text_width(letter + " ") > room ? letter : letter + " " + name;
    // half a name in a narrow tile tells nothing
    if (w < ui.px(76) && text_width(name) > room) continue;
    name = elided_name(name, room);
    const std::string size = format_bytes(tile.bytes);
    const bool with_size = h > 2 * line + ui.px(8) && text_width(size) <= room;
    const auto plate = plate_of(document, ui, i);
    if (plate)
      ImGui::GetWindowDrawList()->AddRectFilled(
          {low.x + pad - ui.px(3), low.y + ui.px(2)},
          {low.x + pad + ui.px(3) + std::max(text_width(name), with_size ? text_width(size) : 0),
           low.y + ui.px(5) + (with_size ? 2 : 1) * line},
          *plate, ui.px(3));
    put_text({low.x + pad, low.y + ui.px(3)}, ink, name);
    if (with_size)
      put_text({low.x + pad, low.y + ui.px(4) + line}, plate ? ink : with_alpha(ink, 0.82f), size);
  }
}

// Where a tensor or a module is drawn: its own tile, else that which stands for a group around it, else all
// that is drawn of it.
std::optional<Rect> MapPanel::place_of(const graph::ModuleTree& tree, graph::NodeId node) const {
  const auto own = std::ranges::find(tiles_, node, &Tile::node);
  if (own != tiles_.end()) return own->rect;
  const auto around = std::ranges::find_if(tiles_, [&](const Tile& tile) {
    return tile.kind == TileKind::aggregate && is_below(tree, node, tile.node);
  });
  if (around != tiles_.end()) return around->rect;
  std::optional<Rect> all;
  for (const Tile& tile : tiles_) {
    if (!is_below(tree, tile.node, node)) continue;
    const Rect& r = tile.rect;
    if (!all) {
      all = r;
      continue;
    }
    const double right = std::max(all->x + all->w, r.x + r.w), low = std::max(all->y + all->h, r.y + r.h);
    all->x = std::min(all->x, r.x);
    all->y = std::min(all->y, r.y);
    all->w = right - all->x;
    all->h = low - all->y;
  }
  return all;
}

void MapPanel::draw_selection(const Document& document, const Ui& ui, ImVec2 at) {
  const Model& model = *document.model;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  std::optional<graph::NodeId> selected;
  if (const auto tensor = document.selected_tensor())
    selected = model.nodes[graph::index(*tensor)];
  else if (const auto* const module = std::get_if<graph::NodeId>(&document.selected()))
    selected = *module;
  if (const auto place = selected ? place_of(model.tree, *selected) : std::nullopt) {
    const auto [low, end] = pixels(*place, at);
    const ImVec2 high = end - ImVec2{ui.px(1), ui.px(1)};
    draw->AddRect(low, high, ui.theme->sea, ui.px(2), 0, ui.px(5));
    draw->AddRect(low, high, ui.theme->highlight, ui.px(2), 0, ui.px(2.5f));
  }
  const auto hovered = document.hover.module();
  if (!hovered || hovered == selected || hovered == graph::kRootNode) return;
  if (const auto place = place_of(model.tree, *hovered)) {
    const auto [low, high] = pixels(*place, at);
    draw->AddRect(low, high, with_alpha(ui.theme->highlight, 0.7f), ui.px(2), 0, ui.px(1.5f));
  }
}

void MapPanel::handle_mouse(Workspace& workspace, const Ui& ui, ImVec2 at) {
  if (!ImGui::IsItemHovered()) return;
  Document& document = workspace.document();
  const Model& model = *document.model;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const Tile* tile = view::tile_at(tiles_, mouse.x - at.x, mouse.y - at.y);
  if (tile == nullptr) return;
  document.hover.set(tile->node);
  show_tooltip(model, ui, *tile);
  const graph::ModuleNode& node = model.tree.node(tile->node);
  const bool tensor = tile->kind == TileKind::tensor && node.tensor;
  const auto meant = [&] { return tensor ? Selected(*node.tensor) : Selected(tile->node); };
  if (is_right_clicked()) return document.select_for_menu(meant());
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && tensor)
    workspace.settings.panel = "values";
  else if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    document.zoom(tile->node);
  else if (ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    document.select(meant());
}

constexpr std::string_view kAllocatedHelp =
    "Allocated memory. A tile fills as the bytes of its tensors arrive. Memory that is not yet written and "
    "buffers of the load method do not fill tiles.";

void MapPanel::draw_legend(const Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const Model& model = *document.model;
  constexpr int kMostLines = 3;
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ui.px(2));
  const float top = ImGui::GetCursorScreenPos().y;
  dimmed_except_ = -1;
  bool first = true;
  const auto entry = [&](int category, ImU32 color, std::string_view words, std::string_view figure) {
    if (!first) continue_line(ui, 16, legend_width(ui, words, figure));
    first = false;
    if (legend_entry(ui, color, words, figure)) dimmed_except_ = category;
  };
  const auto square = [&] {  // of the last entry, to be painted as the tiles are
    const float side = ui.px(10), middle = (ImGui::GetItemRectMin().y + ImGui::GetItemRectMax().y) / 2;
    const ImVec2 corner = {ImGui::GetItemRectMin().x, std::round(middle - side / 2)};
    return PlotArea{corner, corner + ImVec2{side, side}};
  };
  if (!held().empty()) {
    for (const plan::Space space : plan::kSpaceOrder) {
      const std::string figure = held_figures(held_bytes_, space);
      if (figure.empty()) continue;
      entry(-1, ui.theme->spaces[plan::index(space)], capitalized(plan::space_title(space)), figure);
      paint_space(ui, space, square().low, square().high);
      tooltip(ui, kAllocatedHelp);
    }
    entry(-1, unloaded_color(ui, ui.theme->neutral), "not loaded yet", "");
    paint_unloaded(model, ui, square());
  }
  if (!unfit_.empty() && unfit_.front() > 0) {
    entry(-1, ui.theme->neutral, "finds no room", format_bytes(unfit_.front()));
    hatch_over(ui, square().low, square().high);
  }
  if (held().empty())
    dimmed_except_ = coloring_legend(ui, model, workspace.settings.color_by,
                                     document.diff.result.value().get(), first, kMostLines);
  // with what stands between the map and it
  legend_ = ImGui::GetItemRectMax().y - top + ImGui::GetStyle().ItemSpacing.y + ui.px(4);
}

}  // namespace

std::unique_ptr<Panel> make_map_panel() { return std::make_unique<MapPanel>(); }

}  // namespace loadline::gui
