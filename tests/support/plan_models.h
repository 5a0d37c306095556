// Small models, forward passes and plans, without bytes behind them.
#pragma once

#include "core/forward/model/forward_model.h"
#include "core/graph/meta_graph.h"
#include "core/packing/problem.h"
#include "core/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace loadline::testing {

// --- Small models for plans: sizes and names, without bytes behind them.

// Tensors "t0", "t1", ... of so many bytes, without a file.
graph::MetaGraph graph_of(const std::vector<std::uint64_t>& sizes);

struct Weight {
  std::string name;
  std::uint64_t rows = 1;  // of 32 numbers
};
// One file in the order given.
graph::MetaGraph model_of(const std::vector<Weight>& weights, graph::DType dtype = graph::DType::bf16);
// A second name of a storage's tensor, which must be the storage's first.
void tie(graph::MetaGraph& graph, const std::string& name, std::uint32_t storage);

// --- Forward passes of every family that is described, for tests and benchmarks of where values go.

struct DescribedModel {
  std::string name;
  graph::MetaGraph graph;
};
// Every preset, and a configuration of each family that has none. Without weights.
std::vector<DescribedModel> described_models();

// The values and temporaries of one pass as buffers; at multiples of 256 bytes, as the planner has them.
packing::Problem pass_problem(const forward::ForwardModel& model, std::uint64_t batch,
                              std::uint64_t sequence);

// --- Random plans that obey check_plan.

// Blocks of all four spaces, copies between every pair that is allowed, from storages and blocks.
plan::Plan random_plan(const graph::MetaGraph& graph, std::uint64_t seed, std::size_t steps);

}  // namespace loadline::testing
