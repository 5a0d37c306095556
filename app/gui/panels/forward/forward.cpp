// Tab Forward: controls of the pass, texts of operators.
#include "app/gui/panels/forward/forward.h"

#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "core/base/text.h"
#include "core/forward/pass/lifetimes.h"
#include "core/graph/names/tensor_names.h"
#include "core/view/operator_graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace loadline::gui {

// --- Every change goes to the document at once: sizes are evaluated within a frame.

namespace {

// A field for each size that the option can set.
void named_sizes(Document& document, const Ui& ui, const load::LoadOption& option, bool& first) {
  constexpr std::size_t kMostShown = 6, kMostName = 60;
  const std::vector<std::string> names = option.terms.in_context->names(load_context(document));
  for (std::size_t i = 0; i < std::min(names.size(), kMostShown); ++i) {
    if (names[i].empty()) continue;
    Asked asked = document.load.asked();
    const OptionValue value = option.get(asked.request);
    const auto* const set = std::get_if<std::vector<std::string>>(&value);
    std::vector<std::string> words = set == nullptr ? std::vector<std::string>() : *set;
    // NAME=N, where a name may hold a '='
    auto at = std::ranges::find_if(
        words, [&](std::string_view word) { return word.substr(0, word.rfind('=')) == names[i]; });
    std::uint64_t size =
        at == words.end() ? 1 : text_as<std::uint64_t>(at->substr(names[i].size() + 1)).value_or(1);
    const float width = ui.px(64);
    label_before(ui, elided(shown(beginning(names[i], kMostName)), ui.px(120)), width,
                 !std::exchange(first, false));
    ImGui::SetNextItemWidth(width);
    const IdScope scope(i);
    const bool changed = ImGui::InputScalar("##size", ImGuiDataType_U64, &size);
    tooltip(ui, "A size that the file does not fix; 1 unless set");
    if (!changed) continue;
    if (at == words.end()) at = words.emplace(words.end());
    *at = names[i] + "=" + std::to_string(std::min(size, load::kMostTokens));
    option.set(asked.request, words);
    document.load.ask(asked);
  }
}

void all_controls(Document& document, const Ui& ui, OptionControls& controls) {
  bool first = true;
  for (const load::LoadOption& option : load::load_options()) {
    // what is not packed judges loads, and stands beside their budgets
    if (option.group != load::load_groups::kPass || option.offered_to(load::LoadUser::upload) ||
        !option.offered_to(load::LoadUser::pack))
      continue;
    if (option.terms.in_context != nullptr && option.terms.in_context->names != nullptr) {
      named_sizes(document, ui, option, first);
    } else if (look_of(document, option)) {
      controls.draw(document, ui, option, std::exchange(first, false));
    }
  }
}

constexpr std::string_view kSideHelp =
    "The file leaves this side of its pictures open, and shapes behind a convolution follow from it. With "
    "another number of pixels the file is read again.";

// The sides of pictures that the file leaves open: a field each, as they stand.
void picture_sides(Workspace& workspace, const Ui& ui) {
  constexpr std::size_t kMostShown = 4, kMostName = 40;
  Document& document = workspace.document();
  std::vector<importers::NamedSide> sides;
  for (const graph::NamedSize& size : document.forward.graph()->sizes)
    if (const auto pixels = size.taken_as.constant(); size.guessed && pixels)
      sides.push_back({size.name, static_cast<std::uint64_t>(*pixels)});
  auto& typed = document.forward.typed_side;
  std::optional<std::vector<importers::NamedSide>> wanted;
  for (std::size_t i = 0; i < std::min(sides.size(), kMostShown); ++i) {
    const float width = ui.px(58);
    label_before(ui, elided_name(shown(beginning(sides[i].name, kMostName)), ui.px(120)), width);
    ImGui::SetNextItemWidth(width);
    const IdScope scope(i);
    std::uint64_t pixels = typed && typed->first == sides[i].name ? typed->second : sides[i].pixels;
    if (ImGui::InputScalar("##side", ImGuiDataType_U64, &pixels)) typed = {sides[i].name, pixels};
    const bool entered = ImGui::IsItemDeactivated();
    tooltip(ui, kSideHelp);
    if (!entered || !typed || typed->first != sides[i].name) continue;
    constexpr std::uint64_t kMost = 65536;
    const std::uint64_t chosen = std::clamp<std::uint64_t>(typed->second, 1, kMost);
    typed.reset();
    if (chosen == sides[i].pixels) continue;
    wanted = sides;
    (*wanted)[i].pixels = chosen;
  }
  if (!document.model->picture_sides.empty()) {
    continue_line(ui, 8, text_width("Usual") + ui.px(20));
    if (button(ui, "Usual", ButtonKind::ghost)) wanted.emplace();
    tooltip(ui, "Takes the usual sides again");
  }
  if (wanted) workspace.attempt([&] { workspace.take_picture_sides(std::move(*wanted)); });
}

}  // namespace

