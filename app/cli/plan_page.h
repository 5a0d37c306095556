// plan's answer as one HTML page that needs nothing else: curves, verdicts, explanations.
#pragma once

#include "app/cli/plan_answer.h"

#include <string>
#include <utility>
#include <vector>

namespace loadline::cli {

// Names and values of what was asked for, as the page lists them.
using OptionList = std::vector<std::pair<std::string, std::string>>;

// No script, no font, no picture from elsewhere; light or dark as the reader's system says.
std::string plan_page(const PlanAnswer& answer, const OptionList& options);

}  // namespace loadline::cli
