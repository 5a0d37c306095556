// When each value of a forward pass is alive, and how much memory that is at its worst.
#pragma once

#include "core/allocators/replay.h"
#include "core/graph/forward_graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline {

// The operators during which a value's memory is held: [first, end), by position in ForwardGraph::ops. Empty
// for one that shares an earlier value's memory, which then lives as long as both need it, for one that
// nothing makes, and for the cache, which is there throughout.
struct OpRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  bool empty() const { return first >= end; }
  bool operator==(const OpRange&) const = default;
};

// One range for each value. Inputs live from the first operator to their last use, outputs to the end.
std::vector<OpRange> lifetimes(const ForwardGraph& graph);

// The bytes of every value where `symbols` have these values (symbol_values). Nothing for a value whose size
// is unknown.
// Throws Error{limit} for one that is negative or beyond 64 bits.
std::vector<std::optional<std::uint64_t>> value_sizes(const ForwardGraph& graph,
                                                      std::span<const std::uint64_t> symbols);

// Bytes by what they are for.
struct LaneBytes {
  std::uint64_t activations = 0;
  std::uint64_t temporaries = 0;
  std::uint64_t cache = 0;  // as far as it has been written, this operator's part with it

  std::uint64_t passing() const { return activations + temporaries; }
};

// What is alive during each operator, by a sum over the values; unknown sizes are left out. Throws
// Error{limit} beyond 2^62 bytes.
std::vector<LaneBytes> forward_usage(const ForwardGraph& graph, std::span<const OpRange> lives,
                                     std::span<const std::optional<std::uint64_t>> sizes);

struct ForwardPeak {
  std::uint64_t bytes = 0;        // activations and temporaries alive at once; the cache is not among them
  std::uint32_t op = 0;           // the first operator during which they are
  std::uint64_t cache_bytes = 0;  // after the pass
  std::size_t unknown = 0;        // values left out because nobody knows their size
};

// Of the usage of that graph with these sizes. What an allocator makes of it is more. Throws Error{limit}
// for a cache beyond 2^62 bytes.
ForwardPeak forward_peak(const ForwardGraph& graph, std::span<const LaneBytes> usage,
                         std::span<const std::optional<std::uint64_t>> sizes);

// The same as an allocator sees it: ticks are operators, values of unknown size have no bytes. Parallel to
// `lives`.
std::vector<Allocation> allocations_of(const ForwardGraph& graph, std::span<const OpRange> lives,
                                       std::span<const std::optional<std::uint64_t>> sizes);

}  // namespace loadline
