// What pack says of a packing.
#pragma once

#include "app/cli/pack_problem.h"
#include "core/packing/pack.h"

#include <optional>
#include <string>

namespace loadline::cli {

struct PackAnswer {
  const Problem& problem;
  PackOptions asked = {};
  Packing packing = {};
  std::string asked_out = {};          // --out
  std::string out = {};                // where it was written
  const PackRun* run = nullptr;        // of a model,
  const RunProblem* of_run = nullptr;  // with its problem
  std::uint64_t alignment = 1;         // of all of them
};

Json packing_json(const PackAnswer& answer);
std::string packing_text(const PackAnswer& answer);

}  // namespace loadline::cli
