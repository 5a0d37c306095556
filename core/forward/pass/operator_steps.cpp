// Operators that a framework runs as several others.
#include "core/forward/pass/lowering.h"
#include "core/graph/op_place.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace loadline::forward {
namespace {

// What a file says of an operator that it defines itself is for people: the runtime has its own kernel.
bool has_steps(const graph::Op& op, const OpRule& rule) {
  return !rule.steps.empty() && op.outputs.size() == 1 &&
         (op.bodies.empty() || graph::setting_for_people(op, graph::kFunction) != nullptr);
}

// The graph with the steps of an operator in its place, if its rule has any. What steps leave to later ones
// has the shape of the operator's result.
class Expansion {
 public:
  Expansion(const graph::ForwardGraph& from, const Profile& profile) : graph_(from), profile_(profile) {}

  graph::ForwardGraph run() {
    graph_.ops = expanded(std::move(graph_.ops));
    for (std::size_t i = 0; i < graph_.bodies.size(); ++i)
      graph_.bodies[i].ops = expanded(std::move(graph_.bodies[i].ops));
    return std::move(graph_);
  }

 private:
  std::vector<graph::Op> expanded(std::vector<graph::Op> ops) {
    std::vector<graph::Op> result;
    result.reserve(ops.size());
    for (graph::Op& op : ops) {
      const OpRule& rule = profile_.rule(op.kind);
      if (has_steps(op, rule))
        add_steps(op, rule.steps, result);
      else
        result.push_back(std::move(op));
    }
    return result;
  }

  void add_steps(const graph::Op& op, const std::vector<OpRule::Step>& steps, std::vector<graph::Op>& to) {
    std::vector<graph::ValueId> made;
    for (const OpRule::Step& step : steps) {
      graph::Op fresh = {
          .kind = step.kind, .name = op.name, .inputs = {}, .weights = op.weights, .outputs = {}};
      for (const std::string& word : step.arguments) {
        graph::Argument argument;
        if (word[0] >= 'a')
          argument.value = made[static_cast<std::size_t>(word[0] - 'a')];
        else if (const auto at = static_cast<std::size_t>(word[0] - '1'); at < op.arguments.size())
          argument = op.arguments[at];
        else if (op.arguments.empty() && at < op.inputs.size())
          argument.value = op.inputs[at];
        fresh.arguments.push_back(argument);
        if (argument.value && std::ranges::find(fresh.inputs, *argument.value) == fresh.inputs.end())
          fresh.inputs.push_back(*argument.value);
      }
      made.push_back(op.outputs.front());
      if (made.size() < steps.size()) {
        made.back() = graph::ValueId{static_cast<std::uint32_t>(graph_.values.size())};
        graph::Value value = graph_.value(op.outputs.front());
        value.name += fmt::format(".{}", step.kind);
        graph_.values.push_back(std::move(value));
      }
      fresh.outputs.push_back(made.back());
      to.push_back(std::move(fresh));
    }
  }

  graph::ForwardGraph graph_;
  const Profile& profile_;
};

}  // namespace

std::size_t step_count(const graph::Op& op, const Profile& profile) {
  const OpRule& rule = profile.rule(op.kind);
  return has_steps(op, rule) ? rule.steps.size() : 1;
}

graph::ForwardGraph with_steps(const graph::ForwardGraph& graph, const Profile& profile) {
  return Expansion(graph, profile).run();
}

}  // namespace loadline::forward
