// Curves of memory over a load, drawn with text characters.
#pragma once

#include "app/cli/plan/plan_view.h"

#include <cstddef>
#include <string>

namespace loadline::cli {

// The drawing abilities of a terminal.
struct PlotStyle {
  std::size_t columns = 80;
  bool colour = false;
  bool unicode = true;  // if false, ASCII only
};

// One plot for each row that has a curve, all with the same scale of bytes, and a legend.
std::string plan_plots(const PlanView& view, const PlotStyle& style);

}  // namespace loadline::cli
