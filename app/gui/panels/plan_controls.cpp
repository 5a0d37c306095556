// Combos over the tables of methods and orders; sliders for the ring.
#include "app/gui/panels/plan_controls.h"

#include "app/gui/panels/plan_values.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

template <typename Row>
std::optional<std::size_t> table_combo(const Ui& ui, const char* id, float width, std::span<const Row> rows,
                                       std::string_view current) {
  std::vector<std::string_view> labels;
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    labels.push_back(rows[i].id);
    if (rows[i].id == current) at = i;
  }
  const auto picked = combo(ui, id, width, current, labels, at);
  tooltip(ui, rows[at].summary);
  return picked;
}

template <typename Number, std::size_t N, typename Label>
std::optional<Number> value_combo(const Ui& ui, const char* id, float width,
                                  const std::array<Number, N>& values, Number current, Label label) {
  std::vector<std::string> words;
  for (const Number value : values) words.push_back(label(value));
  const std::vector<std::string_view> labels(words.begin(), words.end());
  const auto at = static_cast<std::size_t>(std::find(values.begin(), values.end(), current) - values.begin());
  const auto picked = combo(ui, id, width, label(current), labels, at);
  if (!picked) return std::nullopt;
  return values[*picked];
}

}  // namespace

void method_and_order(Workspace& workspace, const Ui& ui, float method_width, float order_width) {
  Document& document = workspace.document();
  PlanChoice choice = document.choice();
  const auto method = table_combo(ui, "##method", method_width, methods(), choice.method);
  ImGui::SameLine(0, ui.px(6));
  std::vector<std::string_view> labels;
  std::size_t at = orders().size();  // custom
  for (std::size_t i = 0; i < orders().size(); ++i) {
    labels.push_back(orders()[i].id);
    if (orders()[i].id == choice.order) at = i;
  }
  labels.push_back(kCustomOrder);
  const auto order = combo(ui, "##order", order_width, choice.order, labels, at);
  tooltip(ui, at < orders().size() ? orders()[at].summary
                                   : "As arranged in the panel Methods under Order, or read from a file");
  if (method) choice.method = methods()[*method].id;
  if (order && *order < orders().size()) choice.order = orders()[*order].id;
  if (order && *order == orders().size()) {
    if (document.has_custom_order()) choice.order = kCustomOrder;
    workspace.settings.panel = "methods";
    workspace.settings.compare_view = CompareView::order;
  }
  if (method || order) workspace.attempt([&] { document.set_plan(choice); });
}

void ring_controls(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  PlanChoice choice = document.choice();
  const auto sizes = [](std::uint64_t bytes) {
    return bytes == 0 ? std::string("none") : format_bytes(bytes);
  };
  const auto count = [](std::uint32_t slots) { return std::to_string(slots); };
  const auto ring =
      value_combo(ui, "##ring", field(ui, "Staging ring"), kRingSizes, choice.options.staging_bytes, sizes);
  const auto slots =
      value_combo(ui, "##slots", field(ui, "Slots in the ring"), kRingSlots, choice.options.slots, count);
  std::optional<std::uint64_t> activations;
  const float width = field(ui, "Activations");
  if (choice.first_token && document.figures()) {
    ImGui::AlignTextToFramePadding();
    muted(ui, "the first token's");
    const ForwardChoice& pass = document.forward_choice();
    tooltip(ui, fmt::format("A pass of {} x {} tokens follows the load: what its operators allocate is "
                            "allocated, nothing is computed. The timeline's switch \"Load\" leaves it out.",
                            pass.batch, format_grouped(pass.sequence)));
  } else {
    activations =
        value_combo(ui, "##activations", width, kActivationSizes, choice.options.activation_bytes, sizes);
  }
  if (ring) choice.options.staging_bytes = *ring;
  if (slots) choice.options.slots = *slots;
  if (activations) choice.options.activation_bytes = *activations;
  if (ring || slots || activations) workspace.attempt([&] { document.set_plan(choice); });
}

}  // namespace loadline::gui
