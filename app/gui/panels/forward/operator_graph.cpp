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
#include <imgui_stdlib.h>

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
  // A place that the graph can show: a module of a level.
  struct Place {
    std::string name;
    std::vector<graph::OpPlace> inside;
    graph::OpNodeId module = graph::kRootOpNode;
  };

  void draw_content(Workspace& workspace, const Ui& ui) override;
  // Takes the module and the operator that somebody chose in any panel.
  void follow(Document& document);
  void follow_level(Document& document);
  void show_selected(Document& document);
  // Marks an operator, and shows the module around it unless it is drawn.
  void go_to(Document& document, graph::OpPlace place);
  void enter(Document& document, graph::OpNodeId module);
  void enter_operator(Document& document, graph::OpPlace place);
  void leave(Document& document);
  void arrange(const Document& document, const Ui& ui);
  void draw_head(Workspace& workspace, const Ui& ui);
  void draw_find(Workspace& workspace, const Ui& ui);
  void walk(Document& document, bool back);
  std::optional<std::size_t> found_at(const Document& document) const;
  void draw_path(Document& document, const Ui& ui);
  std::vector<Place> path() const;
  void draw_canvas(Document& document, const Ui& ui);
  void ask_menu(Document& document, std::optional<std::size_t> box, std::optional<std::size_t> edge);
  void handle_mouse(Document& document, const Ui& ui);
  void handle_keys(Document& document, const Ui& ui);
  std::optional<graph::OpPlace> operator_of(std::size_t box) const;
  void choose(Document& document, std::size_t box);
  void open(Document& document, std::size_t box);
  void follow_values(Document& document, const view::GraphBox& box);
  void fit(bool readable);
  graph::OpNodeId top() const { return view::first_that_divides(level_->tree(), graph::kRootOpNode); }
  bool is_whole() const { return module_ == top() && level_->inside.empty(); }

  std::shared_ptr<const GraphLevel> level_;
  std::optional<view::ModuleGraph> boxes_;  // of module_
  OptionControls controls_;
  GraphPlot plot_;
  // what the plot was made for
  graph::OpNodeId module_ = graph::kRootOpNode;
  std::shared_ptr<const forward::ForwardFigures> figures_;
  float scale_ = 0;
  bool stale_ = true, wants_fit_ = true;
  // what was followed, where the arrows stand, what the picture is to be around
  std::optional<std::size_t> seen_shown_;
  std::uint64_t seen_selection_ = 0;
  std::optional<std::size_t> at_, hovered_edge_;
  std::optional<std::uint32_t> around_;
  // the operators that match what is looked for, and of what they are
  std::vector<graph::OpPlace> found_;
  std::string searched_;
  std::shared_ptr<const ForwardScene> found_in_;
};

void GraphPanel::forget() {
  level_.reset();
  figures_.reset();
  plot_.forget();
  boxes_.reset();
  found_.clear();
  found_in_.reset();
}

void GraphPanel::enter(Document& document, graph::OpNodeId module) {
  document.forward.module = view::first_that_divides(level_->tree(), module);
  stale_ = wants_fit_ = true;
  at_.reset();
}

void GraphPanel::enter_operator(Document& document, graph::OpPlace place) {
  document.forward.inside.push_back(place);
  document.forward.module = graph::kRootOpNode;
  follow_level(document);
}

// To the module that holds this one and more than it, or to the operator around all of it.
void GraphPanel::leave(Document& document) {
  if (module_ == top()) {
    if (level_->inside.empty()) return;
    return go_to(document, level_->inside.back());
  }
  graph::OpNodeId to = module_;
  while (to != graph::kRootOpNode && view::first_that_divides(level_->tree(), to) == module_)
    to = level_->tree().node(to).parent;
  const auto first = std::ranges::find_if(
      level_->nodes, [&](graph::OpNodeId node) { return view::is_inside(level_->tree(), node, module_); });
  if (first != level_->nodes.end())
    around_ = level_->shown_by(static_cast<std::uint32_t>(first - level_->nodes.begin()));
  enter(document, to);
}

