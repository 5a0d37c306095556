// A forward pass as a plan: "load, then first token" is one timeline.
#pragma once

#include "core/graph/forward_graph.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace loadline {

// One run of a graph's operators with these sizes. The graph must outlive it.
struct ForwardPass {
  const ForwardGraph* graph = nullptr;
  std::vector<std::uint64_t> symbols = {};  // symbol_values
};

// Appends the pass on the device: each value is allocated by the operator that makes it (inputs by the first)
// and freed after the last that uses it, temporaries with their operator; the cache is allocated where it is
// first written and, like the outputs, stays. Values whose size is unknown are left out. Marks "first token"
// at the end. Throws Error{limit} for a size beyond 2^62 bytes.
void append_forward_pass(Plan& plan, const ForwardPass& pass);

}  // namespace loadline
