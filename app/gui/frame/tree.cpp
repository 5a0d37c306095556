// The module tree with subtotals: bytes, share and parameters of everything below a name.
#include "app/gui/frame/actions.h"
#include "app/gui/frame/gui_app.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/plot.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/model_diff.h"
#include "app/gui/state/model/tensor_table.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

// A line of the unfolded tree. A module with nothing but one child shares its line:
// "up_proj.weight".
struct Line {
  graph::NodeId first{};  // the node at which the line's name begins
  graph::NodeId node{};   // the node that the line shows
  std::uint16_t depth = 0;
};

graph::NodeId end_of_chain(const graph::ModuleTree& tree, graph::NodeId node) {
  while (!tree.node(node).tensor && tree.node(node).children.size() == 1)
    node = tree.node(node).children.front();
  return node;
}

// As much of it as a line could show.
std::string line_name(const graph::ModuleTree& tree, const Line& line) {
  constexpr std::size_t kMost = 2000;
  std::string name = tree.node(line.first).name;
  for (graph::NodeId at = line.first; at != line.node && name.size() < kMost;) {
    at = tree.node(at).children.front();
    name.append(".").append(tree.node(at).name);
  }
  return name;
}

// The bytes of its first characters that are at most `width` pixels wide.
std::size_t fitting_bytes(std::string_view text, float width) {
  const char* rest = text.data();
  ImGui::GetFont()->CalcTextSizeA(ImGui::GetFontSize(), std::max(width, 0.0f), 0, text.data(),
                                  text.data() + text.size(), &rest);
  return static_cast<std::size_t>(rest - text.data());
}

// A name of the tree cut to `width`: whole parts from its beginning, since its end (".weight", ".bias") says
// least; of a first part that is too long as much as fits.
std::string elided_end(std::string_view name, float width) {
  constexpr std::string_view kMore = "\xE2\x80\xA6";
  if (text_width(name) <= width) return std::string(name);
  const std::size_t fits = fitting_bytes(name, width - text_width(kMore));
  const std::size_t dot = fits == 0 ? std::string_view::npos : name.rfind('.', fits);
  const std::size_t end = dot == std::string_view::npos || dot == 0 ? fits : dot;
  return end > 0 ? std::string(name.substr(0, end)) + std::string(kMore) : "";
}

// The letters of differences that stand at the right of the lines.
void draw_marks_legend(const ModelDiff& diff, const Ui& ui) {
  const FontScope font(ui.fonts.small);
  bool first = true;
  const auto entry = [&](ImU32 color, const std::string& mark, std::string_view words) {
    if (!first) continue_line(ui, 10, text_width(mark) + ui.px(5) + text_width(words));
    first = false;
    text_colored(color, mark);
    ImGui::SameLine(0, ui.px(5));
    muted(ui, words);
  };
  for (std::size_t i = 0; i < kDiffKinds; ++i) {
    const auto kind = static_cast<DiffKind>(i);
    if (kind != DiffKind::equal && kind != DiffKind::only_there && diff.counts[i] > 0)
      entry(diff_color(*ui.theme, kind), std::string(1, diff_kind_letter(kind)), diff_kind_name(kind));
  }
  if (!first) entry(ui.theme->muted, "\xE2\x80\xA2", "below");
}

// With which model this one is compared, a way out of it, and what the letters mean.
void draw_comparison(Workspace& workspace, const ModelDiff& diff, const Ui& ui) {
  {
    const FontScope font(ui.fonts.small);
    const std::string other =
        workspace.document().diff.there() ? workspace.document().diff.there()->name : "";
    const float room = ImGui::GetContentRegionAvail().x - ImGui::GetFrameHeight() - ui.px(4);
    ImGui::AlignTextToFramePadding();
    muted(ui, elided("compared with " + shown(other), room));
    ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - ImGui::GetFrameHeight());
  }
  if (icon_button(ui, "end-diff", "Stop comparing",
                  [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); }))
    return run_action(workspace, "end-diff");
  draw_marks_legend(diff, ui);
}

void describe(const Model& model, const Ui& ui, graph::NodeId id) {
  const graph::ModuleNode& node = model.tree.node(id);
  const double share = share_of(node.bytes, model.weight_bytes);
  text(shown(graph::module_path(model.tree, id)));
  muted(ui, fmt::format("{} ({} bytes, {}), {} parameters, {}", format_bytes(node.bytes),
                        format_grouped(node.bytes), percent_text(share), format_count(node.parameters),
                        counted(node.tensors, "tensor")));
  if (!node.children.empty()) muted(ui, "Double click to see it on the map.");
}

class TreePanel final : public Panel {
 public:
  void draw_content(Workspace& workspace, const Ui& ui) override;