// A tensor leads to the operator that reads it first, a module of tensors to that of operators by its name.
void GraphPanel::show_selected(Document& document) {
  const ForwardScene& scene = *level_->scene;
  if (const auto* const op = std::get_if<OperatorAt>(&document.selected())) {
    if (!document.exists(*op)) return;
    document.forward.shown = seen_shown_ = op->at;
    go_to(document, scene.place_of(op->at));
  } else if (const auto* const place = std::get_if<graph::OpPlace>(&document.selected())) {
    if (document.exists(*place)) go_to(document, *place);
  } else if (const auto tensor = document.selected_tensor()) {
    const auto use = std::ranges::find(scene.weights, *tensor, &ForwardScene::WeightUse::tensor);
    const auto& ops = scene.forward()->ops;
    const bool shown = document.forward.shown && *document.forward.shown < ops.size();
    if (use != scene.weights.end() && !(shown && reads(ops[*document.forward.shown], *tensor)))
      document.forward.shown = use->ops.first;
  } else if (const auto* const node = std::get_if<graph::NodeId>(&document.selected())) {
    std::string wanted = graph::module_path(document.model->tree, *node);
    std::ranges::replace(wanted, '.', scene.drawn_tree().separator);
    const auto module = view::module_called(scene.drawn_tree(), wanted);
    if (!module) return;
    document.forward.inside.clear();
    follow_level(document);
    enter(document, *module);
  }
}

// The operators that the document asks for: others than before, or of another pass.
void GraphPanel::follow_level(Document& document) {
  const auto& scene = document.forward.scene.value();
  ForwardWork& forward = document.forward;
  if (level_ && level_->scene == scene && level_->inside == forward.inside) return;
  const auto holds = [&](graph::OpPlace place) {
    return graph::has_op(*scene->drawn(), place) && !graph::op_at(*scene->drawn(), place).bodies.empty();
  };
  if (!std::ranges::all_of(forward.inside, holds)) forward.inside.clear();
  level_ = graph_level(scene, forward.inside);
  if (static_cast<std::size_t>(forward.module) >= level_->tree().nodes.size())
    forward.module = graph::kRootOpNode;
  forward.module = view::first_that_divides(level_->tree(), forward.module);
  boxes_.reset();
  stale_ = wants_fit_ = true;
  at_.reset();
  around_.reset();
}

void GraphPanel::go_to(Document& document, graph::OpPlace place) {
  document.forward.inside = operators_around(*level_->scene, place);
  if (document.forward.inside != level_->inside) document.forward.module = graph::kRootOpNode;
  follow_level(document);
  at_.reset();
  const auto found = level_->op_at(place);
  if (!found) return;
  const std::uint32_t op = level_->shown_by(*found);
  around_ = op;
  graph::OpNodeId holds = level_->nodes[op];
  // a few operators are better seen among their neighbors
  while (holds != graph::kRootOpNode && level_->tree().node(holds).all_ops < kFewOperators)
    holds = level_->tree().node(holds).parent;
  const bool drawn = !stale_ && module_ == document.forward.module;
  const auto box = drawn ? plot_.part().box_of(op) : std::nullopt;
  if (!box || !(plot_.part().boxes[*box].kind == view::BoxKind::op || holds == module_))
    return enter(document, holds);
  at_ = box;
  plot_.keep_in_sight(*box);
}

void GraphPanel::follow(Document& document) {
  const bool fresh = !level_ || level_->scene != document.forward.scene.value();
  follow_level(document);
  if (fresh) seen_shown_.reset();
  if (document.forward.shown && *document.forward.shown >= level_->scene->forward()->ops.size())
    document.forward.shown.reset();
  if (fresh || seen_selection_ != document.history.count()) {
    seen_selection_ = document.history.count();
    show_selected(document);
  }
  if (seen_shown_ != document.forward.shown) {
    seen_shown_ = document.forward.shown;
    if (seen_shown_) go_to(document, level_->scene->place_of(*seen_shown_));
  }
  if (module_ == document.forward.module) return;
  module_ = document.forward.module;
  boxes_.reset();
  stale_ = wants_fit_ = true;
}

