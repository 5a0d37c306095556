// What `plan` says after a table in which not everything fits: the cheapest change that does.
#pragma once

#include "app/cli/command.h"
#include "app/cli/option_use.h"
#include "app/report/plan_rows.h"
#include "core/load/advice.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace loadline::cli {

using report::RowFrame;
using Row = report::PlanRow;

struct PlanAdvice {
  Advice advice = {};
  bool searched = false;                   // false: among the rows that were asked for, some fit
  std::vector<std::string> commands = {};  // parallel to advice.loads, then that of the nearest
};

// Nothing where all rows fit, or none of them has figures. What streams fits only where nothing else was
// asked for: that it always does is no news.
std::optional<PlanAdvice> plan_advice(const Context& context, const MetaGraph& graph,
                                      std::span<const Row> rows, std::span<const OrderChoice> orders,
                                      const MethodOptions& options, const ForwardPass* pass,
                                      const RowFrame& frame);
// Fills in the commands: `plan path` with what each load changes, and what else was given.
void name_commands(PlanAdvice& advice, const std::string& path, std::span<const GivenOption> given);

std::string advice_text(const PlanAdvice& advice);
Json advice_json(const PlanAdvice& advice);

}  // namespace loadline::cli
