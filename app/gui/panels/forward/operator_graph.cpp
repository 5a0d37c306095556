// The operators of one module as a graph: boxes in layers, with the sizes of what flows between them.
#include "app/gui/panels/forward/forward.h"
#include "app/gui/panels/panels.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostBoxes = 120;  // of a module; else those nearest to an operator
constexpr std::size_t kMostName = 120;   // bytes of a name that are drawn
constexpr std::uint64_t kFewOperators = 6;

class GraphPanel final : public Panel {
 public:
  GraphPanel() : Panel("Shows the operators of a module, and what flows between them.") {}
  void forget() override;

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  // Takes the module and the operator that somebody chose in any panel.
  void follow(Document& document);
  void follow_scene(Document& document);
  void follow_operator(Document& document, bool fresh);
  void show_selected(Document& document);
  void enter(Document& document, graph::OpNodeId module);
  void leave(Document& document);
  void arrange(const Document& document, const Ui& ui);
  void draw_head(Document& document, const Ui& ui);
  void draw_path(Document& document, const Ui& ui);
  void draw_canvas(Document& document, const Ui& ui);
  void handle_mouse(Document& document, const Ui& ui);
  void handle_keys(Document& document, const Ui& ui);
  void choose(Document& document, std::size_t box);
  void open(Document& document, std::size_t box);
  void fit(bool readable);
  graph::OpNodeId top() const { return view::first_that_divides(scene_->tree, graph::kRootOpNode); }
  const graph::ForwardGraph& forward() const { return *scene_->forward(); }

  std::shared_ptr<const ForwardScene> scene_;
  std::vector<graph::OpNodeId> nodes_;  // per operator
  OptionControls controls_;
  GraphPlot plot_;
  // what the plot was made for
  graph::OpNodeId module_ = graph::kRootOpNode;
  std::shared_ptr<const forward::ForwardFigures> figures_;
  float scale_ = 0;
  bool stale_ = true, wants_fit_ = true;
  // what was followed, where the arrows stand, where the graph was left
  std::optional<std::size_t> seen_;
  std::uint64_t seen_selection_ = 0;
  std::optional<std::size_t> at_, hovered_edge_;
  std::optional<graph::OpNodeId> left_;
};

void GraphPanel::forget() {
  scene_.reset();
  figures_.reset();
  plot_.forget();
  nodes_.clear();
}

void GraphPanel::enter(Document& document, graph::OpNodeId module) {
  document.forward.module = view::first_that_divides(scene_->tree, module);
  stale_ = wants_fit_ = true;
  at_.reset();
}

// To the module that holds this one and more than it.
void GraphPanel::leave(Document& document) {
  if (module_ == top()) return;
  graph::OpNodeId to = module_;
  while (to != graph::kRootOpNode && view::first_that_divides(scene_->tree, to) == module_)
    to = scene_->tree.node(to).parent;
  left_ = module_;
  enter(document, to);
}

// A tensor leads to the operator that reads it first, a module of tensors to that of operators by its name.
void GraphPanel::show_selected(Document& document) {
  if (const auto* const op = std::get_if<OperatorAt>(&document.selected())) {
    if (document.exists(*op)) document.forward.shown = op->at;
  } else if (const auto tensor = document.selected_tensor()) {
    const auto use = std::ranges::find(scene_->weights, *tensor, &ForwardScene::WeightUse::tensor);
    const bool shown = document.forward.shown && *document.forward.shown < forward().ops.size();
    if (use != scene_->weights.end() && !(shown && reads(forward().ops[*document.forward.shown], *tensor)))
      document.forward.shown = use->ops.first;
  } else if (const auto* const node = std::get_if<graph::NodeId>(&document.selected())) {
    std::string wanted = graph::module_path(document.model->tree, *node);
    std::ranges::replace(wanted, '.', scene_->tree.separator);
    for (std::uint32_t i = 0; i < scene_->tree.nodes.size(); ++i)
      if (graph::op_path(scene_->tree, graph::OpNodeId{i}) == wanted && scene_->tree.nodes[i].all_ops > 1)
        return enter(document, graph::OpNodeId{i});
  }
}

void GraphPanel::follow_scene(Document& document) {
  scene_ = document.forward.scene.value();
  nodes_ = view::nodes_of_operators(forward(), scene_->tree);
  if (graph::index(document.forward.module) >= scene_->tree.nodes.size())
    document.forward.module = graph::kRootOpNode;
  document.forward.module = view::first_that_divides(scene_->tree, document.forward.module);
  stale_ = wants_fit_ = true;
  at_.reset();
  seen_.reset();
  left_.reset();
}