void GraphPanel::arrange(const Document& document, const Ui& ui) {
  if (!stale_ && figures_ == document.forward.figures() && scale_ == ui.scale) return;
  wants_fit_ = wants_fit_ || scale_ != ui.scale;
  stale_ = false;
  figures_ = document.forward.figures();
  scale_ = ui.scale;
  if (!boxes_) boxes_.emplace(level_->forward(), level_->tree(), level_->nodes, module_, level_->folded);
  plot_.set_part(document, ui, level_, boxes_->part(around_, kMostBoxes));
  at_ = around_ ? plot_.part().box_of(*around_) : std::nullopt;
}

void GraphPanel::fit(bool readable) {
  plot_.fit(readable, at_);
  if (readable && at_) plot_.keep_in_sight(*at_);
}

std::optional<graph::OpPlace> GraphPanel::operator_of(std::size_t box) const {
  const view::GraphBox& drawn = plot_.part().boxes[box];
  if (drawn.kind != view::BoxKind::op) return std::nullopt;
  const graph::OpPlace place = level_->place_of(drawn.op);
  return place.at == view::InnerGraph::kNoPosition ? std::nullopt : std::optional(place);
}

void GraphPanel::choose(Document& document, std::size_t box) {
  at_ = box;
  plot_.keep_in_sight(box);
  const auto place = operator_of(box);
  if (!place) return;
  around_ = plot_.part().boxes[box].op;
  document.select(document.operator_at(*place));
  if (level_->scene->op_at(*place)) seen_shown_ = document.forward.shown;
  seen_selection_ = document.history.count();
}

// From the values at the edge of the part to what makes or uses them outside.
void GraphPanel::follow_values(Document& document, const view::GraphBox& box) {
  const graph::ForwardGraph& drawn = *level_->scene->drawn();
  const auto concerns = [&](const graph::Op& op) {
    const auto& list = box.kind == view::BoxKind::arrives ? op.outputs : op.inputs;
    return std::ranges::find(list, box.values.front()) != list.end();
  };
  const auto& here = level_->forward().ops;
  for (std::uint32_t i = 0; i < here.size(); ++i)
    if (concerns(here[i]) && !plot_.part().box_of(i)) return go_to(document, level_->place_of(i));
  for (std::size_t k = level_->inside.size(); k-- > 0;) {
    const std::uint32_t body = level_->inside[k].body;
    const auto& outer = body == graph::OpPlace::kMain ? drawn.ops : drawn.bodies[body].ops;
    for (std::uint32_t i = 0; i < outer.size(); ++i)
      if (concerns(outer[i])) return go_to(document, {body, i});
  }
  if (!level_->inside.empty()) leave(document);
}

// Goes into a module or an operator, or along values; of a part with too many boxes, draws those near the
// operator.
void GraphPanel::open(Document& document, std::size_t box) {
  const view::GraphBox chosen = plot_.part().boxes[box];
  if (chosen.kind == view::BoxKind::module) return enter(document, chosen.module);
  if (chosen.kind != view::BoxKind::op) return follow_values(document, chosen);
  choose(document, box);
  const auto place = operator_of(box);
  if (place && !level_->forward().ops[chosen.op].bodies.empty()) return enter_operator(document, *place);
  if (plot_.part().left_out > 0) stale_ = true;
}

