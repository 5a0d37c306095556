// Makes tensor names unique, for formats in which several tensors may have one name.
#pragma once

#include "core/graph/text_hash.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace loadline {

class UniqueNames {
 public:
  // Returns `name` itself, or name#2, name#3 and so on if it was returned before.
  std::string take(std::string name) {
    if (taken_.insert(name).second) return name;
    // the counter continues where it stopped, so that a million equal names take linear time
    std::uint64_t& number = numbers_.try_emplace(name, 1).first->second;
    std::string numbered;
    do {
      numbered = fmt::format("{}#{}", name, ++number);
    } while (!taken_.insert(numbered).second);
    return numbered;
  }

 private:
  TextSet taken_;
  TextMap<std::uint64_t> numbers_;  // by requested name: the last number given
};

}  // namespace loadline