// Where a panel is low, behind a button: the plot needs the lines.
void forward_controls(Workspace& workspace, const Ui& ui, OptionControls& controls) {
  Document& document = workspace.document();
  if (!document.forward.scene.value() || document.forward.graph() == nullptr) return;
  const graph::ForwardGraph& forward = *document.forward.graph();
  constexpr float kRoomy = 440;
  if (ImGui::GetContentRegionAvail().y >= ui.px(kRoomy)) {
    all_controls(document, ui, controls);
    return picture_sides(workspace, ui);
  }
  const load::LoadRequest& request = document.load.asked().request;
  const std::string& profile = document.forward.scene.value()->options.profile;
  std::string words = "Pass: ";
  if (forward::depends_on_tokens(forward)) words += counted(request.sequence, "new token") + ", ";
  words += fmt::format("batch {}{}{}", request.batch, profile.empty() ? "" : ", ", profile);
  if (button(ui, words)) ImGui::OpenPopup("pass");
  tooltip(ui, "The sizes, the types and the profile of the forward pass");
  picture_sides(workspace, ui);
  ImGui::SetNextWindowSize({std::min(ui.px(560), ImGui::GetIO().DisplaySize.x - ui.px(40)), 0});
  const StyleScope padding(ImGuiStyleVar_WindowPadding, {ui.px(14), ui.px(12)});
  if (ImGui::BeginPopup("pass")) {
    all_controls(document, ui, controls);
    ImGui::EndPopup();
  }
}

bool forward_absent(const Document& document, const Ui& ui) {
  if (!document.forward.scene.value()) {
    if (document.forward.scene.busy())
      empty_state(ui, "Computing the forward pass", "The architecture is being matched to the tensors.");
    else
      empty_state(ui, "The forward pass could not be computed", shown(document.forward.error()));
    return true;
  }
  if (document.forward.graph() != nullptr) return false;
  const forward::ForwardModel& model = document.forward.scene.value()->model;
  std::string known = "The file holds weights only.";
  if (!model.remark.empty()) {
    known = shown(model.remark) + ".";
    known = capitalized(known);
  }
  if (model.cache_bytes_per_token)
    known += fmt::format(" From its settings: about {} bytes of cache per token.",
                         format_grouped(*model.cache_bytes_per_token));
  empty_state(ui, "The operators of this model are unknown", known);
  return true;
}

std::string_view pass_lane_name(PassLane lane) {
  constexpr std::array<std::string_view, kPassLanes> kNames = {
      "Weights", "Cache", "Optimizer", "Gradients", "Kept", "Activations", "Temporaries"};
  return kNames[static_cast<std::size_t>(lane)];
}

std::string_view pass_lane_title(PassLane lane) {
  return lane == PassLane::states ? "Optimizer states"
         : lane == PassLane::kept ? "Kept for the backward pass"
                                  : pass_lane_name(lane);
}

ImU32 pass_lane_color(const Theme& theme, PassLane lane) {
  return theme.lives[static_cast<std::size_t>(lane)];
}

// --- One pass over the graph for each; texts are made for rows in sight only.

std::string sides_text(const graph::ForwardGraph& forward, graph::ValueId id) {
  constexpr std::size_t kMostSides = 12;
  const graph::Value& value = forward.value(id);
  if (!value.shape) return "[?]";
  std::string sides;
  for (std::size_t i = 0; i < value.shape->size() && i < kMostSides; ++i)
    sides += (i > 0 ? ", " : "") + (*value.shape)[i].text(forward.symbols);
  if (value.shape->size() > kMostSides) sides += ", \xE2\x80\xA6";
  return "[" + sides + "]";
}

std::string value_text(const graph::ForwardGraph& forward, graph::ValueId id) {
  constexpr std::size_t kMostName = 200;  // bytes
  const graph::Value& value = forward.value(id);
  std::string result(beginning(value.name, kMostName));
  result += " " + sides_text(forward, id);
  if (value.dtype) result += " " + std::string(graph::dtype_info(*value.dtype).name);
  return result;
}

std::string value_size_text(const forward::ForwardFigures* figures, graph::ValueId id) {
  const auto bytes = figures == nullptr ? std::nullopt : figures->sizes[static_cast<std::size_t>(id)];
  return bytes ? format_bytes(*bytes) : "?";
}

std::string value_size_formula(const graph::ForwardGraph& forward, graph::ValueId id) {
  const auto poly = graph::value_bytes(forward.value(id));
  if (!poly || poly->constant()) return "";
  return poly->text(forward.symbols) + " bytes";
}

