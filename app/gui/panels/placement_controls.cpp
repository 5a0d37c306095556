// A way of placing weights, and what that way asks for.
#include "app/gui/panels/plan_controls.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

enum Way : std::size_t { kDevice, kLayers, kMap, kRules };
constexpr std::array<std::string_view, 4> kWays = {"all on the device", "layers", "automatic map", "rules"};

constexpr float kSlider = 180, kSize = 84, kRulesText = 300;

// What a way asks for stands on one line with its name.
float width_behind(const Ui& ui, std::size_t way) {
  if (way == kLayers) return ui.px(8 + kSlider);
  if (way == kMap) return labelled_field_width(ui, "device", kSize) + labelled_field_width(ui, "host", kSize);
  return way == kRules ? labelled_field_width(ui, "", kRulesText) : 0;
}

Way way_of(const PlanChoice& choice) {
  if (choice.gpu_layers) return kLayers;
  if (choice.memory_map) return kMap;
  return choice.place.empty() ? kDevice : kRules;
}

// Something to begin with: half of it. Of rules there are none until some are typed.
PlanChoice begin(const Document& document, std::size_t way) {
  PlanChoice choice = without_placement(document.choice());
  const Model& model = *document.model;
  if (way == kLayers) choice.gpu_layers = static_cast<std::uint64_t>(model.layer_count) / 2;
  if (way == kMap) choice.memory_map = MemoryMap{choice.budget.device.value_or(model.weight_bytes / 2)};
  return choice;
}

}  // namespace

void PlacementControls::draw(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const bool offloads = find_method(document.choice().method).traits.offloads;
  if (!document.model || (!offloads && !has_placement(document.choice()))) {
    wants_rules_ = false;
    return;
  }
  if (has_placement(document.choice())) wants_rules_ = false;  // something else put it there
  draw_way(workspace, ui);
  if (wants_rules_) return draw_rules(workspace, ui);
  switch (way_of(document.choice())) {
    case kLayers:
      return draw_layers(workspace, ui);
    case kMap:
      return draw_map(workspace, ui);
    case kRules:
      return draw_rules(workspace, ui);
    case kDevice:
      return;
  }
}

void PlacementControls::draw_way(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  const std::size_t now = wants_rules_ ? kRules : way_of(document.choice());
  const auto picked = labelled_combo(
      ui, "Weights", 142, kWays[now], kWays, now,
      "Where they go: llama.cpp's layers, accelerate's map that fills device, host and disk in "
      "turn, or rules for tensors by their names",
      width_behind(ui, now));
  if (!picked || *picked == now) return;
  wants_rules_ = *picked == kRules;
  workspace.attempt([&] { document.set_plan(begin(document, *picked)); });
}

void PlacementControls::draw_layers(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  PlanChoice choice = document.choice();
  const int most = document.model->layer_count + 1;  // what is behind the last one counts as one more
  const float width = ui.px(kSlider);
  continue_line(ui, 8, width);
  ImGui::SetNextItemWidth(width);
  int value = static_cast<int>(std::min<std::uint64_t>(*choice.gpu_layers, static_cast<std::uint64_t>(most)));
  const std::string format = fmt::format("%d of {} on the device", most);
  const bool moved =
      ImGui::SliderInt("##layers", &value, 0, most, format.c_str(), ImGuiSliderFlags_AlwaysClamp);
  tooltip(
      ui,
      "The last layers go to the device, norm and head counting as one; everything else stays on the host");
  if (!moved) return;
  choice.gpu_layers = static_cast<std::uint64_t>(value);
  workspace.attempt([&] { document.set_plan(choice); });
}

void PlacementControls::draw_map(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  PlanChoice choice = document.choice();
  MemoryMap& map = *choice.memory_map;
  bool changed = labelled_field(ui, "##map device", "device", kSize, device_, typed_size(map.device), "0",
                                "What is placed there until the next piece does not fit, such as 8GiB");
  changed |=
      labelled_field(ui, "##map host", "host", kSize, host_, typed_size(map.host), "no limit",
                     "What goes to the host after that; the rest stays on disk. Empty: as much as there is");
  if (!changed) return;
  workspace.attempt([&] {
    map.device = parse_size(device_.typed, "device");
    map.host = host_.typed.empty() ? std::nullopt : std::optional(parse_size(host_.typed, "host"));
    document.set_plan(choice);
  });
}

void PlacementControls::draw_rules(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  PlanChoice choice = document.choice();
  if (!labelled_field(
          ui, "##rules", "", kRulesText, rules_, place_text(choice.place),
          "name:*experts*=host; layer:0-3=disk",
          "EXPR=device, host or disk, as in the tensors' filter; the first that matches counts, and "
          "what none matches goes to the device"))
    return;
  workspace.attempt([&] {
    choice = without_placement(choice);
    choice.place = parse_place_text(rules_.typed);
    wants_rules_ = choice.place.empty();
    document.set_plan(choice);
  });
}

}  // namespace loadline::gui
