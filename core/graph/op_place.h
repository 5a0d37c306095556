// The place of an operator in a forward graph: in the graph itself, or in one of its bodies.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace loadline::graph {

struct OpPlace {
  static constexpr std::uint32_t kMain = UINT32_MAX;
  std::uint32_t body = kMain;  // position in ForwardGraph::bodies
  std::uint32_t at = 0;
  bool operator==(const OpPlace&) const = default;
};

inline bool has_op(const ForwardGraph& graph, OpPlace place) {
  return place.body == OpPlace::kMain
             ? place.at < graph.ops.size()
             : place.body < graph.bodies.size() && place.at < graph.bodies[place.body].ops.size();
}
inline const Op& op_at(const ForwardGraph& graph, OpPlace place) {
  return place.body == OpPlace::kMain ? graph.ops[place.at] : graph.bodies[place.body].ops[place.at];
}

// What a body is called: "then_branch", "else_branch", "body". `number`: its position in Op::bodies, where
// the branch that an If takes when it holds comes first.
inline std::string body_name(const Op& op, std::size_t number) {
  if (op.kind == "If" && op.bodies.size() == 2) return number == 0 ? "then_branch" : "else_branch";
  return op.bodies.size() == 1 ? "body" : "body " + std::to_string(number);
}

// Settings for people begin so, followed by the name of the attribute behind them, whose value no rule can
// read; alone, they are the words of the file about the operator.
inline constexpr char kForPeople = '.';
inline bool is_for_people(std::string_view setting) { return setting.starts_with(kForPeople); }

}  // namespace loadline::graph
