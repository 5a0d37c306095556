// What `plan` found, for everything that shows it: text, JSON, pictures.
#pragma once

#include "app/cli/command.h"
#include "app/cli/forward_options.h"
#include "app/cli/plan_advice.h"
#include "app/cli/plan_rows.h"
#include "core/plan/device_preset.h"
#include "core/plan/rates.h"

#include <string>
#include <vector>

namespace loadline::cli {

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

  // Whether some row has figures, fits its budgets and is below --max-peak.
  bool any_fits() const;
  // "W", "W + Q", "W and the forward pass": what stays where the weights are.
  std::string held_name() const;
};

}  // namespace loadline::cli
