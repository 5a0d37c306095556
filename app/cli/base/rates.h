// The rates for time estimates: measured ones if there are any, else assumed ones.
#pragma once

#include "app/cli/base/command.h"
#include "core/load/request/rates.h"

#include <optional>
#include <string>

namespace loadline::cli {

// The stored rates; absent if there are none. A file that cannot be read is reported on stderr and ignored.
std::optional<load::MeasuredRates> kept_rates(const Context& context);

// Every rate of `costs`, and the time of measurement of the measured ones.
Json rates_json(const plan::CostModel& costs, const std::optional<load::MeasuredRates>& rates);

struct MeasureArguments {
  bool measure = false;
  std::string folder = ".";
};
void add_measure_options(CLI::App& app, MeasureArguments& arguments);

// The measured rates, the file that stores them, and why some are missing.
struct RatesAnswer {
  load::MeasuredRates rates = {};
  bool disk_in_memory = false;    // the folder whose disk was measured lies on none
  std::string path = {};          // empty: not stored
  std::string not_kept = {};      // why not
  std::string missing = {};       // why the device's rates are missing; empty: they were measured
  std::string disk_missing = {};  // likewise for the disk
};
// Measures rates and stores them. Throws Error{io | canceled}.
RatesAnswer measure_rates(const Context& context, const MeasureArguments& arguments);
std::string measure_text(const Context& context, const RatesAnswer& answer);
Json measure_json(const RatesAnswer& answer);

}  // namespace loadline::cli
