// plan's answer as one HTML page that needs nothing else: curves, verdicts, explanations.
#pragma once

#include "app/cli/plan_answer.h"
#include "app/report/plan_page.h"

#include <string>

namespace loadline::cli {

using report::OptionList;

// No script, no font, no picture from elsewhere; light or dark as the reader's system says.
std::string plan_page(const PlanAnswer& answer, const OptionList& options);

}  // namespace loadline::cli
