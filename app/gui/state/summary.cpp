// The verdict, and the options that are set.
#include "app/gui/state/summary.h"

#include "app/gui/state/document.h"

#include <algorithm>
#include <array>

namespace loadline::gui {

Verdict verdict_of(const Document& document) {
  const load::LoadAnswer* const judged = document.load.judged_load();
  if (judged == nullptr || document.load.judged.busy()) return {};
  return report::run_verdict(*judged);
}

std::vector<const load::LoadOption*> changed_options(const Document& document) {
  // the tokens of the pass follow the model at first, and have their slider
  constexpr std::array kShown = {"method", "order", "target", "device_budget", "seq", "past"};
  const load::LoadRequest at_first = Asked().request;
  std::vector<const load::LoadOption*> set;
  for (const load::LoadOption& option : load::load_options())
    if (std::ranges::find(kShown, option.id) == kShown.end() &&
        !same_option(option, document.load.asked().request, at_first))
      set.push_back(&option);
  return set;
}

}  // namespace loadline::gui
