// plan's answer as a table and sentences for a terminal.
#pragma once

#include "app/cli/plan_view.h"

#include <cstddef>
#include <string>

namespace loadline::cli {

// The table fits into `columns` where that is possible: columns that say least go first.
std::string plan_table(const PlanView& view, bool colour, std::size_t columns);
// What each method does, and its peak as every counter shows it.
std::string plan_explanation(const PlanView& view, bool colour);

// "Least on the device: 5.80 GiB, which is W, by ...": one sentence.
std::string least_text(const PlanView& view);

}  // namespace loadline::cli
