// A forward pass as a plan, so that "load, then first token" is one timeline.
#pragma once

#include "core/graph/forward_graph.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <vector>

namespace loadline {

// One run of a graph's operators with given sizes. The graph must outlive it.
struct ForwardPass {
  const ForwardGraph* graph = nullptr;
  std::vector<std::uint64_t> symbols = {};  // symbol_values
};

// Appends the pass in `space`, the device or the host. Each value is allocated by the operator that produces
// it (inputs by the first one) and freed after its last use; temporaries live during their operator. The
// cache is allocated at its first write, or with a past before the first operator; like the outputs, it is
// never freed. Values of unknown size are left out. Adds the mark "first token" at the end. Throws
// Error{limit} for a value over 2^62 bytes.
void append_forward_pass(Plan& plan, const ForwardPass& pass, Space space = Space::device);

}  // namespace loadline
