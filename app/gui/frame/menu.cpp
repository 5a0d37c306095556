// What can be done with each kind of selection, and the menu that offers it.
#include "app/gui/frame/actions.h"
#include "app/gui/frame/facts.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/panels/forward/forward.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/window/input.h"
#include "core/base/text.h"
#include "core/view/operator_graph.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

// --- What can be done with each kind of selection.

namespace {

// A term of the filter; nothing for a name that no term can hold.
std::optional<std::string> name_term(const std::string& pattern) {
  if (pattern.empty() || pattern.find('"') != std::string::npos) return std::nullopt;
  return "\"name:" + pattern + "\"";
}

// "h.*.mlp.c_fc.weight": the same tensor in every layer; nothing outside of layers.
std::optional<std::string> in_every_layer(const std::string& name) {
  const graph::LayerPart layer = graph::layer_part(name);
  if (layer.empty()) return std::nullopt;
  return name.substr(0, layer.begin) + "*" + name.substr(layer.end);
}

class OffersOf {
 public:
  explicit OffersOf(const Workspace& workspace)
      : workspace_(workspace), document_(workspace.document()), model_(*document_.model) {}

  void operator()(std::monostate) {
    show("Show the map", "map");
    show("Show its files", "bytes");
    show("Show its figures", "model");
    apart();
    add("Convert to another format", {{"panel", "convert"}});
    add("Upload to a device", {{"panel", "upload"}});
    add("Compare with another open model", {{"diff"}});
    add("Read it again", {{"reload"}});
    add("Add to or remove from favorites", {{"favorite"}});
    add("Close it", {{"close"}});
    copies();
  }

  void operator()(graph::TensorId id) {
    const std::string name = model_.tensor(id).name.str();
    show("Show in the map", "map");
    show("Show in the table", "tensors");
    show("Show in the load", "load");
    show("Show in its file", "bytes");
    show("Show its values", "values");
    if (const auto first = first_use([&](graph::TensorId used) { return used == id; }))
      of_operator(*first, "Show the operator that uses it");
    apart();
    if (const auto layer = model_.layers[graph::index(id)]; layer >= 0) {
      filter(fmt::format("Filter to layer {}", layer), fmt::format("layer:{}", layer));
      if (const auto all = in_every_layer(name))
        filter("Filter to this tensor in every layer", name_term(*all));
    }
    filter("Filter to its type", fmt::format("dtype:{}", graph::dtype_info(model_.tensor(id).dtype).name));
    add("Load it first", {{"load-first", name}});
    add(document_.values.kept() == id ? "Compare it no longer" : "Compare its values with another tensor",
        {{"keep"}});
    copies();
  }

  void operator()(graph::NodeId id) {
    const std::string path = graph::module_path(model_.tree, id);
    add("Show in the map", {{"zoom", path}, {"panel", "map"}});
    const auto term = id == graph::kRootNode ? std::nullopt : name_term(path + ".*");
    if (term) add("Show its tensors in the table", {{"filter", *term}, {"panel", "tensors"}});
    show("Show in the load", "load");
    show("Show in the files", "bytes");
    in_graph(path);
    const auto first = id == graph::kRootNode ? std::nullopt : first_use([&](graph::TensorId used) {
      return model_.tensor(used).name.view().starts_with(path + ".");
    });
    if (first) of_operator(*first, "Show its first operator in the forward pass");
    apart();
    filter("Filter to this module", term);
    if (const auto all = in_every_layer(path)) filter("Filter to it in every layer", name_term(*all + ".*"));
    add("Load it first", {{"load-first", path}});
    copies();
  }

  void operator()(OperatorAt at) {
    const std::string number = fmt::format("{}", at.at);
    add("Show in the graph", {{"operator", number}, {"panel", "graph"}});
    add("Show in the forward pass", {{"operator", number}, {"panel", "operators"}});
    add("Show what is alive at it", {{"operator", number}, {"panel", "lifetimes"}});
    const auto* const forward = document_.forward.graph();
    if (forward != nullptr && at.at < forward->ops.size()) {
      const ForwardScene& scene = *document_.forward.scene.value();
      inside_of(scene, scene.place_of(at.at));
      others_of(forward->ops[at.at].kind);
      constexpr std::size_t kMost = 3;
      const auto& weights = forward->ops[at.at].weights;
      for (std::size_t i = 0; i < std::min(weights.size(), kMost); ++i) {
        const std::string name = model_.tensor(weights[i]).name.str();
        add("Select " + name, {{"select", name}});
      }
    }
    copies();
  }

