// Makes the lines of the list when a module is unfolded, and their texts when they are visible.
#include "app/gui/panels/forward/forward.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostOpen = 6;  // children that are shown from the start
constexpr int kMostIndent = 16;
constexpr std::size_t kMostName = 300;  // bytes of a name that are drawn

std::uint32_t first_op(const graph::OpTree& tree, graph::OpNodeId id) {
  const graph::OpNode& node = tree.node(id);
  std::uint32_t first = node.ops.empty() ? UINT32_MAX : node.ops.front();
  // children are in the order in which the pass enters them: the first one begins first
  if (!node.children.empty()) first = std::min(first, first_op(tree, node.children.front()));
  return first;
}

bool same_modules(const graph::OpTree& a, const graph::OpTree& b) {
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [](const graph::OpNode& x, const graph::OpNode& y) {
                      return x.name == y.name && x.parent == y.parent;
                    });
}

// The node of an operator and all its parents, from the root.
std::vector<graph::OpNodeId> path_of(const graph::OpTree& tree, std::size_t op) {
  std::vector<graph::OpNodeId> path;
  for (std::size_t i = 0; i < tree.nodes.size() && path.empty(); ++i)
    if (std::binary_search(tree.nodes[i].ops.begin(), tree.nodes[i].ops.end(), op))
      path.push_back(graph::OpNodeId{static_cast<std::uint32_t>(i)});
  while (!path.empty() && path.back() != graph::kRootOpNode) path.push_back(tree.node(path.back()).parent);
  std::ranges::reverse(path);
  return path;
}

}  // namespace

void ModuleLines::forget() {
  scene_.reset();
  figures_.reset();
  lines_.clear();
  peaks_.clear();
  open_.clear();
  seen_.reset();
  marked_.reset();
}

void ModuleLines::refresh(const Workspace& workspace) {
  const Document& document = workspace.document();
  if (scene_ != document.forward.scene.value()) {
    // another profile of the same model keeps what was unfolded, if its modules are the same
    const bool same = scene_ && scene_->graph == document.forward.scene.value()->graph &&
                      same_modules(scene_->tree, document.forward.scene.value()->tree);
    scene_ = document.forward.scene.value();
    peaks_.assign(scene_->tree.nodes.size(), 0);
    if (!same) {
      const graph::OpTree& tree = scene_->tree;
      open_.assign(tree.nodes.size(), false);
      // modules with few parts are open at first, and the first of repeated modules
      std::vector<graph::OpNodeId> look = {graph::kRootOpNode};
      for (std::size_t i = 0; i < look.size(); ++i) {
        open_[graph::index(look[i])] = true;
        const auto groups = graph::folded_children(tree, look[i]);
        const bool repeats =
            std::ranges::any_of(groups, [](const graph::OpGroup& group) { return group.members.size() > 1; });
        if (repeats)
          open_[graph::index(groups.front().members.front())] = true;
        else if (groups.size() <= kMostOpen)
          for (const graph::OpGroup& group : groups) look.push_back(group.members.front());
      }
    }
    stale_ = true;
    figures_.reset();
  }
  if (figures_ != document.forward.figures()) {
    figures_ = document.forward.figures();
    peaks_.assign(scene_->tree.nodes.size(), 0);
    if (figures_) peaks_ = peaks_inside(scene_->tree, figures_->usage);
  }
  const bool other_folding = folded_ != workspace.settings.fold_operators;
  folded_ = workspace.settings.fold_operators;
  if (other_folding || seen_ != document.forward.shown) reveal(document);
  if (!stale_ && !other_folding) return;
  unfold();
  mark(document);
}

