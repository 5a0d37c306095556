// Curves of memory over a load, drawn with characters.
#pragma once

#include "app/cli/plan_view.h"

#include <cstddef>
#include <string>

namespace loadline::cli {

// How a terminal can draw.
struct PlotStyle {
  std::size_t columns = 80;
  bool colour = false;
  bool unicode = true;  // else ASCII alone
};

// One plot per row that has a curve, all to one scale of bytes, and a legend.
std::string plan_plots(const PlanView& view, const PlotStyle& style);

}  // namespace loadline::cli