  void operator()(graph::OpPlace place) {
    show("Show in the graph", "graph");
    if (document_.exists(place)) {
      const ForwardScene& scene = *document_.forward.scene.value();
      inside_of(scene, place);
      if (place.body != graph::OpPlace::kMain)
        if (const std::string word = word_of(scene, scene.holders[place.body]); !word.empty())
          add("Go to the operator that holds it", {{"graph", word}});
      others_of(graph::op_at(*scene.drawn(), place).kind);
    }
    copies();
  }

  void operator()(plan::BlockId id) {
    show("Show in the load", "load");
    if (document_.exists(id)) {
      const plan::Lifetime& life = document_.load.projection.value()->timeline.lifetimes[graph::index(id)];
      const std::size_t steps = document_.load.projection.value()->plan.steps.size();
      if (life.from_step != plan::kNever)
        add("Go to the moment it is allocated", {{"time", fmt::format("{}", life.from_step)}});
      if (life.to_step != plan::kNever && life.to_step <= steps)
        add("Go to the moment it is freed", {{"time", fmt::format("{}", life.to_step)}});
    }
    copies();
  }

  void operator()(const LoadOf& load) {
    const LoadOf now = {std::string(shown_method(document_.load.asked()).id),
                        shown_order(document_.load.asked())};
    if (load == now) of_the_time_axis();
    if (load != now) add("Use this load", {{"use-load", load.method + " " + load.order}});
    show("Show in the load", "load");
    if (load.method != now.method) add("Play it beside the load", {{"beside", load.method}});
    const bool over = document_.overlaid.contains(load.method);
    add(over ? "Take its curve out of the overlay" : "Put its curve into the overlay",
        {{"overlay", load.method}});
    add("What this method does", {{"manual", "methods"}});
    copies();
  }

  void operator()(FindingAt at) {
    show("Show in the findings", "findings");
    if (document_.exists(at)) {
      const inspect::Finding& finding = (*document_.checks.findings.value())[at.at];
      if (!finding.settings.empty())
        add(remedy_title(finding.settings), {{"fix", fmt::format("{}", at.at + 1)}});
      if (finding.example) {
        const std::string name = model_.tensor(*finding.example).name.str();
        add("Select " + name, {{"select", name}});
      }
    }
    copies();
  }

  void of_the_time_axis() {
    add("Play from here, or stop", {{"play"}});
    add("Go to the peak", {{"time", "peak"}});
    if (const auto failure = document_.failure())
      add("Go to where it fails", {{"time", fmt::format("{}", failure->step)}});
    if (!document_.axis.range.is_whole()) add("Show the whole time axis", {{"time-whole"}});
    const bool steps = document_.axis_unit() == view::RunAxis::steps;
    add(steps ? "Show seconds" : "Show steps", {{"unit"}});
    apart();
  }

  std::vector<Offer> take() { return std::move(offers_); }

 private:
  // The first operator of the pass that reads such a tensor.
  template <typename Test>
  std::optional<std::uint32_t> first_use(Test is_meant) const {
    if (document_.forward.graph() == nullptr) return std::nullopt;
    const auto& uses = document_.forward.scene.value()->weights;  // in the order of the pass
    const auto first = std::ranges::find_if(uses, is_meant, &ForwardScene::WeightUse::tensor);
    return first == uses.end() ? std::nullopt : std::optional(first->ops.first);
  }
  void of_operator(std::uint32_t at, std::string title) {
    const std::string number = fmt::format("{}", at);
    add(std::move(title), {{"operator", number}, {"panel", "operators"}});
    if (workspace_.settings.panel != "graph")
      add("Show that operator in the graph", {{"operator", number}, {"panel", "graph"}});
  }
  // The operators of a module of tensors, where they are a module, too.
  void in_graph(std::string path) {
    if (document_.forward.graph() == nullptr) return;
    const graph::OpTree& tree = document_.forward.scene.value()->drawn_tree();
    std::ranges::replace(path, '.', tree.separator);
    if (view::module_called(tree, path))
      add("Show its operators as a graph", {{"graph", path.empty() ? "." : path}});
  }
  void others_of(const std::string& kind) {
    add("Find the others of its kind", {{"panel", "graph"}, {"find", kind}});
  }
  void inside_of(const ForwardScene& scene, graph::OpPlace place) {
    if (graph::op_at(*scene.drawn(), place).bodies.empty()) return;
    if (const std::string word = word_of(scene, place); !word.empty())
      add("Go inside", {{"graph", word + " >"}});
  }
  void apart() { apart_ = true; }
  void add(std::string title, std::vector<Offer::Line> lines) {
    for (const Offer::Line& line : lines) {
      const Action* const action = find_action(line.action);
      assert(action != nullptr);
      if (!action->enabled(workspace_)) return;
    }
    offers_.push_back({std::move(title), std::move(lines), std::exchange(apart_, false)});
  }
  // Unless that panel is shown.
  void show(std::string title, std::string panel) {
    if (workspace_.settings.panel != panel) add(std::move(title), {{"panel", std::move(panel)}});
  }
  void filter(std::string title, std::optional<std::string> term) {
    if (term) add(std::move(title), {{"filter", std::move(*term)}});
  }
  void copies() {
    apart();
    add("Copy the name", {{"copy", "name"}});
    add("Copy as text", {{"copy", "text"}});
    add("Copy as JSON", {{"copy", "json"}});
    add("Copy as Markdown", {{"copy", "markdown"}});
  }

