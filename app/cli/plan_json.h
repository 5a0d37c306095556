// The JSON output of `plan`.
#pragma once

#include "app/cli/command.h"
#include "app/cli/plan_view.h"

namespace loadline::cli {

Json plan_json(const PlanView& view);

}  // namespace loadline::cli
