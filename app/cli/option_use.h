// Which options mean something where: what is given and would be ignored is refused instead.
#pragma once

#include "core/load/methods.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace loadline::cli {

// An option as it was given on the command line.
struct GivenOption {
  std::string name = {};  // "--seq"
  std::vector<std::string> values = {};
  bool joined = false;  // its values are separated by commas
};
// Those of the command line, the positional PATH aside.
std::vector<GivenOption> given_options(const CLI::App& app);

// False for an option of load methods that changes nothing of this one's load.
bool takes(const Method& method, std::string_view option);
// Whether load methods differ in what they make of it.
bool is_method_option(std::string_view name);
// The options of load methods that this one takes: "--staging, --slots".
std::string taken_options(const Method& method);
// Throws Error{usage} that names the option and who takes it, for one that none of the methods takes.
void require_taken(std::span<const GivenOption> given, std::span<const Method* const> methods);
// Throws Error{usage} for what shows only beside another option, which is not there.
void require_company(std::span<const GivenOption> given);

}  // namespace loadline::cli
