// The time that an upload should have taken beside the time that it took.
#pragma once

#include "core/load/rates.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loadline::report {

// By how many percent the measured figure differs from the projected one; 0 if both are 0, 100 if only the
// projected one is.
double error_percent(double projected, double measured);
double error_percent(std::uint64_t projected, std::uint64_t measured);

// "85.2 ms projected, 66.9 ms measured (-21.5 %)."
std::string upload_time_text(double projected, double measured);
// Sentences on the projected time of an upload to `device`: its rates, and what it leaves out.
std::string upload_rates_text(const std::optional<MeasuredRates>& rates, std::string_view device);

}  // namespace loadline::report
