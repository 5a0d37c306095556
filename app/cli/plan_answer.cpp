// What all ways to show an answer ask of it.
#include "app/cli/plan_answer.h"

#include <algorithm>

namespace loadline::cli {

bool PlanAnswer::any_fits() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.fits(); });
}

std::string_view PlanAnswer::held_name() const {
  if (forward.pass() != nullptr) return "W and the forward pass";
  return options.activation_bytes > 0 ? "W + Q" : "W";
}

}  // namespace loadline::cli
