// Method, order and placement of weights.

#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/widgets.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <vector>

namespace loadline::gui {

// --- Combos over the tables of methods and orders, and rows of options by their groups.

namespace {

// Uploads take none of the options of a pass but the size of a block that stands for it.
bool is_setting(const load::LoadOption& option) {
  return option.group == load::load_groups::kSettings ||
         (option.group == load::load_groups::kPass && option.offered_to(load::LoadUser::upload));
}

}  // namespace

void method_choice(Workspace& workspace, const Ui& ui, float width) {
  Document& document = workspace.document();
  const load::Method& method = shown_method(document.load.asked());
  std::vector<const load::Method*> methods;
  for (const load::Method& row : load::methods())
    if (&row == &method || is_offered(document, row)) methods.push_back(&row);
  // by framework, each where its first method stands
  std::vector<std::string_view> frameworks;
  for (const load::Method* const row : methods)
    if (std::ranges::find(frameworks, load::framework_of(*row)) == frameworks.end())
      frameworks.push_back(load::framework_of(*row));
  std::ranges::stable_sort(methods, {}, [&](const load::Method* row) {
    return std::ranges::find(frameworks, load::framework_of(*row)) - frameworks.begin();
  });
  std::vector<ComboRow> rows;
  for (const load::Method* const row : methods)
    rows.push_back({std::string(row->id), std::string(load::framework_of(*row)), std::string(row->summary)});
  const auto now = static_cast<std::size_t>(std::ranges::find(methods, &method) - methods.begin());
  const auto picked = combo(ui, "##method", width, method.id, rows, now);
  tooltip(ui, method.summary);
  if (picked) workspace.attempt([&] { document.load.set_option("method", methods[*picked]->id); });
}

void order_choice(Workspace& workspace, const Ui& ui, float width) {
  Document& document = workspace.document();
  const std::string order = shown_order(document.load.asked());
  std::vector<std::string_view> labels;
  std::size_t at = load::orders().size();  // one's own
  for (std::size_t i = 0; i < load::orders().size(); ++i) {
    labels.push_back(load::orders()[i].id);
    if (load::orders()[i].id == order) at = i;
  }
  labels.push_back(load::kOwnOrder);
  const auto other = combo(ui, "##order", width, order, labels, at);
  tooltip(ui, at < load::orders().size()
                  ? load::orders()[at].summary
                  : "Custom order: arranged in the panel Methods under Order, or read from a file");
  if (!other) return;
  if (*other == load::orders().size()) {
    workspace.settings.panel = "methods";
    workspace.settings.compare_view = CompareView::order;
    if (!document.load.custom_order()) return;
  }
  workspace.attempt([&] { document.load.set_option("order", labels[*other]); });
}

void method_and_order(Workspace& workspace, const Ui& ui, float method_width, float order_width) {
  method_choice(workspace, ui, method_width);
  ImGui::SameLine(0, ui.px(6));
  order_choice(workspace, ui, order_width);
}

void method_options(Document& document, const Ui& ui, OptionControls& controls) {
  for (const load::LoadOption& option : load::load_options())
    if (is_setting(option) && is_offered(document, option)) controls.draw(document, ui, option);
}

void upload_options(Document& document, const Ui& ui, OptionControls& controls) {
  for (const load::LoadOption& option : load::load_options())
    if ((is_setting(option) || option.group == load::load_groups::kReads) &&
        option.offered_to(load::LoadUser::upload) && is_offered(document, option))
      if (const auto look = look_of(document, option))
        controls.draw_line(ui, *look,
                           [&](std::string_view word) { document.load.set_option(option.id, word); });
}

// --- The options that place weights exclude each other: one of them is chosen, and has its control beside
// it.

namespace {

std::vector<const load::LoadOption*> ways() {
  std::vector<const load::LoadOption*> rows;
  for (const load::LoadOption& option : load::load_options())
    if (option.group == load::load_groups::kPlaces) rows.push_back(&option);
  return rows;
}

Asked without(Asked asked, const std::vector<const load::LoadOption*>& rows) {
  for (const load::LoadOption* way : rows) way->set(asked.request, {});
  return asked;
}

}  // namespace

void PlacementControls::draw(Document& document, const Ui& ui, OptionControls& controls) {
  const std::vector<const load::LoadOption*> rows = ways();
  const auto is_set = [&](const load::LoadOption* way) {
    return !same_option(*way, document.load.asked().request, load::LoadRequest());
  };
  const auto set = std::ranges::find_if(rows, is_set);
  if (set != rows.end()) wanted_ = nullptr;  // something else put it there
  const bool offered =
      std::ranges::any_of(rows, [&](const load::LoadOption* way) { return is_offered(document, *way); });
  if (!document.model || !offered) {
    wanted_ = nullptr;
    return;
  }
  std::vector<std::string_view> labels = {"All on the device"};
  std::size_t now = 0;
  std::vector<const load::LoadOption*> shown;  // those that the method supports, and what is set
  for (const load::LoadOption* way : rows) {
    const bool chosen = way == wanted_ || is_set(way);
    if (!chosen && !is_offered(document, *way)) continue;
    shown.push_back(way);
    if (chosen) now = labels.size();
    labels.push_back(way->title);
  }
  const float width = ui.px(184);
  label_before(ui, "Weights", width);
  const auto picked = combo(ui, "##weights", width, labels[now], labels, now);
  tooltip(ui, now == 0 ? "Where weights are placed" : shown[now - 1]->help);
  if (picked && *picked != now) {
    document.load.ask(without(document.load.asked(), rows));
    now = *picked;
    wanted_ = now == 0 ? nullptr : shown[now - 1];
    const load::OptionInContext* const in = wanted_ == nullptr ? nullptr : wanted_->terms.in_context;
    if (in != nullptr && in->first_value != nullptr)
      document.load.set_option(wanted_->id, in->first_value(load_context(document)));
  }
  if (now > 0) controls.draw_bare(document, ui, *shown[now - 1]);
}

}  // namespace loadline::gui
