// The problem that `pack` solves: a file of buffers, or one memory space of a model's run.
#pragma once

#include "app/cli/pack_run.h"
#include "core/packing/problem.h"
#include "core/packing/stop_rule.h"

#include <cstdint>
#include <optional>
#include <string>

namespace loadline::cli {

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

}  // namespace loadline::cli
