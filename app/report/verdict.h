// What a row comes to, in words.
#pragma once

#include "core/load/rows.h"

#include <string>

namespace loadline::report {

// "fits", or what is over by how much and where it first is; safe to show. Without a budget "possible" or
// "cannot be done".
std::string verdict_text(const LoadRow& row, const BoundRequest& bound);

// What the target's data sheet says that the load has to fit into, and what counts of it: "On NVIDIA
// ...: 8.00 GiB of the device's own". Empty where there is nothing to say.
std::string budget_text(const BoundRequest& bound);

}  // namespace loadline::report
