// One pass over the graph for each; texts are made for rows in sight only.
#include "app/gui/panels/operator_rows.h"

#include "app/gui/state/model/meta_text.h"
#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>
#include <map>

namespace loadline::gui {

std::string sides_text(const ForwardGraph& forward, ValueId id) {
  constexpr std::size_t kMostSides = 12;
  const Value& value = forward.value(id);
  if (!value.shape) return "[?]";
  std::string sides;
  for (std::size_t i = 0; i < value.shape->size() && i < kMostSides; ++i)
    sides += (i > 0 ? ", " : "") + (*value.shape)[i].text(forward.symbols);
  if (value.shape->size() > kMostSides) sides += ", \xE2\x80\xA6";
  return "[" + sides + "]";
}

std::string value_text(const ForwardGraph& forward, ValueId id) {
  constexpr std::size_t kMostName = 200;  // bytes
  const Value& value = forward.value(id);
  std::string result(beginning(value.name, kMostName));
  result += " " + sides_text(forward, id);
  if (value.dtype) result += " " + std::string(dtype_info(*value.dtype).name);
  return result;
}

std::string value_size_text(const ForwardFigures* figures, ValueId id) {
  const auto bytes = figures == nullptr ? std::nullopt : figures->sizes[static_cast<std::size_t>(id)];
  return bytes ? format_bytes(*bytes) : "?";
}

std::string value_size_formula(const ForwardGraph& forward, ValueId id) {
  const auto poly = value_bytes(forward.value(id));
  if (!poly || poly->constant()) return "";
  return poly->text(forward.symbols) + " bytes";
}

OperatorSummary summarise(const ForwardGraph& forward) {
  OperatorSummary summary;
  std::map<std::string_view, std::uint64_t> kinds;
  for (std::size_t i = 0; i < forward.ops.size(); ++i) {
    const Op& op = forward.ops[i];
    summary.named = summary.named || !op.name.empty();
    if (is_part_of_next(forward, i)) continue;
    ++kinds[op.kind];
    ++summary.operators;
  }
  for (const auto& [kind, count] : kinds) summary.kinds.emplace_back(kind, count);
  std::ranges::stable_sort(summary.kinds, [](const auto& a, const auto& b) { return a.second > b.second; });
  summary.values = forward.values.size();
  for (const Value& value : forward.values) summary.unknown += !value.shape;
  return summary;
}

std::vector<std::uint32_t> matching_operators(const MetaGraph& graph, const ForwardGraph& forward,
                                              std::string_view text) {
  const Needle needle(text);
  const auto names = [&](const std::vector<ValueId>& values) {
    return std::ranges::any_of(values, [&](ValueId id) { return needle.in(forward.value(id).name); });
  };
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < forward.ops.size(); ++i) {
    const Op& op = forward.ops[i];
    const bool matches =
        needle.in(op.kind) || needle.in(op.name) || names(op.inputs) || names(op.outputs) ||
        std::ranges::any_of(op.weights, [&](TensorId id) { return needle.in(graph.tensor(id).name); });
    if (matches) rows.push_back(i);
  }
  return rows;
}

}  // namespace loadline::gui
