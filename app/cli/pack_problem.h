// The problem that pack solves: a file of buffers, or one space of a model's run.
#pragma once

#include "app/cli/pack_run.h"
#include "core/packing/problem.h"
#include "core/packing/stop_rule.h"

#include <cstdint>
#include <optional>
#include <string>

namespace loadline::cli {

// The buffers of a file; each also keeps `alignment`. Throws Error{io, malformed}, Error{limit} for one whose
// alignments have no common multiple below 2^62.
Problem file_problem(const std::string& path, std::uint64_t alignment);

// Bytes as the plan asks for them, each block for itself.
struct BytesByUse {
  std::uint64_t weights = 0;
  std::uint64_t weight_copies = 0;  // on their way, or kept by who loads
  std::uint64_t ring_slots = 0;
  std::uint64_t values = 0;  // activations and cache
  std::uint64_t temporaries = 0;

  std::uint64_t sum() const { return weights + weight_copies + ring_slots + values + temporaries; }
};

struct RunProblem {
  Problem problem = {};                      // ids: what the blocks are called, each once
  BytesByUse bytes = {};                     // of its blocks
  std::uint64_t alive = 0;                   // the most that is asked for at once
  std::optional<std::uint64_t> greedy = {};  // the height that TensorFlow Lite's planner reaches,
                                             // where that is known in time
};

// Of the run's space, at multiples of `alignment`. Throws Error{usage} that names the spaces there are blocks
// in if this one has none, Error{limit} for sizes beyond 2^62 bytes. The comparison ends where `rule` is due.
RunProblem run_problem(const PackRun& run, std::uint64_t alignment, const StopRule& rule);

}  // namespace loadline::cli
