// Look-ups in the table of operators.
#include "core/forward/operators.h"

#include <algorithm>

namespace loadline {
const OperatorInfo* find_operator(std::string_view name) {
  const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                  [&](const OperatorInfo& one) { return one.name == name; });
  return found == kOperators.end() ? nullptr : &*found;
}

bool has_attribute(const OperatorInfo& of, std::string_view attribute) {
  std::string_view rest = of.attributes;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(' '));
    if (one == attribute) return true;
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  return false;
}

std::string operator_list() {
  std::string names;
  for (const OperatorInfo& one : kOperators) {
    if (!names.empty()) names += ", ";
    names += one.name;
  }
  return names;
}

}  // namespace loadline
