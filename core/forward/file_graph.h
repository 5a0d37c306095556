// A file's own operators, run as a profile says.
#pragma once

#include "core/forward/profile.h"
#include "core/graph/forward_graph.h"

#include <cstddef>

namespace loadline {

// A graph out of a file, in which no value shares memory yet, as a framework runs it: operators in the
// profile's order, and each value in memory of its own unless it is, in this order,
//   - an output of the graph: always in memory of its own;
//   - a view ("view"): the input's memory, whatever else uses that, also that of an input of the graph;
//   - made in place ("in_place"): the memory of an input of the same shape and width of elements that this
//     operator is the last to use, that nothing else shares any more, and that is neither an input nor an
//     output of the graph;
//   - at a place of its shape and width that was given up before ("reuse"), the latest such. It is not given
//     back in between.
// A shape that is not in the file, and not a fixed one either, counts as unknown to the framework: it plans
// by what the file declares (Value::inferred). Operators that are "without" their outputs are left out, and
// whoever uses those uses their weights instead: constants, and views of them. With "hold_block_inputs" the
// graph's inputs stay to its last operator. Temporaries are left out where the sizes they follow from are not
// known; one whose own size does not fit in 64 bits has no shape. What else a profile holds is for
// architectures. The bodies of If, Loop and Scan run before their operator, one after the other, so that the
// larger branch counts, each once and planned for itself; what a loop collects from its turns counts where it
// is an output. Source: onnxruntime/core/framework/allocation_planner.cc, whose allocations its own allocator
// interface shows (tests/interop/test_onnx_peak.py).
//
// Values are numbered anew: inputs, then in the order in which they are made. Throws Error{malformed} at the
// place in the profile for a rule that gives no size or no input's number, and Error{limit} for more than
// 500,000 temporaries and where operators use weights of constants more than 4,000,000 times.
ForwardGraph with_profile(const ForwardGraph& graph, const Profile& profile);

// How many values have no memory of their own.
std::size_t sharing_values(const ForwardGraph& graph);

}  // namespace loadline
