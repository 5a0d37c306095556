// The columns of plan's table, and which of them a terminal has room for.
#pragma once

#include "app/cli/plan_view.h"

#include <cstddef>
#include <string>

namespace loadline::cli {

// The rows as a table of at most `columns` characters a line where that is possible. Columns without a figure
// in any row are left out.
std::string rows_table(const PlanView& view, bool colour, std::size_t columns);

// "-" for nothing.
std::string peak_cell(std::uint64_t bytes);

}  // namespace loadline::cli
