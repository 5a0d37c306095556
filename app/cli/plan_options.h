// What plan was asked for, as the command line says it.
#pragma once

#include "app/cli/forward_options.h"
#include "app/cli/method_options.h"
#include "app/cli/option_use.h"
#include "app/report/plan_page.h"
#include "app/report/plan_rows.h"
#include "core/load/targets.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::cli {

struct PlanOptions {
  std::string path = {};
  std::vector<std::string> methods = {"all"};
  std::vector<std::string> orders = {"file"};
  MethodArguments method = {};
  ForwardArguments forward = {};
  std::string device_budget = {};
  std::string host_budget = {};
  std::string max_peak = {};
  std::string cache_limit = {};
  std::string memory = {};  // empty: as the device's, or discrete
  std::string device = {};
  std::string rates = {};  // empty: those kept, or assumed ones
  bool explain = false;
  bool curve = false;
  std::string svg = {};
  std::string html = {};
  std::vector<std::string> measure = {};
  bool cold = false;
  std::string axis = {};  // empty: steps with a forward pass, which takes no modelled time, else time
  std::vector<GivenOption> given = {};  // what the command line says
};

// What was asked for, each once; "all" is every row of the table. Throws Error{usage}.
std::vector<const Method*> methods_of(const std::vector<std::string>& ids);
std::vector<std::string> order_names_of(const std::vector<std::string>& names);

// Throws Error{usage} for what was given and would be ignored.
void check_use(const PlanOptions& options, std::span<const Method* const> methods,
               std::span<const std::string> orders);

// What is given goes before what the device has. Throws Error{usage}.
report::RowFrame frame_of(const PlanOptions& options, const std::optional<DevicePreset>& device);
// Absent where nothing shows curves.
std::optional<report::CurveOptions> curve_of(const PlanOptions& options, bool has_pass);

// For a page: the model, the kind of memory, and everything that was given.
report::OptionList asked_for(const PlanOptions& options, const report::RowFrame& frame);

}  // namespace loadline::cli
