// The options that load methods take, for every command that runs one.
#pragma once

#include "core/plan/methods.h"

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace loadline::cli {

struct MethodArguments {
  std::string staging = "64MiB";
  std::uint32_t slots = 4;
  std::string memory_limit = "40GB";
  std::string activations = "0";
  std::string allocator = "exact";
};

// --staging, --slots, --memory-limit, --activations, --allocator. `arguments` must outlive parsing.
void add_method_options(CLI::App& app, MethodArguments& arguments);
// Throws Error{usage}.
MethodOptions parse_method_arguments(const MethodArguments& arguments);

}  // namespace loadline::cli
