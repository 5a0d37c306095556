// The output of `rehearse`, for a terminal and as JSON.
#pragma once

#include "app/cli/command.h"
#include "app/cli/plan_plot.h"
#include "app/report/rehearsal.h"

#include <string>

namespace loadline::cli {

Json rehearsal_json(const report::Rehearsal& rehearsal);
// Sentences are wrapped at `prose_columns`; the table is not.
std::string rehearsal_table(const report::Rehearsal& rehearsal, bool colour, std::size_t prose_columns);
// One plot per row and counter with any bytes: the projection as areas, the measurement as points.
std::string rehearsal_plots(const report::Rehearsal& rehearsal, const PlotStyle& style);

}  // namespace loadline::cli
