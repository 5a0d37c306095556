// The output of `plan` for a terminal: a table and sentences.
#pragma once

#include "app/cli/plan_view.h"

#include <cstddef>
#include <string>

namespace loadline::cli {

// The table fits into `columns` if possible: the least important columns are dropped first.
std::string plan_table(const PlanView& view, bool colour, std::size_t columns);
// Explains each method, and shows its peak as every memory counter would.
std::string plan_explanation(const PlanView& view, bool colour);

// One sentence: "Least on the device: 5.80 GiB, which is W, by ...".
std::string least_text(const PlanView& view);

}  // namespace loadline::cli
