// Forward passes of every family that is described, for tests and benchmarks of where values go.
#pragma once

#include "core/forward/model/forward_model.h"
#include "core/packing/problem.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline::testing {

struct DescribedModel {
  std::string name;
  MetaGraph graph;
};
// Every preset, and a configuration of each family that has none. Without weights.
std::vector<DescribedModel> described_models();

// The values and temporaries of one pass as buffers; at multiples of 256 bytes, as the planner has them.
Problem pass_problem(const ForwardModel& model, std::uint64_t batch, std::uint64_t sequence);

}  // namespace loadline::testing