// An operator that is drawn is marked; for another, the graph goes to its module.
void GraphPanel::follow_operator(Document& document, bool fresh) {
  seen_ = document.forward.shown;
  at_.reset();
  if (!seen_) return;
  const auto op = static_cast<std::uint32_t>(*seen_);
  graph::OpNodeId holds = nodes_[op];
  // a few operators are better seen among their neighbors
  while (holds != graph::kRootOpNode && scene_->tree.node(holds).all_ops < kFewOperators)
    holds = scene_->tree.node(holds).parent;
  const auto box = !fresh && module_ == document.forward.module ? plot_.part().box_of(op) : std::nullopt;
  const bool here = box && (plot_.part().boxes[*box].kind == view::BoxKind::op || holds == module_);
  if (!here) return enter(document, holds);
  at_ = box;
  plot_.keep_in_sight(*box);
}

void GraphPanel::follow(Document& document) {
  const bool fresh = scene_ != document.forward.scene.value();
  if (fresh) follow_scene(document);
  if (fresh || seen_selection_ != document.history.count()) {
    seen_selection_ = document.history.count();
    show_selected(document);
  }
  if (document.forward.shown && *document.forward.shown >= forward().ops.size())
    document.forward.shown.reset();
  if (seen_ != document.forward.shown) follow_operator(document, fresh);
  if (module_ == document.forward.module) return;
  module_ = document.forward.module;
  stale_ = wants_fit_ = true;
}

void GraphPanel::arrange(const Document& document, const Ui& ui) {
  if (!stale_ && figures_ == document.forward.figures() && scale_ == ui.scale) return;
  wants_fit_ = wants_fit_ || scale_ != ui.scale;
  stale_ = false;
  figures_ = document.forward.figures();
  scale_ = ui.scale;
  const auto first_of = [&](graph::OpNodeId module) {
    const auto at = std::ranges::find_if(
        nodes_, [&](graph::OpNodeId node) { return view::is_inside(scene_->tree, node, module); });
    return static_cast<std::uint32_t>(at - nodes_.begin());
  };
  std::optional<std::uint32_t> around;
  if (seen_) around = static_cast<std::uint32_t>(*seen_);
  if (left_) around = first_of(*left_);
  plot_.set_part(document, ui, scene_,
                 view::graph_part(forward(), scene_->tree, nodes_, module_, around, kMostBoxes));
  at_ = around ? plot_.part().box_of(*around) : std::nullopt;
  left_.reset();
}

void GraphPanel::fit(bool readable) {
  plot_.fit(readable);
  if (readable && at_) plot_.keep_in_sight(*at_);
}

void GraphPanel::choose(Document& document, std::size_t box) {
  at_ = box;
  plot_.keep_in_sight(box);
  const view::GraphBox& chosen = plot_.part().boxes[box];
  if (chosen.kind != view::BoxKind::op) return;
  document.forward.shown = seen_ = chosen.op;
  document.select(OperatorAt{chosen.op});
  seen_selection_ = document.history.count();
}

// Goes into a module; of a part with too many boxes, draws those near the operator.
void GraphPanel::open(Document& document, std::size_t box) {
  const view::GraphBox& chosen = plot_.part().boxes[box];
  if (chosen.kind == view::BoxKind::module) return enter(document, chosen.module);
  choose(document, box);
  if (chosen.kind == view::BoxKind::op && plot_.part().left_out > 0) stale_ = true;
}

void GraphPanel::handle_mouse(Document& document, const Ui& ui) {
  hovered_edge_.reset();
  const ImGuiIO& io = ImGui::GetIO();
  const bool hovered = ImGui::IsItemHovered();
  if (hovered && std::abs(io.MouseWheel) > 0) plot_.zoom_at(io.MousePos, std::pow(1.2f, io.MouseWheel));
  if ((ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) ||
      (hovered && ImGui::IsMouseDragging(ImGuiMouseButton_Right)))
    plot_.move(io.MouseDelta);
  if (!hovered) return;
  const auto box = plot_.box_at(io.MousePos);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) give_keyboard();
  if (box && is_right_clicked() && plot_.part().boxes[*box].kind == view::BoxKind::op) {
    choose(document, *box);
    return document.select_for_menu(OperatorAt{plot_.part().boxes[*box].op});
  }
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return box ? open(document, *box) : fit(false);
  if (box && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) choose(document, *box);
  if (box) return hover_card(ui, [&] { plot_.describe_box(document, ui, *box); });
  hovered_edge_ = plot_.edge_at(ui, io.MousePos);
  if (!hovered_edge_) return;
  document.hover.set(plot_.part().edges[*hovered_edge_].values.front());
  hover_card(ui, [&] { plot_.describe_edge(document, ui, *hovered_edge_); });
}