// Modules and values are no selection: their menus are made here.
void GraphPanel::ask_menu(Document& document, std::optional<std::size_t> box,
                          std::optional<std::size_t> edge) {
  if (!box) {
    if (edge) document.asked_menu = menu_of_values(document, *level_, plot_.part().edges[*edge].values);
    return;
  }
  choose(document, *box);
  const view::GraphBox& of = plot_.part().boxes[*box];
  if (operator_of(*box)) {
    document.select_for_menu(document.selected());
    seen_selection_ = document.history.count();
  } else if (of.kind == view::BoxKind::module) {
    document.asked_menu = menu_of_module(document, *level_, of.module);
  } else if (!of.values.empty()) {
    document.asked_menu = menu_of_values(document, *level_, of.values);
  }
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
  if (is_right_clicked()) return ask_menu(document, box, plot_.edge_at(ui, io.MousePos));
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return box ? open(document, *box) : fit(false);
  if (box && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) choose(document, *box);
  if (box) return hover_card(ui, [&] { plot_.describe_box(document, ui, *box); });
  hovered_edge_ = plot_.edge_at(ui, io.MousePos);
  if (!hovered_edge_) return;
  const graph::ValueId value = plot_.part().edges[*hovered_edge_].values.front();
  if (const auto passed = level_->scene->in_pass(value)) document.hover.set(*passed);
  hover_card(ui, [&] { plot_.describe_edge(document, ui, *hovered_edge_); });
}

void GraphPanel::handle_keys(Document& document, const Ui& ui) {
  if (!list_has_keyboard() || stale_) return;  // a click has led elsewhere
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
  // the key for the menu asks for that of the selection
  if (at_ && document.asked_menu && document.asked_menu->title.empty() && !operator_of(*at_))
    ask_menu(document, at_, std::nullopt);
  if (list_key_pressed(ListKey::enter) && at_) return open(document, *at_);
  if (list_key_pressed(ListKey::backspace)) return leave(document);
  if (list_key_pressed(ListKey::home)) fit(false);
  const ImVec2 middle = (plot_.area().low + plot_.area().high) / 2;
  if (list_key_pressed(ListKey::page_up)) plot_.zoom_at(middle, 1.25f);
  if (list_key_pressed(ListKey::page_down)) plot_.zoom_at(middle, 0.8f);
}

