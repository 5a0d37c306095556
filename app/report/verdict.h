// Whether a row fits, in words.
#pragma once

#include "core/load/answer/rows.h"

#include <string>

namespace loadline::report {

// The excess over each budget: "device 1.20 GiB over, host 3.00 MiB over". Empty if there is none.
std::string over_text(const BudgetVerdict& verdict);

// "fits", or which budget is exceeded, by how much, and the first block over it; escaped. Without a budget
// "possible" or "cannot be done".
std::string verdict_text(const LoadRow& row, const BoundRequest& bound);

// The memory limits from the target's data sheet, and which of them apply: "On NVIDIA ...: 8.00 GiB of the
// device's own". Empty if there are none.
std::string budget_text(const BoundRequest& bound);

}  // namespace loadline::report
