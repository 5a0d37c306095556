// Methods that cannot be used, told by why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace loadline::report {

struct Refusal {
  std::string_view method;
  std::string why = {};  // safe to show
};
// Each reason once, behind the methods that share it, each named once: "a, b cannot be done: WHY.\n".
std::string refusals_text(const std::vector<Refusal>& refusals, std::string_view cannot);

}  // namespace loadline::report
