// Turns values into blocks and operators into steps.
#include "core/plan/forward_pass.h"

#include "core/base/error.h"
#include "core/forward/pass/lifetimes.h"

#include <fmt/format.h>

namespace loadline {
namespace {

BlockUse use_of(Lane lane) { return lane == Lane::temporary ? BlockUse::temporary : BlockUse::value; }

}  // namespace

void append_forward_pass(Plan& plan, const ForwardPass& pass, Space space) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const ForwardGraph& graph = *pass.graph;
  const std::vector<OpRange> lives = lifetimes(graph);
  const auto sizes = value_sizes(graph, pass.symbols);
  std::vector<std::vector<ValueId>> begins(graph.ops.size()), ends(graph.ops.size() + 1);
  std::vector<std::size_t> named_by(graph.values.size(), 0);  // the operator in a value's label
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].empty() || sizes[i].value_or(0) == 0 || lives[i].first >= graph.ops.size()) continue;
    if (*sizes[i] > kMost) throw Error(ErrorCode::limit, "a value of a forward pass exceeds 2^62 bytes");
    named_by[i] = lives[i].first;
    begins[lives[i].first].push_back(ValueId{static_cast<std::uint32_t>(i)});
    ends[lives[i].end].push_back(ValueId{static_cast<std::uint32_t>(i)});
  }
  // the cache lives from the operator that writes it on; with a past, every layer's is there before the pass
  const auto past_at = static_cast<std::size_t>(kPast);
  const bool has_past = past_at < pass.symbols.size() && pass.symbols[past_at] > 0;
  for (std::size_t i = 0; i < graph.ops.size(); ++i)
    for (const ValueId id : graph.ops[i].outputs) {
      const Value& value = graph.value(id);
      const auto at = static_cast<std::size_t>(id);
      if (value.lane != Lane::cache || value.memory_of || sizes[at].value_or(0) == 0) continue;
      named_by[at] = i;
      begins[has_past ? 0 : i].push_back(id);
    }
  std::vector<bool> kept(graph.values.size(), false);
  for (const ValueId id : graph.outputs) kept[static_cast<std::size_t>(id)] = true;
  std::vector<BlockId> blocks(graph.values.size());
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (const ValueId id : begins[i]) {
      const Value& value = graph.value(id);
      const std::string& op = graph.ops[named_by[static_cast<std::size_t>(id)]].name;
      blocks[static_cast<std::size_t>(id)] =
          alloc(plan, {.space = space,
                       .bytes = *sizes[static_cast<std::size_t>(id)],
                       .use = use_of(value.lane),
                       .label = op.empty() ? value.name : fmt::format("{} of {}", value.name, op)});
    }
    for (const ValueId id : ends[i + 1]) {
      if (!kept[static_cast<std::size_t>(id)]) free(plan, blocks[static_cast<std::size_t>(id)]);
    }
  }
  mark(plan, "first token");
}

}  // namespace loadline
