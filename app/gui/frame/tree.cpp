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

void describe(const Document& document, const Ui& ui, graph::NodeId id) {
  const Model& model = *document.model;
  const graph::ModuleNode& node = model.tree.node(id);
  const double share = share_of(node.bytes, model.weight_bytes);
  text(shown(graph::module_path(model.tree, id)));
  muted(ui, fmt::format("{} ({} bytes, {}), {} parameters, {}", format_bytes(node.bytes),
                        format_grouped(node.bytes), percent_text(share), format_count(node.parameters),
                        counted(node.tensors, "tensor")));
  if (const auto& totals = document.table.view().totals; !totals.empty() && !node.children.empty())
    muted(ui, fmt::format("{} of {} pass the filter, {}", format_grouped(totals[graph::index(id)].tensors),
                          counted(node.tensors, "tensor"), format_bytes(totals[graph::index(id)].bytes)));
  muted(ui, node.children.empty() ? "Double click to see its values." : "Double click to see it on the map.");
}

class TreePanel final : public Panel {
 public:
  void draw_content(Workspace& workspace, const Ui& ui) override;

 private:
  void reset(const Document& document);
  void reveal(const Document& document);
  void follow_filter(const Document& document);
  bool is_open(graph::NodeId node) const {
    return filtered_ ? !folded_[graph::index(node)] : open_[graph::index(node)];
  }
  void set_open(graph::NodeId node, bool open);
  void unfold(const Document& document);
  void press(Workspace& workspace, graph::NodeId at);
  // Where the name begins and the figures end; the first row of text.
  struct LineRoom {
    float name = 0, right = 0, y = 0, width = 0, height = 0;
    bool selected = false;
  };
  float draw_figures(const Document& document, const Ui& ui, const Line& line, const LineRoom& room) const;
  void draw_line(Workspace& workspace, const Ui& ui, const Line& line);
  void draw_filter(Workspace& workspace, const Ui& ui);
  void go_to_hit(Document& document, int step);
  void move_selection(Workspace& workspace, const Ui& ui);
  void fold(Document& document, std::size_t at, bool open);
  void select_line(Document& document, std::size_t at);

  std::uint64_t seen_model_ = 0;
  std::uint64_t seen_selection_ = 0;
  float seen_scale_ = 0;
  std::vector<bool> open_;    // per node
  std::vector<bool> folded_;  // per node, among what passes the filter, which is open at first
  bool filtered_ = false;     // only what passes the filter is listed
  std::string applied_;       // the filter for which the lines were made
  std::vector<Line> lines_;   // of the open part, top to bottom
  bool stale_ = true;
  std::optional<graph::NodeId> scroll_to_;
  std::string filter_;
  bool wants_keyboard_ = false;  // the lines do, from the filter
};

// What passes is what the tree and the table list; on the map it is lit.
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
  if (branch && is_open(lines_[at].node) != open) return set_open(lines_[at].node, open);
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
  filtered_ = false;
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

void TreePanel::set_open(graph::NodeId node, bool open) {
  if (filtered_)
    folded_[graph::index(node)] = !open;
  else
    open_[graph::index(node)] = open;
  stale_ = true;
}

// Another filter opens all that passes it.
void TreePanel::follow_filter(const Document& document) {
  const TableView& table = document.table.view();
  const bool filtered = !table.lit.empty();
  if (filtered == filtered_ && applied_ == table.applied) return;
  filtered_ = filtered;
  applied_ = table.applied;
  folded_.assign(filtered ? document.model->tree.nodes.size() : 0, false);
  stale_ = true;
}

void TreePanel::unfold(const Document& document) {
  const Model& model = *document.model;
  const std::vector<bool>& lit = document.table.view().lit;
  stale_ = false;
  lines_.clear();
  // an explicit stack, last child first, so that lines come out top to bottom
  std::vector<Line> stack;
  const auto push_children = [&](graph::NodeId node, std::uint16_t depth) {
    const auto& children = model.tree.node(node).children;
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      if (!filtered_ || lit[graph::index(*child)])
        stack.push_back({*child, end_of_chain(model.tree, *child), depth});
  };
  push_children(graph::kRootNode, 0);
  while (!stack.empty()) {
    const Line line = stack.back();
    stack.pop_back();
    lines_.push_back(line);
    if (is_open(line.node)) push_children(line.node, static_cast<std::uint16_t>(line.depth + 1));
  }
}

void TreePanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (seen_model_ != document.id) reset(document);
  if (seen_selection_ != document.history.count() || seen_scale_ != ui.scale) reveal(document);
  seen_scale_ = ui.scale;
  draw_filter(workspace, ui);
  follow_filter(document);  // behind the field: the totals of what it held are gone once it is cleared
  if (stale_) unfold(document);
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
    if (at == lines_.end())  // the filter hides it
      ImGui::SetScrollY(ImGui::GetScrollY());
    else if (top < ImGui::GetScrollY() || top > ImGui::GetScrollY() + room)
      ImGui::SetScrollY(height * std::max(0.0f, std::round((top - room / 2) / height)));
    scroll_to_.reset();
  }
  if (lines_.empty()) return paragraph(ui, "No tensor passes the filter.", ui.theme->muted);
  for_rows_in_sight(
      lines_.size(), [&](std::size_t i) { draw_line(workspace, ui, lines_[i]); }, height);
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

