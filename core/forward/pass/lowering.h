// The graph as one profile runs it: of an architecture, or of the operators that a file lists.
#pragma once

#include "core/forward/family/architecture.h"
#include "core/forward/pass/profile.h"
#include "core/graph/forward_graph.h"
#include "core/graph/meta_graph.h"
#include "core/graph/op_place.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace loadline::forward {

// --- Lowers an architecture's operators to a forward graph with sizes, as one profile runs them.

// Every dimension is a polynomial in B, S and P (and min(T, window)). Cached keys and values are in
// Lane::cache; temporaries belong to their operator. Weights are the tensors that `model` found. Throws
// Error{malformed} at the asset's line if operators do not fit together, and at the profile's expression if
// it gives no size.
graph::ForwardGraph lower(const BoundModel& model, const Profile& profile);

// --- Applies a profile to a file's own operators: their order, and which values share memory.

// The graph as a framework runs it, from a file's graph in which no value shares memory yet. Operators are in
// the profile's order. For each value, the first case that applies decides about its memory:
//   - an output of the graph: memory of its own;
//   - a view ("view"): the memory of the viewed input, even if others use it or it is an input of the graph;
//   - made in place ("in_place"): the memory of the input that the rule names, if it has the same shape and
//     element width, this operator is its last user and uses it once, no other value shares the memory any
//     more, and it is neither an input nor an output of the graph;
//   - reuse ("reuse"): the most recently freed memory of a value with the same shape and element width. Freed
//     memory is kept for reuse, not returned to the allocator;
//   - otherwise: memory of its own.
// A shape counts as unknown to the framework if the value says so (Value::half_declared), or if one of its
// sizes is an open one. Operators that are "without" their outputs are left
// out: constants, and views of constants. Operators that use such outputs use the constants' weights instead.
// With "hold_block_inputs" the graph's inputs, and results that nothing uses, live to its last operator.
// Temporaries are left out if a size of the operator is unknown; one whose size does not fit in 64 bits has
// no shape. An operator with "steps" is replaced by them. Operators that the profile does not account for
// have no temporaries. ForwardGraph::unaccounted names their kinds, or the attribute that the profile does
// not know or whose value was not kept ("Conv.pads"). `tensors` are those of the file, whose shapes rules may
// use. Other fields of a profile apply to architectures only. The bodies of If, Loop and Scan run before
// their operator, one after the other, so the larger branch decides the peak. Each body runs once and is
// planned separately. Values that a loop collects from its turns count as its outputs. Source:
// onnxruntime/core/framework/allocation_planner.cc, checked against the calls of onnxruntime's allocator
// interface (tests/interop/test_onnx_peak.py).
//
// Values are renumbered: inputs, then in the order in which they are made. Throws Error{malformed} at the
// place in the profile for a rule that gives no size or no valid input number. Throws Error{limit} for more
// than 500,000 temporaries, and if operators use weights of constants more than 4,000,000 times.
graph::ForwardGraph with_profile(const graph::ForwardGraph& graph, const Profile& profile,
                                 std::span<const graph::Tensor> tensors = {});

// The same, with the places of its parts in the file's graph.
struct FilePass {
  graph::ForwardGraph graph;
  std::vector<graph::OpPlace> ops;  // per operator of `graph`: that of the file which it is, or is part of
  std::vector<std::optional<graph::ValueId>> values;  // per value of the file: that of `graph`, if it has one
};
FilePass file_pass(const graph::ForwardGraph& graph, const Profile& profile,
                   std::span<const graph::Tensor> tensors = {});

// The number of operators that with_steps() puts into the place of one.
std::size_t step_count(const graph::Op& op, const Profile& profile);
// The graph with the steps of an operator in its place, if its rule has any.
graph::ForwardGraph with_steps(const graph::ForwardGraph& graph, const Profile& profile);

// The number of values that use another value's memory.
std::size_t sharing_values(const graph::ForwardGraph& graph);

}  // namespace loadline::forward
