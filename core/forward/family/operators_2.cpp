// Look-ups in the table of operators.
#include "core/forward/family/operators_2.h"

#include <algorithm>

namespace loadline {
const OperatorInfo* find_operator(std::string_view name) {
  const auto found = std::ranges::find(kOperators, name, &OperatorInfo::name);
  return found == kOperators.end() ? nullptr : &*found;
}

std::string operator_list() {
  std::string names;
  for (const OperatorInfo& one : kOperators) names.append(names.empty() ? "" : ", ").append(one.name);
  return names;
}

}  // namespace loadline
