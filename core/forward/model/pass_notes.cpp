// Inspects the bound operators, and compares the sizes of two passes.
#include "core/forward/model/pass_notes.h"

#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::string_view kPositions = "pos";  // the input with the position of each token

// Describes the first table that is too short for the positions.
std::optional<std::string> beyond_table(const BoundModel& bound, std::uint64_t positions) {
  for (const BoundOp& op : bound.ops) {
    if (op.line->op != "embed" || op.inputs.empty() || op.weights.empty()) continue;
    const Shape& table = op.weights[0].shape;
    if (bound.values[op.inputs[0]] != kPositions || table.empty()) continue;
    std::uint64_t rows = table[0];
    for (const auto& [key, value] : op.attributes)  // unused rows at the start
      if (key == "offset" && value.number() != nullptr && *value.number() > 0)
        rows -= std::min(rows, static_cast<std::uint64_t>(*value.number()));
    if (positions > rows)
      return fmt::format("{} positions, the model has {} ({})", format_grouped(positions),
                         format_grouped(rows), safe_display(op.weights[0].name, 100));
  }
  return std::nullopt;
}

// Whether the result of any operator has different sizes in `a` and `b`.
bool differs(const ForwardGraph& graph, const std::vector<std::optional<std::uint64_t>>& a,
             const std::vector<std::optional<std::uint64_t>>& b) {
  return std::ranges::any_of(graph.ops, [&](const Op& op) {
    return std::ranges::any_of(op.outputs, [&](ValueId id) {
      return a[static_cast<std::size_t>(id)] != b[static_cast<std::size_t>(id)];
    });
  });
}

std::uint64_t cached(const ForwardModel& model, std::uint64_t sequence, std::uint64_t past) {
  const ForwardGraph& graph = *model.graph;
  return forward_peak(graph, {}, value_sizes(graph, symbol_values(graph, 1, sequence, past))).cache_bytes;
}

}  // namespace

std::vector<std::string> left_out(const Architecture& architecture, const ModelConfig& config) {
  std::vector<std::string> notes;
  for (const std::string& key : architecture.leaves_out)
    if (!config.get("root." + key).null())
      notes.push_back(fmt::format("{} is not described: text model only", safe_display(key, 60)));
  return notes;
}

std::vector<std::string> pass_notes(const ForwardModel& model, std::uint64_t batch, std::uint64_t sequence,
                                    std::uint64_t past) {
  std::vector<std::string> notes;
  if (!model.graph || !model.bound || model.source != ForwardSource::architecture) return notes;
  const ForwardGraph& graph = *model.graph;
  if (auto beyond = beyond_table(*model.bound, sequence + past)) notes.push_back(std::move(*beyond));
  const auto sizes = [&](std::uint64_t new_tokens, std::uint64_t old_tokens) {
    return value_sizes(graph, symbol_values(graph, batch, new_tokens, old_tokens));
  };
  const auto here = sizes(sequence, past);
  if (!differs(graph, here, sizes(sequence + 1, past)))
    notes.push_back("the number of tokens changes nothing: what goes into this model has a size of its own");
  if (past > 0) {
    const auto first = sizes(sequence, 0);
    const bool ran = std::ranges::any_of(graph.inputs, [&](ValueId id) {
      const auto at = static_cast<std::size_t>(id);
      return here[at] == std::uint64_t{0} && first[at].value_or(0) > 0;
    });
    if (ran) notes.push_back("the encoder has run before: only what it left in the cache is counted");
  }
  for (std::string& note : left_out(*model.bound->architecture, model.bound->config))
    notes.push_back(std::move(note));
  return notes;
}

std::optional<std::uint64_t> cache_growth(const ForwardModel& model, std::uint64_t sequence,
                                          std::uint64_t past) {
  if (!model.graph) return std::nullopt;
  const std::uint64_t now = cached(model, sequence, past), next = cached(model, sequence, past + 1);
  return next < now ? std::nullopt : std::optional(next - now);
}

std::uint64_t widest_window(const ForwardModel& model) {
  std::uint64_t widest = 0;
  if (!model.bound) return widest;
  for (const BoundOp& op : model.bound->ops) {
    if (op.line->op != "cache") continue;
    for (const auto& [key, value] : op.attributes)
      if (key == "window" && value.number() != nullptr && *value.number() > 0)
        widest = std::max(widest, static_cast<std::uint64_t>(*value.number()));
  }
  return widest;
}

}  // namespace loadline
