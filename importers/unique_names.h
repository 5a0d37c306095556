// A name of its own for every tensor, in formats whose names may be the same.
#pragma once

#include "core/base/text_hash.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace loadline {

class UniqueNames {
 public:
  // `name` itself, or name#2, name#3 and so on if it was given before.
  std::string take(std::string name) {
    if (taken_.insert(name).second) return name;
    // the counter goes on where it stopped, so that a million equal names stay linear
    std::uint64_t& number = numbers_.try_emplace(name, 1).first->second;
    std::string numbered;
    do {
      numbered = fmt::format("{}#{}", name, ++number);
    } while (!taken_.insert(numbered).second);
    return numbered;
  }

 private:
  TextSet taken_;
  TextMap<std::uint64_t> numbers_;  // of the last one given, by the name asked for
};

}  // namespace loadline
