// Elements of metadata arrays, read when asked for.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <vector>

namespace loadline {

// Elements [first, first + count) in order, each of the array's element type; fewer at its end. Opens the
// file by the path in the graph. Strings longer than kMostElementText bytes are cut there. Cost: strings
// before `first` are stepped over. Throws Error{io | malformed}.
inline constexpr std::uint64_t kMostElementText = 1 << 20;
std::vector<MetaValue> read_meta_array(const MetaGraph& graph, const MetaArray& array, std::uint64_t first,
                                       std::uint64_t count);

}  // namespace loadline