void ModuleLines::reveal(const Document& document) {
  stale_ = true;
  seen_ = document.forward.shown;
  if (!seen_) return;
  scroll_ = true;
  const graph::OpTree& tree = scene_->tree;
  const std::vector<graph::OpNodeId> path = path_of(tree, *seen_);
  for (std::size_t i = 0; i < path.size(); ++i) {
    open_[graph::index(path[i])] = true;
    if (!folded_ || i + 1 == path.size()) continue;
    const auto groups = graph::folded_children(tree, path[i]);
    const bool stands_for_itself = std::ranges::any_of(
        groups, [&](const graph::OpGroup& group) { return group.members.front() == path[i + 1]; });
    if (!stands_for_itself) break;
  }
}

void ModuleLines::mark(const Document& document) {
  marked_.reset();
  if (!document.forward.shown) return;
  const std::vector<graph::OpNodeId> path = path_of(scene_->tree, *document.forward.shown);
  const auto holds = [&](const Line& line) {
    if (line.op) return *line.op == *document.forward.shown;
    return std::ranges::any_of(path, [&](graph::OpNodeId id) {
      const auto& members = line.group.members;
      return std::ranges::find(members, id) != members.end();
    });
  };
  for (std::size_t i = 0; i < lines_.size(); ++i)
    if (holds(lines_[i])) marked_ = i;  // what is inside comes later
}

std::vector<graph::OpGroup> ModuleLines::groups_inside(graph::OpNodeId node) const {
  if (folded_) return graph::folded_children(scene_->tree, node);
  std::vector<graph::OpGroup> groups;
  for (const graph::OpNodeId id : scene_->tree.node(node).children) groups.push_back({{id}});
  return groups;
}

ModuleLines::Line ModuleLines::line_of(graph::OpGroup group, std::uint16_t depth) const {
  const graph::OpTree& tree = scene_->tree;
  Line line = {graph::group_name(tree, group), std::move(group), std::nullopt, depth, true};
  // a module with one part shares its line: "layers.0 - 31"
  for (;;) {
    const graph::OpNode& node = tree.node(line.group.members.front());
    if (line.group.members.size() > 1 || !node.ops.empty()) break;
    std::vector<graph::OpGroup> below = groups_inside(line.group.members.front());
    if (below.size() != 1) break;
    line.group = std::move(below.front());
    line.name += tree.separator + graph::group_name(tree, line.group);
  }
  const graph::OpNode& node = tree.node(line.group.members.front());
  if (node.children.empty() && node.all_ops == 1) {
    line.op = node.ops.back();
    line.branch = false;
  }
  return line;
}

// Operators and modules in the order of the pass.
std::vector<ModuleLines::Line> ModuleLines::inside(graph::OpNodeId node, std::uint16_t depth) const {
  const graph::OpTree& tree = scene_->tree;
  std::vector<std::pair<std::uint32_t, Line>> parts;
  for (const std::uint32_t op : tree.node(node).ops)
    if (!graph::is_part_of_next(*scene_->forward(), op))
      parts.emplace_back(op, Line{"", {}, op, depth, false});
  for (graph::OpGroup& group : groups_inside(node)) {
    const std::uint32_t first = first_op(tree, group.members.front());
    parts.emplace_back(first, line_of(std::move(group), depth));
  }
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Line> lines;
  lines.reserve(parts.size());
  for (auto& [first, line] : parts) lines.push_back(std::move(line));
  return lines;
}

void ModuleLines::unfold() {
  stale_ = false;
  lines_.clear();
  std::vector<Line> stack;  // last first
  const auto push = [&](std::vector<Line> lines) {
    std::move(lines.rbegin(), lines.rend(), std::back_inserter(stack));
  };
  push(inside(graph::kRootOpNode, 0));
  while (!stack.empty()) {
    Line line = std::move(stack.back());
    stack.pop_back();
    const bool open = line.branch && open_[graph::index(line.group.members.front())];
    if (open) push(inside(line.group.members.front(), static_cast<std::uint16_t>(line.depth + 1)));
    lines_.push_back(std::move(line));
  }
}

