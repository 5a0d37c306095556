// The tensors of a new file by type, and by kind: what a person wants to see before a conversion.
#pragma once

#include "exporters/exporter.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

struct TypeShare {
  DType type = DType::opaque;
  std::uint64_t tensors = 0;
  std::uint64_t weights = 0;  // numbers; of types without a size, bytes
  std::uint64_t bytes = 0;
};

// Tensors whose names differ in numbers alone, and that have the same types.
struct TensorGroup {
  std::string pattern;         // "blk.*.attn_v.weight"
  DType from = DType::opaque;  // in the source
  TypeShare share = {};        // in the output
  std::vector<std::uint64_t>
      layers;         // first numbers of the names, in increasing order; empty if they have none
  bool alone = true;  // the only group with this pattern
};

// Most bytes first.
std::vector<TypeShare> type_shares(const Layout& layout);
// In the order of the file; groups of one pattern stand together.
std::vector<TensorGroup> tensor_groups(const MetaGraph& graph, const Layout& layout);
// 0 for no weights.
double bits_per_weight(std::uint64_t bytes, std::uint64_t weights);
// Whether any tensor of the output is quantised, and whether the conversion quantises one.
bool has_blocks(const Layout& layout);
bool quantises(const Layout& layout);

}  // namespace loadline
