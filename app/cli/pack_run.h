// What pack packs of a model: one run, of a load, of a forward pass, or of one behind the other.
#pragma once

#include "app/cli/command.h"
#include "app/cli/forward_options.h"
#include "app/cli/method_options.h"
#include "app/cli/option_use.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::cli {

struct PackRunArguments {
  std::string method_id = {};  // empty: no load
  std::string order = "file";
  std::string space = "device";
  MethodArguments method = {};
  ForwardArguments forward = {};
};

// Tokens of the pass where neither a load nor a pass is asked for.
inline constexpr std::uint64_t kPackedTokens = 512;

// `arguments` must outlive parsing.
void add_pack_run_options(CLI::App& app, PackRunArguments& arguments);
// Throws Error{usage} for an option of loads without --method, and for others that change nothing.
void check_pack_run(const PackRunArguments& arguments, const std::vector<GivenOption>& given);
// Whether an option means something for a model only.
bool is_pack_run_option(std::string_view name);

struct PackRun {
  MetaGraphPtr graph = {};
  Plan plan = {};
  Timeline timeline = {};
  Space space = Space::device;
  std::string method = {};  // empty: no load
  std::string order = {};
  std::shared_ptr<const ForwardAnswer> forward = {};  // where a pass is in it
  std::string text = {};                              // "a forward pass of 1 x 512 tokens (profile fused)"
  std::vector<std::string> notes = {};                // for a person
};

// Opens the model and projects the run. Throws Error{usage}, Error{unsupported} where no operators are known
// and no load is asked for.
PackRun pack_run(const Context& context, const std::string& path, const PackRunArguments& arguments,
                 Progress& progress);

}  // namespace loadline::cli