void ModuleLines::draw(Workspace& workspace, const Ui& ui, float height) {
  Document& document = workspace.document();
  refresh(workspace);
  const float room = ImGui::GetContentRegionAvail().x;
  const bool wide = room > ui.px(960), middle = room > ui.px(620);
  const char* id = wide ? "modules" : middle ? "modules, narrow" : "modules, small";
  if (!ImGui::BeginTable(id, 6, kListTable | ImGuiTableFlags_Resizable, {0, height})) return;
  const auto where = [](bool there) { return there ? 0 : ImGuiTableColumnFlags_Disabled; };
  stretched_column("Module or result", 1);
  fixed_column(ui, "Operators", wide ? 130 : 90);
  fixed_column(ui, "Weights", 116, where(middle));
  fixed_column(ui, "Result", 150, where(wide));
  fixed_column(ui, "Result bytes", 92, where(wide));
  fixed_column(ui, "Peak inside", wide ? 160 : 132);
  table_headers(ui, {2, 4, 5});
  if (scroll_ && table_is_measured(lines_.size(), height)) {
    scroll_ = false;
    if (marked_) scroll_to_row(*marked_);
  }
  move(document, ui);
  for_rows_in_sight(lines_.size(), [&](std::size_t i) {
    const IdScope scope(i);
    draw_line(document, ui, lines_[i], (at_ ? at_ : marked_) == i);
  });
  ImGui::EndTable();
}

void ModuleLines::choose(Document& document, const Line& line) {
  if (!line.op) return;
  document.forward.shown = *line.op;
  seen_ = document.forward.shown;  // it is in sight
  stale_ = true;
  const graph::Op& op = scene_->forward()->ops[*line.op];
  if (!op.weights.empty()) document.select(op.weights.front());
}

// Up and down choose a line, right and left unfold and fold it.
void ModuleLines::move(Document& document, const Ui& ui) {
  if (at_ && *at_ >= lines_.size()) at_.reset();
  if (const auto now = row_by_keys(ui, at_ ? at_ : marked_, lines_.size())) {
    at_ = now;
    scroll_to_row(*now);
    choose(document, lines_[*now]);
  }
  if (!at_ || !lines_[*at_].branch || !list_has_keyboard()) return;
  const std::size_t node = graph::index(lines_[*at_].group.members.front());
  const bool open = list_key_pressed(ListKey::right) || (row_is_entered() && !open_[node]);
  const bool close = list_key_pressed(ListKey::left) || (row_is_entered() && open_[node]);
  if (open == close || open == open_[node]) return;
  open_[node] = open;
  stale_ = true;
}

void ModuleLines::describe(const Ui& ui, const Line& line) const {
  const graph::OpTree& tree = scene_->tree;
  if (line.group.members.empty())
    return text(shown(beginning(forward::op_text(scene_->forward()->ops[*line.op]), kMostName)));
  const graph::OpNode& node = tree.node(line.group.members.front());
  text(shown(beginning(graph::op_path(tree, line.group.members.front()), kMostName)));
  if (line.group.members.size() > 1)
    muted(ui, fmt::format("the first of {} that compute the same", line.group.members.size()));
  muted(ui, fmt::format("{}, {} with {} bytes{}", counted(node.all_ops, "operator"),
                        counted(node.weights, "weight"), format_grouped(node.weight_bytes),
                        line.group.members.size() > 1 ? " each" : ""));
}

