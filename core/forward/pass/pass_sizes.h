// The sizes of a pass: batch, sequence and past, and sizes that the file names itself.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// A size chosen by its name in the file: "height=224".
struct SizeChoice {
  std::string name = {};
  std::uint64_t size = 0;
  bool operator==(const SizeChoice&) const = default;
};

// The symbol_values() of batch, sequence and past, overridden by `choices`. A choice sets the symbol that its
// name stands for, so names of the same symbol must get equal sizes. Throws Error{usage} for an unknown name,
// listing the known ones, and for a name that stands for a sum of sizes.
std::vector<std::uint64_t> symbol_values(const ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past,
                                         std::span<const SizeChoice> choices);

// The names of sizes that are 1 because they are not chosen and do not follow from batch, sequence or past.
std::vector<std::string> sizes_left_at_1(const ForwardGraph& graph, std::span<const SizeChoice> choices);

// Whether any value's size depends on the batch, the sequence or the past.
bool depends_on_tokens(const ForwardGraph& graph);

}  // namespace loadline
