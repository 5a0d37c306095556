// The option that would resolve an error, as data: front ends show it as a flag or a button.
#pragma once

#include <string>

namespace loadline {

// An option of one of the tables (opening, loading, converting) and the value to set; a flag's value is "on".
struct Remedy {
  std::string option = {};
  std::string value = {};
  bool operator==(const Remedy&) const = default;
};

}  // namespace loadline
