// The time that an upload should have taken beside the time that it took.
#pragma once

#include "core/load/rates.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loadline::report {

// "85.2 ms projected, 66.9 ms measured (-21.5 %)."
std::string upload_time_text(double projected, double measured);
// Sentences on the projected time of an upload to `device`: its rates, and what it leaves out.
std::string upload_rates_text(const std::optional<MeasuredRates>& rates, std::string_view device);

}  // namespace loadline::report