 private:
  void reset(const Document& document);
  void reveal(const Document& document);
  void unfold(const Model& model);
  void press(Document& document, graph::NodeId at);
  void draw_line(Document& document, const Ui& ui, const Line& line);
  void draw_filter(Workspace& workspace, const Ui& ui);
  void go_to_hit(Document& document, int step);
  void move_selection(Workspace& workspace, const Ui& ui);
  void fold(Document& document, std::size_t at, bool open);
  void select_line(Document& document, std::size_t at);

  std::uint64_t seen_model_ = 0;
  std::uint64_t seen_selection_ = 0;
  float seen_scale_ = 0;
  std::vector<bool> open_;   // per node
  std::vector<Line> lines_;  // of the open part, top to bottom
  bool stale_ = true;
  std::optional<graph::NodeId> scroll_to_;
  std::string filter_;
  bool wants_keyboard_ = false;  // the lines do, from the filter
};

// What passes is lit here and on the map, and is what the table lists.
void TreePanel::draw_filter(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const TableView& table = document.table.view();
  const bool filtered = !table.filter.empty();
  filter_ = table.filter;
  const std::string before = filter_;
  const float cross = filtered ? ImGui::GetFrameHeight() : 0;
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - cross);
  if (workspace.services.requests.take<FocusFilter>()) ImGui::SetKeyboardFocusHere();
  {
    const ColorScope color(ImGuiCol_Border, ui.theme->bad);  // seen around a wrong filter only
    const StyleScope frame(ImGuiStyleVar_FrameBorderSize, table.error.empty() ? 0 : ui.px(1));
    const bool entered = ImGui::InputTextWithHint("##filter", "Filter: q_proj layer:12", &filter_,
                                                  ImGuiInputTextFlags_EnterReturnsTrue);
    // Escape leaves the field, and ImGui then puts back what stood there before
    if (!entered && filter_ != before && !list_key_pressed(ListKey::escape))
      document.table.set_filter(filter_);
    if (entered) {
      go_to_hit(document, ImGui::GetIO().KeyShift ? -1 : 1);
      ImGui::SetKeyboardFocusHere(-1);
    }
    if (ImGui::IsItemActive() && list_key_pressed(ListKey::down)) {
      wants_keyboard_ = true;
      if (!document.selected_tensor()) go_to_hit(document, 1);
    }
  }
  if (!ImGui::IsItemActive()) tooltip(ui, graph::filter_help());
  if (filtered) {
    ImGui::SameLine(0, 0);
    if (icon_button(ui, "clear", "Clear the filter",
                    [&](ImVec2 center, ImU32 ink) { paint_cross(ui, center, ink); }))
      document.table.set_filter("");
  }
  if (!table.error.empty()) return paragraph(ui, shown(table.error), ui.theme->bad);
  if (table.applied.empty()) return;
  small_text(ui,
             fmt::format("{} of {}, {}", format_grouped(table.rows.size()),
                         counted(document.model->graph->tensors.size(), "tensor"), format_bytes(table.bytes)),
             ui.theme->muted);
}

// Selects what passes next after what is selected, in the order of the table; round its ends.
void TreePanel::go_to_hit(Document& document, int step) {
  const std::vector<graph::TensorId>& rows = document.table.view().rows;
  if (rows.empty()) return;
  const auto found =
      document.selected_tensor() ? std::ranges::find(rows, *document.selected_tensor()) : rows.end();
  const std::size_t last = rows.size() - 1, at = static_cast<std::size_t>(found - rows.begin());
  std::size_t next = step > 0 ? 0 : last;
  if (found != rows.end()) next = step > 0 ? (at == last ? 0 : at + 1) : (at == 0 ? last : at - 1);
  document.select(rows[next]);
}

void TreePanel::select_line(Document& document, std::size_t at) {
  const Line& line = lines_[at];
  const graph::ModuleNode& node = document.model->tree.node(line.node);
  document.select(node.tensor && node.children.empty() ? Selected(*node.tensor) : Selected(line.node));
}

// Opens a line, or goes into it if it is open; closes it, or goes to the line around it.
void TreePanel::fold(Document& document, std::size_t at, bool open) {
  const bool branch = !document.model->tree.node(lines_[at].node).children.empty();
  const bool is_open = branch && open_[graph::index(lines_[at].node)];
  if (branch && is_open != open) {
    open_[graph::index(lines_[at].node)] = open;
    stale_ = true;
    return;
  }
  if (open) {
    if (branch && at + 1 < lines_.size()) select_line(document, at + 1);
    return;
  }
  for (std::size_t above = at; above-- > 0;)
    if (lines_[above].depth < lines_[at].depth) return select_line(document, above);
}

