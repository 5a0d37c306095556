// Tab Forward: controls of the pass, texts of operators.
#include "app/gui/panels/forward/forward.h"

#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/file_data.h"
#include "core/base/text.h"
#include "core/forward/pass/lifetimes.h"
#include "core/graph/names/tensor_names.h"

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

// "height and width taken as 224": the sides of pictures that the file leaves open.
std::string guessed_sides(const graph::ForwardGraph& forward) {
  std::vector<std::string> names;
  std::string pixels;
  for (const graph::NamedSize& size : forward.sizes)
    if (size.guessed && size.taken_as.constant()) {
      names.push_back(shown(beginning(size.name, 40)));
      pixels = size.taken_as.text({});
    }
  return names.empty() ? "" : fmt::format("{} taken as {}", fmt::join(names, " and "), pixels);
}

}  // namespace

// Where a panel is low, behind a button: the plot needs the lines.
void forward_controls(Document& document, const Ui& ui, OptionControls& controls) {
  if (!document.forward.scene.value() || document.forward.graph() == nullptr) return;
  const graph::ForwardGraph& forward = *document.forward.graph();
  const std::string sides = guessed_sides(forward);
  const auto say_sides = [&] {
    if (sides.empty()) return;
    continue_line(ui, 14, text_width(sides));
    control_text(sides, ui.theme->muted);
    tooltip(
        ui,
        "The file leaves the sides of its pictures open, and shapes behind a convolution follow from them");
  };
  constexpr float kRoomy = 440;
  if (ImGui::GetContentRegionAvail().y >= ui.px(kRoomy)) {
    all_controls(document, ui, controls);
    return say_sides();
  }
  const load::LoadRequest& request = document.load.asked().request;
  const std::string& profile = document.forward.scene.value()->options.profile;
  std::string words = "Pass: ";
  if (forward::depends_on_tokens(forward)) words += counted(request.sequence, "new token") + ", ";
  words += fmt::format("batch {}{}{}", request.batch, profile.empty() ? "" : ", ", profile);
  if (button(ui, words)) ImGui::OpenPopup("pass");
  tooltip(ui, "The sizes, the types and the profile of the forward pass");
  say_sides();
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
  constexpr std::array<std::string_view, kPassLanes> kNames = {"Weights", "Cache", "Activations",
                                                               "Temporaries"};
  return kNames[static_cast<std::size_t>(lane)];
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

}  // namespace loadline::gui
