// The sizes of a pass through a file's own operators, also by the file's own names for them.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// "height=224".
struct SizeChoice {
  std::string name = {};
  std::uint64_t size = 0;
  bool operator==(const SizeChoice&) const = default;
};

// symbol_values(), and then those names: what a name was taken as gets that size, so that names taken as the
// same can only be chosen to be equal. Throws Error{usage} for a name that the file does not have, listing
// those it has, and for one that is a sum of sizes.
std::vector<std::uint64_t> symbol_values(const ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past,
                                         std::span<const SizeChoice> choices);

// Names of sizes that are neither chosen nor follow from batch, sequence and past: they are 1.
std::vector<std::string> sizes_left_at_1(const ForwardGraph& graph, std::span<const SizeChoice> choices);

// Whether any value's size depends on the batch, the sequence or the past.
bool depends_on_tokens(const ForwardGraph& graph);

}  // namespace loadline