// From the model down to what is drawn. Of the levels above, the operator that was entered.
std::vector<GraphPanel::Place> GraphPanel::path() const {
  std::vector<Place> places = {{"Model", {}, graph::kRootOpNode}};
  for (std::size_t i = 0; i < level_->inside.size(); ++i) {
    const graph::Op& op = graph::op_at(*level_->scene->drawn(), level_->inside[i]);
    const std::string_view name = op.name;
    const std::string_view last = name.substr(name.rfind(level_->scene->drawn_tree().separator) + 1);
    places.push_back({std::string(beginning(op.kind, kMostName)), {}, graph::kRootOpNode});
    if (!last.empty() && last != op.kind) places.back().name += " " + std::string(beginning(last, kMostName));
    places.back().inside.assign(level_->inside.begin(),
                                level_->inside.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  std::vector<graph::OpNodeId> modules;
  for (graph::OpNodeId at = module_; at != graph::kRootOpNode; at = level_->tree().node(at).parent)
    modules.push_back(at);
  std::ranges::reverse(modules);
  for (const graph::OpNodeId module : modules)
    places.push_back(
        {std::string(beginning(level_->tree().node(module).name, kMostName)), level_->inside, module});
  return places;
}

// Each part is a link; the last one is where the graph stands. The middle of a deep path is left out.
void GraphPanel::draw_path(Document& document, const Ui& ui) {
  constexpr std::size_t kMostParts = 7;
  std::vector<Place> places = path();
  const std::size_t left_out = places.size() - std::min(places.size(), kMostParts);
  if (left_out > 0)
    places.erase(places.begin() + 2, places.begin() + 2 + static_cast<std::ptrdiff_t>(left_out));
  const float line = ImGui::GetCursorPosY();
  const auto beside = [&](float gap) {
    ImGui::SameLine(0, gap);
    ImGui::SetCursorPosY(line);
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    const IdScope scope(i);
    const std::string whole = shown(places[i].name), name = elided_name(whole, ui.px(180));
    const auto say_whole = [&] {
      if (name != whole) tooltip(ui, whole);
    };
    if (i > 0) {
      beside(ui.px(5));
      control_text(i == 2 && left_out > 0 ? "/ \xE2\x80\xA6 /" : "/", ui.theme->muted);
      beside(ui.px(5));
    }
    if (i + 1 == places.size()) {
      control_text(name, ui.theme->text);
      say_whole();
      continue;
    }
    ImGui::SetCursorPosY(line + ImGui::GetStyle().FramePadding.y);
    const bool pressed = link(ui, "part", name, text_width(name) + 1);
    say_whole();
    if (!pressed) continue;
    document.forward.inside = places[i].inside;
    document.forward.module = places[i].module;
    follow_level(document);
    enter(document, places[i].module);
  }
  beside(0);
  ImGui::Dummy({0, 0});
}

// From the operator that is selected to the next that matches, or to the one before.
void GraphPanel::walk(Document& document, bool back) {
  if (found_.empty()) return;
  const auto at = found_at(document);
  const std::size_t last = found_.size() - 1;
  const std::size_t next = !at           ? (back ? last : 0)
                           : back        ? (*at == 0 ? last : *at - 1)
                           : *at == last ? 0
                                         : *at + 1;
  document.select(document.operator_at(found_[next]));
}

std::optional<std::size_t> GraphPanel::found_at(const Document& document) const {
  const auto* const op = std::get_if<OperatorAt>(&document.selected());
  const auto* const place = std::get_if<graph::OpPlace>(&document.selected());
  if ((op == nullptr && place == nullptr) || !document.exists(document.selected())) return std::nullopt;
  const auto found = std::ranges::find(found_, op != nullptr ? level_->scene->place_of(op->at) : *place);
  return found == found_.end() ? std::nullopt
                               : std::optional(static_cast<std::size_t>(found - found_.begin()));
}

void GraphPanel::draw_find(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  std::string typed = document.forward.search;
  const float width = ui.px(150);
  continue_line(ui, 12, width);
  ImGui::SetNextItemWidth(width);
  if (workspace.services.requests.take<FocusFind>()) ImGui::SetKeyboardFocusHere();
  const bool entered =
      ImGui::InputTextWithHint("##find", "Find operators", &typed,
                               ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  tooltip(ui,
          "By name or kind, also in what operators hold. Enter goes to the next, Shift+Enter to the one "
          "before (Ctrl+F)");
  // Escape leaves the field, and ImGui then puts back what stood there before
  if (!list_key_pressed(ListKey::escape)) document.forward.search = typed;
  if (searched_ != document.forward.search || found_in_ != level_->scene) {
    searched_ = document.forward.search;
    found_in_ = level_->scene;
    found_.clear();
    if (!searched_.empty()) found_ = operators_with(*level_->scene->drawn(), searched_);
  }
  if (entered) {
    walk(document, ImGui::GetIO().KeyShift);
    ImGui::SetKeyboardFocusHere(-1);
  }
  if (searched_.empty()) return;
  const auto at = found_at(document);
  const std::string words =
      found_.empty() ? "none found"
      : at           ? fmt::format("{} of {}", format_grouped(*at + 1), format_grouped(found_.size()))
                     : fmt::format("{} found", format_grouped(found_.size()));
  continue_line(ui, 8, text_width(words));
  control_text(words, found_.empty() ? ui.theme->warning : ui.theme->muted);
}

void GraphPanel::draw_head(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  draw_path(document, ui);
  if (stale_) {  // a part of the path was clicked
    follow(document);
    arrange(document, ui);
  }
  const view::GraphPart& part = plot_.part();
  const auto drawn = std::ranges::count_if(
      part.boxes, [](const view::GraphBox& box) { return box.kind <= view::BoxKind::module; });
  const bool whole = part.left_out == 0;
  const std::string words =
      whole ? counted(level_->tree().node(module_).all_ops, "operator")
            : fmt::format("{} of {} boxes, those nearest to {}", drawn,
                          format_grouped(static_cast<std::uint64_t>(drawn) + part.left_out),
                          at_ ? "the marked one" : "the first");
  continue_line(ui, 14, text_width(words));
  control_text(words, ui.theme->muted);
  tooltip(ui, whole ? "The operators of this module, with those of the modules inside it"
                    : "A module with more boxes than can be read is drawn in part. Enter, or a double "
                      "click, on another box draws the boxes around that one");
  if (!is_whole()) {
    continue_line(ui, 14, text_width("Up") + ui.px(20));
    if (button(ui, "Up")) leave(document);
    tooltip(ui, "The module or the operator that holds this (Backspace)");
  }
  continue_line(ui, 8, text_width("Whole") + ui.px(20));
  if (button(ui, "Whole")) fit(false);
  tooltip(ui, "Shows all of the graph (Home, or a double click beside the boxes)");
  draw_find(workspace, ui);
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
  constexpr float kRoomy = 440;
  const bool low = ImGui::GetContentRegionAvail().y < ui.px(kRoomy);
  forward_controls(workspace, ui, controls_);
  if (forward_absent(document, ui)) return;
  follow(document);
  arrange(document, ui);
  if (low) continue_line(ui, 14, ui.px(330));  // the graph needs the lines
  draw_head(workspace, ui);
  if (module_ != document.forward.module || stale_) {  // the way up was taken
    follow(document);
    arrange(document, ui);
  }
  draw_canvas(document, ui);
}

}  // namespace

// --- The operators of one picture.

graph::OpPlace GraphLevel::place_of(std::uint32_t op) const {
  return inside.empty() ? graph::OpPlace{graph::OpPlace::kMain, op} : inner.places[op];
}

std::optional<std::uint32_t> GraphLevel::op_at(graph::OpPlace place) const {
  if (inside.empty()) return place.body == graph::OpPlace::kMain ? std::optional(place.at) : std::nullopt;
  const auto found = std::ranges::find(inner.places, place);
  if (found == inner.places.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - inner.places.begin());
}

std::uint32_t GraphLevel::shown_by(std::uint32_t op) const {
  if (!folded[op]) return op;
  const std::vector<graph::Op>& ops = forward().ops;
  const auto uses = [&](const graph::Op& user) {
    return std::ranges::find(user.inputs, ops[op].outputs.front()) != user.inputs.end();
  };
  return static_cast<std::uint32_t>(std::ranges::find_if(ops, uses) - ops.begin());
}

std::vector<graph::TensorId> GraphLevel::weights_of(std::uint32_t op) const {
  const std::vector<graph::Op>& ops = forward().ops;
  std::vector<graph::TensorId> weights = ops[op].weights;
  for (const graph::ValueId id : ops[op].inputs)
    if (const auto found = constants.find(id); found != constants.end())
      weights.insert(weights.end(), ops[found->second].weights.begin(), ops[found->second].weights.end());
  return weights;
}

std::shared_ptr<const GraphLevel> graph_level(std::shared_ptr<const ForwardScene> scene,
                                              std::vector<graph::OpPlace> inside) {
  auto level = std::make_shared<GraphLevel>();
  level->scene = std::move(scene);
  level->inside = std::move(inside);
  const ForwardScene& of = *level->scene;
  if (!level->inside.empty()) {
    level->inner = view::graph_inside(*of.drawn(), graph::op_at(*of.drawn(), level->inside.back()));
    level->inner_tree = graph::op_tree(*of.graph, level->inner.forward);
  }
  level->nodes = view::nodes_of_operators(level->forward(), level->tree());
  level->folded = view::constants_of(level->forward());
  for (std::uint32_t i = 0; i < level->folded.size(); ++i)
    if (level->folded[i]) level->constants[level->forward().ops[i].outputs.front()] = i;
  return level;
}

std::vector<graph::OpPlace> operators_around(const ForwardScene& scene, graph::OpPlace place) {
  std::vector<graph::OpPlace> inside;
  while (place.body != graph::OpPlace::kMain) {
    place = scene.holders[place.body];
    inside.push_back(place);
  }
  std::ranges::reverse(inside);
  return inside;
}

std::unique_ptr<Panel> make_graph_panel() { return std::make_unique<GraphPanel>(); }

}  // namespace loadline::gui
