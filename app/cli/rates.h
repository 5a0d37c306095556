// The rates that times are estimated with: measured ones where somebody measured them.
#pragma once

#include "app/cli/command.h"
#include "core/load/rates.h"

#include <optional>
#include <string>

namespace loadline::cli {

// Where `devices --measure` keeps them; empty without a folder for it.
std::string rates_path(const Context& context);

// Those kept there; absent where there are none. What cannot be read is told on stderr and left out.
std::optional<MeasuredRates> kept_rates(const Context& context);

// Every rate of `costs`, and when those measured were.
Json rates_json(const CostModel& costs, const std::optional<MeasuredRates>& rates);

struct MeasureArguments {
  bool measure = false;
  std::string folder = ".";
};
void add_measure_options(CLI::App& app, MeasureArguments& arguments);

// What was measured, where it is kept, and why something is missing.
struct RatesAnswer {
  MeasuredRates rates = {};
  std::string path = {};     // empty: not kept
  std::string missing = {};  // empty: everything was measured
};
// Measures, and keeps what was measured. Throws Error{io | cancelled}.
RatesAnswer measure_rates(const Context& context, const MeasureArguments& arguments);
std::string measure_text(const Context& context, const RatesAnswer& answer);
Json measure_json(const RatesAnswer& answer);

}  // namespace loadline::cli
