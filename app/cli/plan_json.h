// plan's answer as JSON.
#pragma once

#include "app/cli/plan_answer.h"

namespace loadline::cli {

Json plan_json(const PlanAnswer& answer);

}  // namespace loadline::cli