bool reads(const graph::Op& op, graph::TensorId weight) {
  return std::ranges::find(op.weights, weight) != op.weights.end();
}

OperatorSummary summarize(const graph::ForwardGraph& forward) {
  OperatorSummary summary;
  std::map<std::string_view, std::uint64_t> kinds;
  for (std::size_t i = 0; i < forward.ops.size(); ++i) {
    const graph::Op& op = forward.ops[i];
    summary.named = summary.named || !op.name.empty();
    if (graph::is_part_of_next(forward, i)) continue;
    ++kinds[op.kind];
    ++summary.operators;
  }
  for (const auto& [kind, count] : kinds) summary.kinds.emplace_back(kind, count);
  std::ranges::stable_sort(summary.kinds, [](const auto& a, const auto& b) { return a.second > b.second; });
  summary.values = forward.values.size();
  for (const graph::Value& value : forward.values) summary.unknown += !value.shape;
  return summary;
}

std::vector<std::uint32_t> matching_operators(const graph::MetaGraph& graph,
                                              const graph::ForwardGraph& forward, std::string_view text) {
  const Needle needle(text);
  const auto names = [&](const std::vector<graph::ValueId>& values) {
    return std::ranges::any_of(values, [&](graph::ValueId id) { return needle.in(forward.value(id).name); });
  };
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < forward.ops.size(); ++i) {
    const graph::Op& op = forward.ops[i];
    const bool matches =
        needle.in(op.kind) || needle.in(op.name) || names(op.inputs) || names(op.outputs) ||
        std::ranges::any_of(op.weights, [&](graph::TensorId id) { return needle.in(graph.tensor(id).name); });
    if (matches) rows.push_back(i);
  }
  return rows;
}

std::vector<graph::OpPlace> operators_with(const graph::ForwardGraph& forward, std::string_view text) {
  const Needle needle(text);
  std::vector<graph::OpPlace> found;
  std::vector<graph::OpPlace> next;  // the last one comes first
  const auto add = [&](std::uint32_t body, std::size_t count) {
    for (std::size_t i = count; i-- > 0;) next.push_back({body, static_cast<std::uint32_t>(i)});
  };
  add(graph::OpPlace::kMain, forward.ops.size());
  while (!next.empty()) {
    const graph::OpPlace place = next.back();
    next.pop_back();
    const graph::Op& op = graph::op_at(forward, place);
    if (needle.in(op.kind) || needle.in(op.name)) found.push_back(place);
    for (std::size_t i = op.bodies.size(); i-- > 0;)
      add(op.bodies[i], forward.bodies[op.bodies[i]].ops.size());
  }
  return found;
}

std::string word_of(const ForwardScene& scene, graph::OpPlace place) {
  const graph::ForwardGraph& forward = *scene.drawn();
  const graph::Op& op = graph::op_at(forward, place);
  const auto leads_there = [&](const std::string& name) {
    return !view::module_called(scene.drawn_tree(), name) && view::operator_called(forward, name) == place;
  };
  if (leads_there(op.name)) return op.name;
  for (const graph::ValueId id : op.outputs)
    if (const std::string& name = forward.value(id).name; leads_there(name)) return name;
  return "";
}

// --- What can be done with boxes and edges of the graph that are no selection of their own.

namespace {

constexpr std::size_t kMostWord = 60;  // bytes of a name in a row

void go_to_operator(std::vector<Offer>& offers, const ForwardScene& scene, graph::OpPlace place,
                    std::string_view title) {
  const graph::Op& op = graph::op_at(*scene.drawn(), place);
  std::string words = fmt::format("{}: {}", title, op.kind);
  if (!op.name.empty()) words += fmt::format(" {}", beginning(op.name, kMostWord));
  if (const std::string word = word_of(scene, place); !word.empty())
    offers.push_back({std::move(words), {{"graph", word}}});
  else if (const auto runs = scene.op_at(place))
    offers.push_back({std::move(words), {{"operator", fmt::format("{}", *runs)}, {"panel", "graph"}}});
}

void copy_rows(std::vector<Offer>& offers, const std::string& name, const std::string& text) {
  if (!name.empty()) offers.push_back({"Copy the name", {{"copy-words", name}}, true});
  offers.push_back({"Copy as text", {{"copy-words", text}}, name.empty()});
}

// What the filter itself reads in a name stands as any character.
std::string as_pattern(std::string name) {
  for (char& c : name)
    if (std::string_view("\",*").find(c) != std::string_view::npos) c = '?';
  return name;
}

}  // namespace

