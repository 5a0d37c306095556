// The verdict in a few words.
#include "app/gui/state/summary.h"

#include "app/gui/state/document.h"

namespace loadline::gui {

Verdict verdict_of(const Document& document) {
  const load::LoadAnswer* const judged = document.load.judged_load();
  if (judged == nullptr || document.load.judged.busy()) return {};
  return report::run_verdict(*judged);
}

}  // namespace loadline::gui
