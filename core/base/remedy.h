// What mends a fault, as data: front ends word it as a flag or show it as a button.
#pragma once

#include <string>

namespace loadline {

// An option of one of the tables (opening, loading, converting) and the value to give it; flags are "on".
struct Remedy {
  std::string option = {};
  std::string value = {};
  bool operator==(const Remedy&) const = default;
};

}  // namespace loadline