void GraphPanel::handle_keys(Document& document, const Ui& ui) {
  if (!list_has_keyboard()) return;
  if (focus_is_seen())
    ImGui::GetWindowDrawList()->AddRect(plot_.area().low, plot_.area().high, ui.theme->accent, ui.px(4), 0,
                                        ui.px(1));
  constexpr std::array<std::pair<ListKey, view::Direction>, 4> kArrows = {
      {{ListKey::up, view::Direction::up},
       {ListKey::down, view::Direction::down},
       {ListKey::left, view::Direction::left},
       {ListKey::right, view::Direction::right}}};
  for (const auto& [key, direction] : kArrows) {
    if (!list_key_pressed(key) || plot_.part().boxes.empty()) continue;
    if (!at_)
      choose(document, 0);
    else if (const auto next = view::box_beside(plot_.part(), plot_.places(), *at_, direction))
      choose(document, *next);
  }
  if (list_key_pressed(ListKey::enter) && at_) open(document, *at_);
  if (list_key_pressed(ListKey::backspace)) leave(document);
  if (list_key_pressed(ListKey::home)) fit(false);
  const ImVec2 middle = (plot_.area().low + plot_.area().high) / 2;
  if (list_key_pressed(ListKey::page_up)) plot_.zoom_at(middle, 1.25f);
  if (list_key_pressed(ListKey::page_down)) plot_.zoom_at(middle, 0.8f);
}

// The path to the module, each part a link; the last one is where the graph stands.
void GraphPanel::draw_path(Document& document, const Ui& ui) {
  std::vector<graph::OpNodeId> path = {module_};
  while (path.back() != graph::kRootOpNode) path.push_back(scene_->tree.node(path.back()).parent);
  std::ranges::reverse(path);
  const float line = ImGui::GetCursorPosY();
  const auto beside = [&](float gap) {
    ImGui::SameLine(0, gap);
    ImGui::SetCursorPosY(line);
  };
  for (std::size_t i = 0; i < path.size(); ++i) {
    const IdScope scope(i);
    const std::string name =
        i == 0 ? std::string("Model") : shown(beginning(scene_->tree.node(path[i]).name, kMostName));
    if (i > 0) {
      beside(ui.px(5));
      control_text("/", ui.theme->muted);
      beside(ui.px(5));
    }
    if (path[i] == module_) {
      control_text(name, ui.theme->text);
      continue;
    }
    ImGui::SetCursorPosY(line + ImGui::GetStyle().FramePadding.y);
    if (link(ui, "part", name, text_width(name) + 1)) enter(document, path[i]);
  }
  beside(0);
  ImGui::Dummy({0, 0});
}

void GraphPanel::draw_head(Document& document, const Ui& ui) {
  draw_path(document, ui);
  const view::GraphPart& part = plot_.part();
  const auto drawn = std::ranges::count_if(
      part.boxes, [](const view::GraphBox& box) { return box.kind <= view::BoxKind::module; });
  const bool whole = part.left_out == 0;
  const std::string words =
      whole ? counted(scene_->tree.node(module_).all_ops, "operator")
            : fmt::format("{} of {} boxes, those nearest to {}", drawn,
                          format_grouped(static_cast<std::uint64_t>(drawn) + part.left_out),
                          at_ ? "the marked one" : "the first");
  continue_line(ui, 14, text_width(words));
  control_text(words, ui.theme->muted);
  tooltip(ui, whole ? "The operators of this module, with those of the modules inside it"
                    : "A module with more boxes than can be read is drawn in part. Enter, or a double "
                      "click, on another box draws the boxes around that one");
  if (module_ != top()) {
    continue_line(ui, 14, text_width("Up") + ui.px(20));
    if (button(ui, "Up")) leave(document);
    tooltip(ui, "The module that holds this one (Backspace)");
  }
  continue_line(ui, 8, text_width("Whole") + ui.px(20));
  if (button(ui, "Whole")) fit(false);
  tooltip(ui, "Shows all of the graph (Home, or a double click beside the boxes)");
}

void GraphPanel::draw_canvas(Document& document, const Ui& ui) {
  const ImVec2 size = ImGui::GetContentRegionAvail();
  if (size.x < ui.px(120) || size.y < ui.px(80)) return;
  const ChildScope child("graph", size);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool moved = plot_.set_area({at, at + size});
  if (std::exchange(wants_fit_, false) || (moved && !at_)) fit(true);
  plot_area("canvas", size);
  handle_mouse(document, ui);
  handle_keys(document, ui);
  plot_.draw(document, ui, at_, hovered_edge_);
}

void GraphPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (forward_absent(document, ui)) return;
  forward_controls(document, ui, controls_);
  if (forward_absent(document, ui)) return;
  follow(document);
  arrange(document, ui);
  draw_head(document, ui);
  if (module_ != document.forward.module || stale_) {  // a part of the path was clicked
    follow(document);
    arrange(document, ui);
  }
  draw_canvas(document, ui);
}

}  // namespace

std::unique_ptr<Panel> make_graph_panel() { return std::make_unique<GraphPanel>(); }

}  // namespace loadline::gui
