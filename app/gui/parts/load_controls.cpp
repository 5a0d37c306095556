// Combos over the tables of methods and orders, and rows of options by their groups.
#include "app/gui/parts/plan_controls.h"
#include "app/gui/parts/widgets.h"
#include "core/load/request/orders.h"

#include <vector>

namespace loadline::gui {
namespace {

// A size of activations is for a load that no pass follows.
bool is_setting(const LoadOption& option) {
  return option.group == load_groups::kSettings || option.id == "activations";
}

}  // namespace

void method_choice(Workspace& workspace, const Ui& ui, float width) {
  Document& document = workspace.document();
  const Method& method = shown_method(document.asked());
  std::vector<std::string_view> labels;
  for (const Method& row : methods()) labels.push_back(row.id);
  const auto now = static_cast<std::size_t>(&method - methods().data());
  const auto picked = combo(ui, "##method", width, method.id, labels, now);
  tooltip(ui, method.summary);
  if (picked) workspace.attempt([&] { document.set_option("method", methods()[*picked].id); });
}

void order_choice(Workspace& workspace, const Ui& ui, float width) {
  Document& document = workspace.document();
  const std::string order = shown_order(document.asked());
  std::vector<std::string_view> labels;
  std::size_t at = orders().size();  // one's own
  for (std::size_t i = 0; i < orders().size(); ++i) {
    labels.push_back(orders()[i].id);
    if (orders()[i].id == order) at = i;
  }
  labels.push_back(kOwnOrder);
  const auto other = combo(ui, "##order", width, order, labels, at);
  tooltip(ui, at < orders().size() ? orders()[at].summary
                                   : "As arranged in the panel Methods under Order, or read from a file");
  if (!other) return;
  if (*other == orders().size()) {
    workspace.settings.panel = "methods";
    workspace.settings.compare_view = CompareView::order;
    if (!document.has_custom_order()) return;
  }
  workspace.attempt([&] { document.set_option("order", labels[*other]); });
}

void method_and_order(Workspace& workspace, const Ui& ui, float method_width, float order_width) {
  method_choice(workspace, ui, method_width);
  ImGui::SameLine(0, ui.px(6));
  order_choice(workspace, ui, order_width);
}

void method_options(Document& document, const Ui& ui, OptionControls& controls) {
  for (const LoadOption& option : load_options())
    if (is_setting(option) && is_offered(document, option)) controls.draw(document, ui, option);
}

void upload_options(Document& document, const Ui& ui, OptionControls& controls) {
  for (const LoadOption& option : load_options())
    if ((is_setting(option) || option.group == load_groups::kReads) && option.offered_to(LoadUser::upload) &&
        is_offered(document, option))
      if (const auto look = look_of(document, option))
        controls.draw_line(ui, *look, [&](std::string_view word) { document.set_option(option.id, word); });
}

}  // namespace loadline::gui
