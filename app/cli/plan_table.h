// plan's answer as text: the table of peaks, what is least, and, asked for, what each method does.
#pragma once

#include "app/cli/plan_answer.h"

#include <string>

namespace loadline::cli {

std::string plan_table(const PlanAnswer& answer, bool colour);
// Each method once, in its first order that can be done: what it does, and its peak as every view counts it.
std::string plan_explanation(const PlanAnswer& answer, bool colour);

// "On NVIDIA T4: 16.00 GiB of the device's own".
std::string device_text(const DevicePreset& device, const RowFrame& frame);
// The least leading peak, whose it is, and how it stands to what stays there.
std::string least_text(const PlanAnswer& answer);

}  // namespace loadline::cli