void ModuleLines::draw_name(Document& document, const Ui& ui, const Line& line, bool selected) {
  const float indent = ui.px(14) * static_cast<float>(std::min<int>(line.depth, kMostIndent));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::Selectable("##line", selected, ImGuiSelectableFlags_SpanAllColumns)) {
    at_.reset();
    if (line.branch) {
      const std::size_t node = graph::index(line.group.members.front());
      open_[node] = !open_[node];
      stale_ = true;
    } else if (selected) {
      document.forward.shown.reset();
      seen_.reset();
      stale_ = true;
    } else {
      choose(document, line);
    }
  }
  if (line.op && is_right_clicked()) document.select_for_menu(OperatorAt{*line.op});
  hover_card(ui, [&] { describe(ui, line); });
  const float line_height = ImGui::GetTextLineHeight();
  if (line.branch)
    fold_arrow(ui, {at.x + indent + ui.px(5), at.y + line_height / 2},
               open_[graph::index(line.group.members.front())]);
  const std::string times =
      line.group.members.size() > 1 ? fmt::format("x{}", line.group.members.size()) : "";
  const float left = indent + ui.px(15);
  const float room = ImGui::GetContentRegionAvail().x - left - (times.empty() ? 0 : ui.px(44));
  const bool unnamed = line.name.empty();  // an operator beside others of its module
  const std::string_view words = unnamed ? scene_->forward()->ops[*line.op].kind : line.name;
  const std::string name = elided_name(shown(beginning(words, kMostName)), std::max(room, ui.px(20)));
  put_text({at.x + left, at.y}, unnamed ? ui.theme->muted : ui.theme->text, name);
  if (times.empty()) return;
  const FontScope font(ui.fonts.small);
  const float x = at.x + left + text_width(name) * ui.fonts.body->FontSize / ImGui::GetFontSize() + ui.px(8);
  const ImVec2 size = ImGui::CalcTextSize(times.c_str());
  const float top = at.y + (line_height - size.y) / 2;
  ImGui::GetWindowDrawList()->AddRectFilled({x, top - ui.px(1)},
                                            {x + size.x + ui.px(10), top + size.y + ui.px(1)},
                                            with_alpha(ui.theme->accent, 0.18f), ui.px(4));
  put_text({x + ui.px(5), top}, ui.theme->accent, times);
}

void ModuleLines::draw_line(Document& document, const Ui& ui, const Line& line, bool selected) {
  const graph::ForwardGraph& forward = *scene_->forward();
  const graph::OpTree& tree = scene_->tree;
  const ImU32 second = selected ? ui.theme->text : ui.theme->muted;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  draw_name(document, ui, line, selected);
  std::uint64_t ops = 0, bytes = 0, most = 0;
  // of repeated modules the figures of one: so do those of its parts, which are listed below it
  for (const graph::OpNodeId id : line.group.members) most = std::max(most, peaks_[graph::index(id)]);
  if (!line.group.members.empty()) {
    ops = tree.node(line.group.members.front()).all_ops;
    bytes = tree.node(line.group.members.front()).weight_bytes;
  }
  const std::string times =
      line.group.members.size() > 1 ? fmt::format("{} x ", line.group.members.size()) : "";
  if (line.group.members.empty()) {
    for (const graph::TensorId id : forward.ops[*line.op].weights)
      bytes += graph::tensor_bytes(*scene_->graph, scene_->graph->tensor(id));
    if (figures_) most = figures_->usage[*line.op].passing();
    if (figures_ && *line.op > 0 && graph::is_part_of_next(forward, *line.op - 1))
      most = std::max(most, figures_->usage[*line.op - 1].passing());
  }
  ImGui::TableNextColumn();
  if (line.op)
    name_text(ui, line.name.empty() ? "" : beginning(forward.ops[*line.op].kind, kMostName), 0, second);
  else
    text_colored(second, times + format_grouped(ops));
  if (ImGui::TableNextColumn() && bytes > 0) right_aligned(times + format_bytes(bytes), ui.theme->text);
  const bool gives = line.op && !forward.ops[*line.op].outputs.empty();
  if (ImGui::TableNextColumn() && gives)
    name_text(ui, sides_text(forward, forward.ops[*line.op].outputs.front()), 0, second);
  if (ImGui::TableNextColumn() && gives)
    right_aligned(value_size_text(figures_.get(), forward.ops[*line.op].outputs.front()), second);
  ImGui::TableNextColumn();
  if (!figures_ || figures_->peak.bytes == 0) return;
  bar_with_figure(ui, share_of(most, figures_->peak.bytes),
                  most == figures_->peak.bytes ? ui.theme->warning : ui.theme->accent, 86, format_bytes(most),
                  second);
}

}  // namespace loadline::gui
