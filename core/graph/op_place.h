// The place of an operator in a forward graph: in the graph itself, or in one of its bodies.
#pragma once

#include "core/graph/forward_graph.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

// Settings for people begin so, followed by the name of the attribute behind them, whose value no rule can
// read; alone, they are the words of the file about the operator. No attribute of a file is called so.
inline constexpr char kForPeople = '.';
inline bool is_for_people(std::string_view setting) { return setting.starts_with(kForPeople); }
// Of an operator whose bodies are those of a function in the file, and of one whose bodies were left out,
// with the reason.
inline constexpr std::string_view kFunction = ".function", kNotDrawn = ".inside";
inline const std::string* setting_for_people(const Op& op, std::string_view name) {
  for (const auto& [own, value] : op.attributes)
    if (own == name) return std::get_if<std::string>(&value);
  return nullptr;
}
// Per body: whether it runs. That of a function is for people: its operator is called as one.
std::vector<bool> bodies_that_run(const ForwardGraph& graph);

// What a body is called: "then_branch", "else_branch", "body". `number`: its position in Op::bodies, where
// the branch that an If takes when it holds comes first.
inline std::string body_name(const Op& op, std::size_t number) {
  if (setting_for_people(op, kFunction) != nullptr) return "function";
  if (op.kind == "If" && op.bodies.size() == 2) return number == 0 ? "then_branch" : "else_branch";
  return op.bodies.size() == 1 ? "body" : "body " + std::to_string(number);
}

}  // namespace loadline::graph
