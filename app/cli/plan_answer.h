// What `plan` found, for everything that shows it: text, JSON, pictures.
#pragma once

#include "app/cli/command.h"
#include "app/cli/forward_options.h"
#include "app/cli/plan_advice.h"
#include "core/plan/device_preset.h"
#include "core/plan/rates.h"
#include "core/view/plan_chart.h"

#include <string>
#include <vector>

namespace loadline::cli {

using view::band_masks;
using view::chart_scale;
using view::chart_style;
using view::chart_svg;
using view::chart_title;
using view::ChartScale;
using view::compare_rows;
using view::CurveBand;
using view::CurveOptions;
using view::dark_colours;
using view::Labels;
using view::light_colours;
using view::make_row;
using view::panel_svg;
using view::PanelSize;
using view::pictured_note;
using view::pictured_rows;
using view::refused_row;
using view::RowCurve;
using view::RowFrame;
using view::RowPeak;
using view::space_title;
using view::stack_of;
using view::verdict_text;
using Row = view::PlanRow;

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
  operator view::ChartSubject() const { return {graph, frame, rows}; }
};

}  // namespace loadline::cli
