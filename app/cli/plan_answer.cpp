// What all ways to show an answer ask of it.
#include "app/cli/plan_answer.h"

#include <algorithm>

namespace loadline::cli {

bool PlanAnswer::any_fits() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.fits(); });
}

std::string PlanAnswer::held_name() const {
  std::string held = options.cast ? "V, the weights as cast" : "W";
  if (!options.placement.all_on_device()) held = "what is placed there";
  if (forward.pass() != nullptr) return held + " and the forward pass";
  return options.activation_bytes > 0 ? held + " + Q" : held;
}

}  // namespace loadline::cli