void TreePanel::move_selection(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (std::exchange(wants_keyboard_, false)) give_keyboard();
  if (!list_has_keyboard()) {
    row_by_keys(ui, std::nullopt, 0);
    return;
  }
  const auto is_selected = [&](const Line& line) {
    const graph::ModuleNode& node = document.model->tree.node(line.node);
    return (node.tensor && document.selected_tensor() == node.tensor) ||
           document.selected() == Selected(line.node);
  };
  const auto found = std::ranges::find_if(lines_, is_selected);
  std::optional<std::size_t> at;
  if (found != lines_.end()) at = static_cast<std::size_t>(found - lines_.begin());
  if (const auto now = row_by_keys(ui, at, lines_.size())) return select_line(document, *now);
  if (!at || ImGui::GetIO().KeyAlt) return;
  if (list_key_pressed(ListKey::right)) return fold(document, *at, true);
  if (list_key_pressed(ListKey::left)) return fold(document, *at, false);
  if (!row_is_entered()) return;
  if (document.selected_tensor())
    workspace.settings.panel = "values";
  else
    document.zoom(lines_[*at].node);
}

void TreePanel::reset(const Document& document) {
  seen_model_ = document.id;
  const graph::ModuleTree& tree = document.model->tree;
  open_.assign(tree.nodes.size(), false);
  // down to where the tree first branches
  graph::NodeId at = graph::kRootNode;
  open_[graph::index(at)] = true;
  while (tree.node(at).children.size() == 1) {
    at = tree.node(at).children.front();
    open_[graph::index(at)] = true;
  }
  for (const graph::NodeId child : tree.node(at).children)
    if (tree.node(child).children.size() <= 6) open_[graph::index(end_of_chain(tree, child))] = true;
  stale_ = true;
}

void TreePanel::reveal(const Document& document) {
  seen_selection_ = document.history.count();
  const Model& model = *document.model;
  const auto tensor = document.selected_tensor();
  const auto* const module = std::get_if<graph::NodeId>(&document.selected());
  if (!tensor && module == nullptr) return;
  const graph::NodeId node = tensor ? model.nodes[graph::index(*tensor)] : end_of_chain(model.tree, *module);
  for (graph::NodeId at = node; at != graph::kRootNode;) {
    at = model.tree.node(at).parent;
    open_[graph::index(at)] = true;
  }
  stale_ = true;
  scroll_to_ = node;
}

void TreePanel::unfold(const Model& model) {
  stale_ = false;
  lines_.clear();
  // an explicit stack, last child first, so that lines come out top to bottom
  std::vector<Line> stack;
  const auto push_children = [&](graph::NodeId node, std::uint16_t depth) {
    const auto& children = model.tree.node(node).children;
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      stack.push_back({*child, end_of_chain(model.tree, *child), depth});
  };
  push_children(graph::kRootNode, 0);
  while (!stack.empty()) {
    const Line line = stack.back();
    stack.pop_back();
    lines_.push_back(line);
    if (open_[graph::index(line.node)]) push_children(line.node, static_cast<std::uint16_t>(line.depth + 1));
  }
}

void TreePanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (seen_model_ != document.id) reset(document);
  if (seen_selection_ != document.history.count() || seen_scale_ != ui.scale) reveal(document);
  seen_scale_ = ui.scale;
  if (stale_) unfold(*document.model);
  draw_filter(workspace, ui);
  if (const auto diff = document.diff.result.value()) draw_comparison(workspace, *diff, ui);
  const FontScope font(ui.fonts.small);
  const ChildScope child("lines");
  const StyleScope style(ImGuiStyleVar_ItemSpacing, {0, 0});
  const float height = ImGui::GetFontSize() + ui.px(9);
  move_selection(workspace, ui);
  if (scroll_to_) {
    const auto at = std::ranges::find_if(lines_, [&](const Line& l) { return l.node == *scroll_to_; });
    const float top = height * static_cast<float>(at - lines_.begin());
    const float room = ImGui::GetWindowHeight() - height;
    if (top < ImGui::GetScrollY() || top > ImGui::GetScrollY() + room)
      ImGui::SetScrollY(height * std::max(0.0f, std::round((top - room / 2) / height)));
    scroll_to_.reset();
  }
  for_rows_in_sight(
      lines_.size(), [&](std::size_t i) { draw_line(document, ui, lines_[i]); }, height);
}

// Right of `at`, the top of a line: the letter of the difference; a dot where something below differs.
void draw_difference(const Document& document, const Ui& ui, graph::NodeId node, ImVec2 at) {
  const std::shared_ptr<const ModelDiff> diff = document.diff.result.value();
  if (!diff || !diff->touched[graph::index(node)]) return;
  const std::optional<graph::TensorId> tensor = document.model->tree.node(node).tensor;
  const DiffKind kind = tensor ? diff->of_tensor[graph::index(*tensor)] : DiffKind::equal;
  const ImVec2 center = at + ImVec2{ui.px(9), ImGui::GetFontSize() / 2 + ui.px(3.5f)};
  if (kind != DiffKind::equal)
    put_text_before(at.x + ui.px(14), at.y + ui.px(3), diff_color(*ui.theme, kind),
                    std::string(1, diff_kind_letter(kind)));
  else
    ImGui::GetWindowDrawList()->AddCircleFilled(center, ui.px(2), ui.theme->muted);
}

