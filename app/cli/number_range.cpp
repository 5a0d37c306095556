// Asks what a number is, not what it is not.
#include "app/cli/number_range.h"

#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace loadline::cli {

CLI::Validator number_range(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& input) {
        double value = 0;
        if (CLI::detail::lexical_cast(input, value) && value >= least && value <= most) return std::string();
        return fmt::format("Value {} not in range {} to {}", input, least, most);
      },
      fmt::format("FLOAT in [{} - {}]", least, most));
}

}  // namespace loadline::cli
