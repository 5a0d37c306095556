// Groups refused methods by reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

struct Refusal {
  std::string_view method;
  std::string why = {};  // safe to show
};
// Lists each reason once, after the methods that share it: "a, b cannot be done: WHY.\n". Each method is
// named once.
std::string refusals_text(const std::vector<Refusal>& refusals, std::string_view cannot);

}  // namespace loadline::report
