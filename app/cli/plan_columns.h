// The columns of plan's table, and the choice of those that fit a terminal.
#pragma once

#include "app/cli/plan_view.h"

#include <cstddef>
#include <string>

namespace loadline::cli {

// The rows as a table with lines of at most `columns` characters, if possible. Columns without a figure in
// any row are left out.
std::string rows_table(const PlanView& view, bool colour, std::size_t columns);

}  // namespace loadline::cli