// Selects a node; a double click shows a branch on the map and the values of a tensor, one click unfolds or
// folds a branch.
void TreePanel::press(Workspace& workspace, graph::NodeId at) {
  Document& document = workspace.document();
  const graph::ModuleNode& node = document.model->tree.node(at);
  const bool branch = !node.children.empty(), twice = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
  document.select(node.tensor && !branch ? Selected(*node.tensor) : Selected(at));
  seen_selection_ = document.history.count();  // it is in sight already
  if (twice && !branch)
    workspace.settings.panel = "values";
  else if (twice)
    document.zoom(at);
  else if (branch)
    set_open(at, !is_open(at));
}

// The figures at the right of a line that begins at `at`, which say of a filtered tree what passes, and where
// the name ends.
float TreePanel::draw_figures(const Document& document, const Ui& ui, const Line& line,
                              const LineRoom& room) const {
  const Model& model = *document.model;
  const graph::ModuleNode& node = model.tree.node(line.node);
  const std::vector<NodeTotals>& totals = document.table.view().totals;
  const NodeTotals own = {node.bytes, node.tensors};
  const NodeTotals& passing = filtered_ ? totals[graph::index(line.node)] : own;
  const bool counts = filtered_ && !node.children.empty();
  const bool with_percent = room.width > ui.px(290), with_parameters = !filtered_ && room.width > ui.px(370);
  const float percent_width = with_percent ? ui.px(52) : 0;
  const std::string count = counts ? format_grouped(passing.tensors) : "";
  const std::string size = format_bytes(passing.bytes);
  const double share = share_of(passing.bytes, model.weight_bytes);
  const ImU32 second = room.selected ? ui.theme->text : ui.theme->muted;
  if (with_percent) put_text_before(room.right, room.y, second, percent_text(share));
  put_text_before(room.right - percent_width, room.y, with_percent ? ui.theme->text : second, size);
  float end = room.right - percent_width - text_width(size);
  if (counts) {
    const float right = room.right - percent_width - ui.px(78);
    put_text_before(right, room.y, second, count);
    end = right - text_width(count);
  }
  if (with_parameters) {
    const std::string parameters = format_count(node.parameters);
    put_text_before(room.right - percent_width - ui.px(78), room.y, second, parameters);
    end = room.right - percent_width - ui.px(78) - text_width(parameters);
  }
  // a hairline of the share under the name
  const float low = room.y - ui.px(3) + room.height - ui.px(3);
  const float filled = std::max(ui.px(1), (room.right - room.name) * static_cast<float>(share));
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled({room.name, low}, {room.right, low + ui.px(2)}, ui.theme->grid, ui.px(1));
  draw->AddRectFilled({room.name, low}, {room.name + filled, low + ui.px(2)}, ui.theme->neutral, ui.px(1));
  return end - ui.px(10);
}

void TreePanel::draw_line(Workspace& workspace, const Ui& ui, const Line& line) {
  Document& document = workspace.document();
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
    press(workspace, line.node);
  if (is_right_clicked()) {
    document.select_for_menu(node.tensor && !branch ? Selected(*node.tensor) : Selected(line.node));
    seen_selection_ = document.history.count();
  }
  if (ImGui::IsItemHovered()) document.hover.set(line.node);
  if (document.hover.module() == line.node && !selected && !ImGui::IsItemHovered())
    ImGui::GetWindowDrawList()->AddRect(at, at + ImVec2{width, height}, with_alpha(ui.theme->highlight, 0.5f),
                                        ui.px(3));
  hover_card(ui, [&] { describe(document, ui, line.node); });
  // how the tensor differs from another model's stands at the far end
  const float right = at.x + width - ui.px(4) - (document.diff.result.value() ? ui.px(14) : 0);
  draw_difference(document, ui, line.node, {right, at.y});

  // a narrow tree needs its width for the names
  const float indent =
      ui.px(2) + ui.px(width > ui.px(230) ? 12 : 8) * static_cast<float>(std::min<int>(line.depth, 12));
  if (branch) fold_arrow(ui, {at.x + indent + ui.px(5), at.y + height / 2 - ui.px(1)}, is_open(line.node));
  const std::string name = shown(line_name(model.tree, line));
  const LineRoom room = {at.x + indent + ui.px(15), right, at.y + ui.px(3), width, height, selected};
  const float end = draw_figures(document, ui, line, room);
  put_text({room.name, room.y}, ui.theme->text, elided_name(name, end - room.name));
}

}  // namespace

std::unique_ptr<Panel> make_tree_panel() { return std::make_unique<TreePanel>(); }

}  // namespace loadline::gui
