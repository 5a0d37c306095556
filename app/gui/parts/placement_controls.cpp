// The options that place weights exclude each other: one of them is chosen, and has its control beside it.
#include "app/gui/parts/plan_controls.h"
#include "app/gui/parts/widgets.h"

#include <algorithm>
#include <vector>

namespace loadline::gui {
namespace {

std::vector<const LoadOption*> ways() {
  std::vector<const LoadOption*> rows;
  for (const LoadOption& option : load_options())
    if (option.group == load_groups::kPlaces) rows.push_back(&option);
  return rows;
}

// Something to begin with: half of the model. Empty: somebody has to say something.
std::string first_word(const Document& document, const LoadOption& way) {
  if (way.kind == OptionKind::count) return std::to_string(document.model->layer_count / 2);
  if (way.id != "auto_map") return "";
  const auto budget = document.memory().budget.device;
  return print_option(OptionKind::bytes, budget.value_or(document.model->weight_bytes / 2));
}

Asked without(Asked asked, const std::vector<const LoadOption*>& rows) {
  for (const LoadOption* way : rows) way->set(asked.request, {});
  return asked;
}

}  // namespace

void PlacementControls::draw(Document& document, const Ui& ui, OptionControls& controls) {
  const std::vector<const LoadOption*> rows = ways();
  const auto is_set = [&](const LoadOption* way) {
    return !same_option(*way, document.asked().request, LoadRequest());
  };
  const auto set = std::ranges::find_if(rows, is_set);
  if (set != rows.end()) wanted_ = nullptr;  // something else put it there
  const bool offered =
      std::ranges::any_of(rows, [&](const LoadOption* way) { return is_offered(document, *way); });
  if (!document.model || !offered) {
    wanted_ = nullptr;
    return;
  }
  std::vector<std::string_view> labels = {"All on the device"};
  std::size_t now = 0;
  std::vector<const LoadOption*> shown;  // those that the method supports, and what is set
  for (const LoadOption* way : rows) {
    const bool chosen = way == wanted_ || is_set(way);
    if (!chosen && !is_offered(document, *way)) continue;
    shown.push_back(way);
    if (chosen) now = labels.size();
    labels.push_back(way->title);
  }
  const float width = ui.px(184);
  label_before(ui, "Weights", width);
  const auto picked = combo(ui, "##weights", width, labels[now], labels, now);
  tooltip(ui, now == 0 ? "Where they go" : shown[now - 1]->help);
  if (picked && *picked != now) {
    document.ask(without(document.asked(), rows));
    now = *picked;
    wanted_ = now == 0 ? nullptr : shown[now - 1];
    if (wanted_ != nullptr)
      if (const std::string word = first_word(document, *wanted_); !word.empty())
        document.set_option(wanted_->id, word);
  }
  if (now > 0) controls.draw_bare(document, ui, *shown[now - 1]);
}

}  // namespace loadline::gui
