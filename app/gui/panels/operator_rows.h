// What the operators panel says of a forward graph: texts of values, what matches, counts by kind.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::gui {

// "[B, S, 768]"; "[?]" where the file does not say. Not escaped.
std::string sides_text(const ForwardGraph& forward, ValueId id);
// "hidden [B, S, 768] F32", not escaped.
std::string value_text(const ForwardGraph& forward, ValueId id);
// Bytes with these sizes of the symbols; "?" where they are unknown or do not come to a size.
std::string value_size_text(const ForwardGraph& forward, ValueId id, const std::vector<std::uint64_t>& sizes);
// "4*B*S*768 bytes", or empty where a number says it all.
std::string value_size_formula(const ForwardGraph& forward, ValueId id);

struct OperatorSummary {
  std::vector<std::pair<std::string, std::uint64_t>> kinds;  // the most frequent first
  bool named = false;                                        // some operator has a name of its own
  std::uint64_t values = 0;
  std::uint64_t unknown = 0;         // values whose shape the file does not say
  std::vector<std::size_t> symbols;  // those that sizes depend on, at most kMostSymbols
};
inline constexpr std::size_t kMostSymbols = 6;
OperatorSummary summarise(const ForwardGraph& forward);

// Positions of operators whose kind, name, weights or values hold `text`, in any case.
std::vector<std::uint32_t> matching_operators(const MetaGraph& graph, std::string_view text);

}  // namespace loadline::gui
