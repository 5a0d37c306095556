// What `plan` found, for everything that shows it: text, JSON, pictures.
#pragma once

#include "app/cli/command.h"
#include "app/cli/forward_options.h"
#include "app/cli/plan_advice.h"
#include "app/report/plan_chart.h"
#include "core/load/rates.h"
#include "core/load/targets.h"

#include <string>
#include <vector>

namespace loadline::cli {

using report::band_masks;
using report::chart_scale;
using report::chart_style;
using report::chart_svg;
using report::chart_title;
using report::ChartScale;
using report::compare_rows;
using report::CurveBand;
using report::CurveOptions;
using report::dark_colours;
using report::Labels;
using report::light_colours;
using report::make_row;
using report::panel_svg;
using report::PanelSize;
using report::pictured_note;
using report::pictured_rows;
using report::refused_row;
using report::RowCurve;
using report::RowFrame;
using report::RowPeak;
using report::space_title;
using report::stack_of;
using report::verdict_text;
using Row = report::PlanRow;

// Refers to what it was made of.
struct PlanAnswer {
  const MetaGraph& graph;
  const MethodOptions& options;
  const ForwardAnswer& forward;
  const RowFrame& frame;
  const std::optional<DevicePreset>& device;
  bool several_orders = false;
  std::vector<Row> rows;
  std::optional<PlanAdvice> advice = {};    // where not all rows fit
  std::optional<MeasuredRates> rates = {};  // absent: assumed ones
  bool rates_asked = false;                 // then the times that they give are shown

  // Whether some row has figures, fits its budgets and is below --max-peak.
  bool any_fits() const;
  // "W", "W + Q", "W and the forward pass": what stays where the weights are.
  std::string held_name() const;
  operator report::ChartSubject() const { return {graph, frame, rows}; }
};

}  // namespace loadline::cli
