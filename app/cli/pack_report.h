// The output of `pack`.
#pragma once

#include "app/cli/pack_problem.h"
#include "core/packing/pack.h"

#include <string>

namespace loadline::cli {

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
