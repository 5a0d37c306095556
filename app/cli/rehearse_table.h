// A rehearsal for a terminal and for scripts.
#pragma once

#include "app/cli/command.h"
#include "app/cli/plan_plot.h"
#include "app/report/rehearsal.h"

#include <string>

namespace loadline::cli {

Json rehearsal_json(const report::Rehearsal& rehearsal);
std::string rehearsal_table(const report::Rehearsal& rehearsal, bool colour);
// A plot per row and counter that counted something: the projection as areas, the measurement as points.
std::string rehearsal_plots(const report::Rehearsal& rehearsal, const PlotStyle& style);

}  // namespace loadline::cli
