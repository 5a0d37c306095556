// The data of the operators panel: texts of values, search, counts by kind.
#pragma once

#include "core/forward/model/forward_model.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::gui {

// The shape of a value: "[B, S, 768]", or "[?]" if it is unknown. Not escaped.
std::string sides_text(const ForwardGraph& forward, ValueId id);
// Name, shape and dtype of a value: "hidden [B, S, 768] F32". Not escaped.
std::string value_text(const ForwardGraph& forward, ValueId id);
// Bytes with the sizes chosen; "?" where they are unknown or there are no figures.
std::string value_size_text(const ForwardFigures* figures, ValueId id);
// The formula of a value's size: "4*B*S*768 bytes". Empty if the size is a fixed number.
std::string value_size_formula(const ForwardGraph& forward, ValueId id);

struct OperatorSummary {
  std::vector<std::pair<std::string, std::uint64_t>> kinds;  // the most frequent first
  std::uint64_t operators = 0;  // an operator that is_part_of_next() is not counted
  bool named = false;           // some operator has a name of its own
  std::uint64_t values = 0;
  std::uint64_t unknown = 0;  // values whose shape the file does not say
};
OperatorSummary summarise(const ForwardGraph& forward);

// Positions of operators whose kind, name, weights or values hold `text`, in any case.
std::vector<std::uint32_t> matching_operators(const MetaGraph& graph, const ForwardGraph& forward,
                                              std::string_view text);

}  // namespace loadline::gui