// Selects a node; a branch unfolds or folds, or with a double click comes to the map.
void TreePanel::press(Document& document, graph::NodeId at) {
  const graph::ModuleNode& node = document.model->tree.node(at);
  const bool branch = !node.children.empty();
  if (branch && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    document.zoom(at);
  else if (branch)
    open_[graph::index(at)] = !open_[graph::index(at)], stale_ = true;
  document.select(node.tensor && !branch ? Selected(*node.tensor) : Selected(at));
  seen_selection_ = document.history.count();  // it is in sight already
}

void TreePanel::draw_line(Document& document, const Ui& ui, const Line& line) {
  const Model& model = *document.model;
  const graph::ModuleNode& node = model.tree.node(line.node);
  const bool branch = !node.children.empty();
  const bool selected = (node.tensor && document.selected_tensor() == node.tensor) ||
                        document.selected() == Selected(line.node);
  const float height = ImGui::GetFontSize() + ui.px(9);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const IdScope scope(graph::index(line.node));
  if (ImGui::Selectable("##line", selected, ImGuiSelectableFlags_AllowDoubleClick, {width, height}))
    press(document, line.node);
  if (ImGui::IsItemHovered()) document.hover.set(line.node);
  if (document.hover.module() == line.node && !selected && !ImGui::IsItemHovered())
    ImGui::GetWindowDrawList()->AddRect(at, at + ImVec2{width, height}, with_alpha(ui.theme->highlight, 0.5f),
                                        ui.px(3));
  hover_card(ui, [&] { describe(model, ui, line.node); });
  // how the tensor differs from another model's stands at the far end
  const float right = at.x + width - ui.px(4) - (document.diff.result.value() ? ui.px(14) : 0);
  draw_difference(document, ui, line.node, {right, at.y});

  // a narrow tree needs its width for the names
  const float indent =
      ui.px(2) + ui.px(width > ui.px(230) ? 12 : 8) * static_cast<float>(std::min<int>(line.depth, 12));
  const float y = at.y + ui.px(3);
  if (branch)
    fold_arrow(ui, {at.x + indent + ui.px(5), at.y + height / 2 - ui.px(1)}, open_[graph::index(line.node)]);
  const bool with_percent = width > ui.px(290);
  const bool with_parameters = width > ui.px(370);
  const float percent_width = with_percent ? ui.px(52) : 0;
  const std::string name = shown(line_name(model.tree, line));
  const float name_room = right - at.x - indent - ui.px(14);
  const float all_figures = percent_width + ui.px(78) + (with_parameters ? ui.px(64) : 0);
  // in a narrow tree the first part of the name goes before the size
  const std::size_t dot = name.find('.');
  const std::string least = dot == std::string::npos ? name : name.substr(0, dot) + "\xE2\x80\xA6";
  const bool with_size = with_percent || text_width(least) <= name_room - all_figures;
  const float figures_width = with_size ? all_figures : 0;
  // modules without a tensor that passes the table's filter are dimmed
  const std::vector<bool>& lit = document.table.view().lit;
  const bool dimmed = !selected && !lit.empty() && !lit[graph::index(line.node)];
  put_text({at.x + indent + ui.px(15), y},
           dimmed ? mix(ui.theme->panel, ui.theme->muted, 0.7f) : ui.theme->text,
           elided_end(name, name_room - figures_width));
  const double share = share_of(node.bytes, model.weight_bytes);
  const ImU32 second = selected ? ui.theme->text : ui.theme->muted;
  if (with_percent) put_text_before(right, y, second, percent_text(share));
  if (with_size)
    put_text_before(right - percent_width, y, with_percent ? ui.theme->text : second,
                    format_bytes(node.bytes));
  if (with_parameters)
    put_text_before(right - percent_width - ui.px(78), y, second, format_count(node.parameters));
  // a hairline of the share under the name
  const ImVec2 low = at + ImVec2{indent + ui.px(15), height - ui.px(3)};
  const float filled = std::max(ui.px(1), (right - low.x) * static_cast<float>(share));
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(low, {right, low.y + ui.px(2)}, ui.theme->grid, ui.px(1));
  draw->AddRectFilled(low, low + ImVec2{filled, ui.px(2)}, ui.theme->spaces[plan::index(plan::Space::device)],
                      ui.px(1));
}

}  // namespace

std::unique_ptr<Panel> make_tree_panel() { return std::make_unique<TreePanel>(); }

}  // namespace loadline::gui
