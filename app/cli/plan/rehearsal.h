// Measured loads as table, sentences and plots; rehearsing the methods of a request.
#pragma once

#include "app/cli/base/command.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/measured_loads.h"
#include "core/load/request/bind_request.h"

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace loadline::cli {

// --- What commands say of measured loads, and how they draw them.

// The flags --curve, --svg and --html.
struct PictureFlags {
  bool curve = false;
  std::string svg;
  std::string html;

  void add(CLI::App& app);
  // Throws Error{usage} for a path that is no picture's.
  void check() const;
  // Writes the files that were asked for. `text` stands below the picture of the page.
  void write(const report::MeasuredLoads& loads, std::string_view text) const;
};

// One line for each counter that counted something.
std::string measured_table(const report::MeasuredLoads& loads, bool color);
// Names the counters that were above their projection, and since when.
std::string too_high_text(const report::MeasuredLoads& loads);
// Names the loads that were refused, and why; empty if none was. `cannot`: "cannot be uploaded".
std::string refused_text(const report::MeasuredLoads& loads, std::string_view cannot);
// Adds an object for each of them to a list.
void add_refused(Json& list, const report::MeasuredLoads& loads);
// Counts the loads that agree: "2 of 3 loads within 2 % or 16 MiB. 1 load is too small to judge: all counts
// are below 16 MiB."
std::string measured_summary(const std::vector<report::MeasuredLoad>& rows);
// One plot per row and counter with any bytes: the projection as areas, the measurement as points.
std::string measured_plots(const report::MeasuredLoads& loads, const PlotStyle& style);

// --- Rehearses the methods of a request.

// Row by row: parallel loads would count each other's memory. Throws the first refusal if all are refused.
report::MeasuredLoads rehearse_all(const Context& context, const graph::MetaGraphPtr& graph,
                                   const load::BoundRequest& bound, bool cold);

}  // namespace loadline::cli
