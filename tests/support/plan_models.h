// Small models for plans: sizes and names, without bytes behind them.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline::testing {

// Tensors "t0", "t1", ... of so many bytes, without a file.
MetaGraph graph_of(const std::vector<std::uint64_t>& sizes);

struct Weight {
  std::string name;
  std::uint64_t rows = 1;  // of 32 numbers
};
// One file in the order given.
MetaGraph model_of(const std::vector<Weight>& weights, DType dtype = DType::bf16);
// A second name of a storage's tensor, which must be the storage's first.
void tie(MetaGraph& graph, const std::string& name, std::uint32_t storage);

}  // namespace loadline::testing