AskedMenu menu_of_module(const Document& document, const GraphLevel& level, graph::OpNodeId module) {
  const ForwardScene& scene = *level.scene;
  const graph::OpNode& node = level.tree().node(module);
  const std::string path = graph::op_path(level.tree(), module);
  AskedMenu menu{.title = "Module  " + path, .offers = {}, .of_selection = false};
  const std::string around = level.inside.empty() ? "" : word_of(scene, level.inside.back());
  if (level.inside.empty() || !around.empty())
    menu.offers.push_back({"Go inside", {{"graph", around.empty() ? path : around + " > " + path}}});
  for (std::uint32_t i = 0; i < level.nodes.size(); ++i) {
    if (level.folded[i] || !view::is_inside(level.tree(), level.nodes[i], module)) continue;
    const graph::OpPlace place = level.place_of(i);
    const auto runs =
        place.at == view::InnerGraph::kNoPosition ? std::optional<std::size_t>() : scene.op_at(place);
    if (!runs) continue;
    const std::string number = fmt::format("{}", *runs);
    menu.offers.push_back({"Show its first operator in the forward pass",
                           {{"operator", number}, {"operators", "modules"}, {"panel", "operators"}}});
    menu.offers.push_back(
        {"Show what is alive at its first operator", {{"operator", number}, {"panel", "lifetimes"}}});
    break;
  }
  std::string tensors = path;
  std::ranges::replace(tensors, level.tree().separator, '.');
  // not where most of what its operators read has other names, as "onnx::Conv_207"
  const std::optional<graph::NodeId> found = find_module(*document.model, tensors);
  if (found && level.inside.empty() && document.model->tree.node(*found).bytes >= node.weight_bytes) {
    menu.offers.push_back({"Show its weights in the map", {{"zoom", tensors}, {"panel", "map"}}, true});
    menu.offers.push_back({"Show its tensors in the table",
                           {{"filter", "\"name:" + as_pattern(tensors) + ".*\""}, {"panel", "tensors"}}});
    menu.offers.push_back(
        {"Show its weights in the files", {{"select-module", tensors}, {"panel", "bytes"}}});
    menu.offers.push_back({"Load its weights first", {{"load-first", tensors}}});
  }
  copy_rows(menu.offers, path,
            fmt::format("{}: {}, {} with {} bytes", path, counted(node.all_ops, "operator"),
                        counted(node.weights, "weight"), format_grouped(node.weight_bytes)));
  return menu;
}

AskedMenu menu_of_values(const Document& document, const GraphLevel& level,
                         std::span<const graph::ValueId> values) {
  const ForwardScene& scene = *level.scene;
  const graph::ValueId value = values.front();
  const graph::Value& of = level.forward().value(value);
  AskedMenu menu{
      .title = "Value  " + value_text(level.forward(), value), .offers = {}, .of_selection = false};
  constexpr std::size_t kMostReaders = 4;
  std::size_t readers = 0;
  const auto holds = [&](const std::vector<graph::ValueId>& list) {
    return std::ranges::find(list, value) != list.end();
  };
  for (std::uint32_t i = 0; i < level.forward().ops.size(); ++i) {
    const graph::Op& op = level.forward().ops[i];
    const graph::OpPlace place = level.place_of(i);
    if (place.at == view::InnerGraph::kNoPosition) continue;
    if (holds(op.outputs)) go_to_operator(menu.offers, scene, place, "Go to what makes it");
    if (holds(op.inputs) && ++readers <= kMostReaders)
      go_to_operator(menu.offers, scene, place, "Go to what reads it");
  }
  const auto passed = scene.in_pass(value);
  const auto& lives = scene.model.lives;
  if (passed && graph::index(*passed) < lives.size() && !lives[graph::index(*passed)].empty()) {
    const std::string first = fmt::format("{}", lives[graph::index(*passed)].first);
    menu.offers.push_back({"Show its lifetime", {{"operator", first}, {"panel", "lifetimes"}}, true});
  }
  const auto places = passed ? places_of_pass(document) : std::nullopt;
  if (const auto block = places ? places->blocks[graph::index(*passed)] : std::nullopt) {
    const plan::Lifetime& life = document.load.projection.value()->timeline.lifetimes[graph::index(*block)];
    menu.offers.push_back(
        {"Go to the moment it is allocated", {{"time", fmt::format("{}", life.from_step)}}});
    if (life.to_step != plan::kNever && life.to_step <= document.load.projection.value()->plan.steps.size())
      menu.offers.push_back({"Go to the moment it is freed", {{"time", fmt::format("{}", life.to_step)}}});
  }
  const std::string size = passed ? value_size_text(document.forward.figures().get(), *passed) : "?";
  copy_rows(menu.offers, of.name, value_text(level.forward(), value) + (size == "?" ? "" : "  " + size));
  return menu;
}

}  // namespace loadline::gui
