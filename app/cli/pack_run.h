// The run of a model that `pack` packs: a load, a forward pass, or a load followed by a pass.
#pragma once

#include "app/cli/command.h"
#include "app/cli/load_flags.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <memory>
#include <string>
#include <vector>

namespace loadline::cli {

// Tokens of the pass if neither a load nor a pass is requested.
inline constexpr std::uint64_t kPackedTokens = 512;

struct PackRun {
  MetaGraphPtr graph = {};
  Plan plan = {};
  Timeline timeline = {};
  Space space = Space::device;
  std::string method = {};  // empty: no load
  std::string order = {};
  std::shared_ptr<const RequestPass> forward = {};  // set if the run has a pass
  std::string text = {};                            // "a forward pass of 1 x 512 tokens (profile fused)"
  std::vector<std::string> notes = {};              // remarks for the user
};

// Names of the spaces whose blocks can be packed.
std::vector<std::string> packed_spaces();

// Throws Error{usage} for load options without a load, and for other options that have no effect.
void check_pack_request(const LoadRequest& request, const LoadFlags& flags);

// Opens the model and projects the run. Throws Error{usage}, and Error{unsupported} if no load is requested
// and the model's operators are unknown.
PackRun pack_run(const Context& context, const std::string& path, const LoadRequest& request,
                 const std::string& space, Progress& progress);

}  // namespace loadline::cli