  const Workspace& workspace_;
  const Document& document_;
  const Model& model_;
  std::vector<Offer> offers_;
  bool apart_ = false;
};

}  // namespace

std::vector<Offer> offers_of(const Workspace& workspace, const Selected& selected) {
  OffersOf of(workspace);
  std::visit(of, selected);
  return of.take();
}

void run_offer(Workspace& workspace, const Offer& offer) {
  for (const Offer::Line& line : offer.lines) find_action(line.action)->run(workspace, line.argument);
}

// --- The menu.

namespace {

// The key of a row that is one action without an argument, or with the one that the key gives.
std::string_view key_of(const Offer& offer) {
  const Offer::Line& line = offer.lines.front();
  if (offer.lines.size() > 1 || !(line.argument.empty() || line.argument == kCopyFormNames.front()))
    return "";
  return find_action(line.action)->shortcut;
}

}  // namespace

void SelectionMenu::draw(Workspace& workspace, const Ui& ui, ImVec2 place) {
  Document& document = workspace.document();
  if (const auto asked = std::exchange(document.asked_menu, std::nullopt); asked && document.model) {
    title_ = shown(asked->title);
    offers_ = asked->offers;
    std::erase_if(offers_, [&](const Offer& offer) {
      return !std::ranges::all_of(
          offer.lines, [&](const Offer::Line& line) { return find_action(line.action)->enabled(workspace); });
    });
    if (asked->of_selection) {
      std::vector<Offer> more = offers_of(workspace, document.selected());
      if (!offers_.empty() && !more.empty()) more.front().apart = true;
      std::ranges::move(more, std::back_inserter(offers_));
    }
    if (title_.empty()) {
      const SelectionFacts facts = facts_of(document, document.selected());
      title_ = fmt::format("{}  {}", facts.kind, shown(facts.title));
    }
    ImGui::OpenPopup("menu of the selection");
    by_key_ = !ImGui::IsMouseReleased(ImGuiMouseButton_Right);
    ImGui::SetNextWindowPos(by_key_ ? place : ImGui::GetIO().MousePos);
  }
  const StyleScope style(ImGuiStyleVar_WindowPadding, {ui.px(12), ui.px(10)});
  if (!ImGui::BeginPopup("menu of the selection")) return;
  small_text(ui, elided_name(title_, ui.px(340)), ui.theme->muted);
  ImGui::Dummy({ui.px(220), 0});
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - ui.px(12);
  std::optional<std::size_t> picked;
  for (std::size_t i = 0; i < offers_.size(); ++i) {
    const IdScope scope(i);
    if (offers_[i].apart && i > 0) ImGui::Separator();
    const std::string title = elided(shown(offers_[i].title), ui.px(340));
    const std::string_view key = key_of(offers_[i]);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = text_width(title) + (key.empty() ? 0 : text_width(key) + ui.px(24));
    if (ImGui::Selectable("##offer", false, 0, {std::max(width, right - at.x), 0})) picked = i;
    if (i == 0 && by_key_ && ImGui::IsWindowAppearing()) focus_item_by_keys();
    put_text(at, ui.theme->text, title);
    if (!key.empty()) put_text_before(right, at.y, ui.theme->muted, key);
  }
  ImGui::EndPopup();
  if (picked) workspace.attempt([&] { run_offer(workspace, offers_[*picked]); });
}

}  // namespace loadline::gui
