// The run or the file that `pack` packs, its packing problem, and the output.
#pragma once

#include "app/cli/base/command.h"
#include "app/cli/plan/load_flags.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <memory>
#include <optional>
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

// The buffers of a file, each additionally aligned to `alignment`. Throws Error{io, malformed}, and
// Error{limit} if the two alignments of a buffer have no common multiple below 2^62.
Problem file_problem(const std::string& path, std::uint64_t alignment);

// Requested bytes by use; each block counts in full.
struct BytesByUse {
  std::uint64_t weights = 0;
  std::uint64_t weight_copies = 0;  // temporary blocks that hold a weight's bytes
  std::uint64_t ring_slots = 0;
  std::uint64_t values = 0;  // activations and cache
  std::uint64_t temporaries = 0;

  std::uint64_t sum() const { return weights + weight_copies + ring_slots + values + temporaries; }
};

struct RunProblem {
  Problem problem = {};                      // ids: labels of the blocks, made unique
  BytesByUse bytes = {};                     // requested bytes of its blocks
  std::uint64_t alive = 0;                   // most bytes requested at once
  std::optional<std::uint64_t> greedy = {};  // the height of TensorFlow Lite's planner, if found in time
};

// The blocks of the run's space, at multiples of `alignment`. Throws Error{usage} if the space has no blocks
// (the message names spaces that have some), Error{limit} for sizes over 2^62 bytes. `rule` ends the
// comparison with the greedy planner.
RunProblem run_problem(const PackRun& run, std::uint64_t alignment, const StopRule& rule);

struct PackAnswer {
  const Problem& problem;
  PackOptions asked = {};
  Packing packing = {};
  std::string asked_out = {};          // --out
  std::string out = {};                // the file written, if any
  const PackRun* run = nullptr;        // set if a model was packed,
  const RunProblem* of_run = nullptr;  // together with its problem
  std::uint64_t alignment = 1;         // of all buffers of a run
};

Json packing_json(const PackAnswer& answer);
std::string packing_text(const PackAnswer& answer);

}  // namespace loadline::cli
