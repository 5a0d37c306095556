// What pack packs of a model: one run, of a load, of a forward pass, or of one behind the other.
#pragma once

#include "app/cli/command.h"
#include "app/cli/load_flags.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <memory>
#include <string>
#include <vector>

namespace loadline::cli {

// Tokens of the pass where neither a load nor a pass is asked for.
inline constexpr std::uint64_t kPackedTokens = 512;

struct PackRun {
  MetaGraphPtr graph = {};
  Plan plan = {};
  Timeline timeline = {};
  Space space = Space::device;
  std::string method = {};  // empty: no load
  std::string order = {};
  std::shared_ptr<const RequestPass> forward = {};  // where a pass is in it
  std::string text = {};                            // "a forward pass of 1 x 512 tokens (profile fused)"
  std::vector<std::string> notes = {};              // for a person
};

// The spaces whose blocks can be packed.
std::vector<std::string> packed_spaces();

// Throws Error{usage} for options of loads where no load is asked for, and for others that change nothing.
void check_pack_request(const LoadRequest& request, const LoadFlags& flags);

// Opens the model and projects the run. Throws Error{usage}, Error{unsupported} where no operators are known
// and no load is asked for.
PackRun pack_run(const Context& context, const std::string& path, const LoadRequest& request,
                 const std::string& space, Progress& progress);

}  // namespace loadline::cli
