// The output of `rehearse`, for a terminal and as JSON.
#pragma once

#include "app/cli/base/command.h"
#include "app/report/measured_loads.h"

#include <string>

namespace loadline::cli {

Json rehearsal_json(const report::MeasuredLoads& loads, bool cold);
// Sentences are wrapped at `prose_columns`; the table is not.
std::string rehearsal_table(const report::MeasuredLoads& loads, bool colour, std::size_t prose_columns);

}  // namespace loadline::cli
