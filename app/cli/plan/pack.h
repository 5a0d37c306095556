// What `pack` has packed, and its output.
#pragma once

#include "app/cli/base/command.h"
#include "core/load/request/pass.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/plan/plan.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::cli {

// The run of a model that the options ask for.
struct PackRun {
  graph::MetaGraphPtr graph = {};
  plan::Plan plan = {};
  plan::Timeline timeline = {};
  plan::Space space = plan::Space::device;
  std::string method = {};  // empty: no load
  std::string order = {};
  std::shared_ptr<const load::RequestPass> forward = {};  // set if the run has a pass
  std::string text = {};                // "a forward pass of 1 x 512 tokens (profile fused)"
  std::vector<std::string> notes = {};  // remarks for the user
};

// Requested bytes by use; each block counts in full.
struct BytesByUse {
  std::uint64_t weights = 0;
  std::uint64_t weight_copies = 0;  // temporary blocks that hold a weight's bytes
  std::uint64_t ring_slots = 0;
  std::uint64_t values = 0;  // activations and cache
  std::uint64_t temporaries = 0;

  std::uint64_t sum() const { return weights + weight_copies + ring_slots + values + temporaries; }
};

// The packing problem of a run.
struct RunProblem {
  packing::Problem problem = {};             // ids: labels of the blocks, made unique
  BytesByUse bytes = {};                     // requested bytes of its blocks
  std::uint64_t alive = 0;                   // most bytes requested at once
  std::optional<std::uint64_t> greedy = {};  // the height of TensorFlow Lite's planner, if found in time
};

struct PackAnswer {
  const packing::Problem& problem;
  packing::PackOptions asked = {};
  packing::Packing packing = {};
  std::string asked_out = {};          // --out
  std::string out = {};                // the file written, if any
  const PackRun* run = nullptr;        // set if a model was packed,
  const RunProblem* of_run = nullptr;  // together with its problem
  std::uint64_t alignment = 1;         // of all buffers of a run
};

Json packing_json(const PackAnswer& answer);
std::string packing_text(const PackAnswer& answer);

}  // namespace loadline::cli
