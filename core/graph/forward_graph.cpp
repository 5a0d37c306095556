// Sizes of the values of a forward graph, as formulas and as numbers.
#include "core/graph/forward_graph.h"

#include <algorithm>

namespace loadline {

std::string_view lane_name(Lane lane) {
  constexpr std::string_view kNames[] = {"activation", "cache", "temporary"};
  return kNames[static_cast<std::size_t>(lane)];
}

std::vector<std::uint64_t> symbol_values(const ForwardGraph& graph, std::uint64_t batch,
                                         std::uint64_t sequence, std::uint64_t past) {
  std::vector<std::uint64_t> values(graph.symbols.size(), 1);
  const auto set = [&](SymbolId symbol, std::uint64_t value) {
    const auto at = static_cast<std::size_t>(symbol);
    if (at < values.size()) values[at] = value;
  };
  set(kBatch, batch);
  set(kSequence, sequence);
  set(kPast, past);
  for (const LeastOf& least : graph.least)
    set(least.symbol, std::min(least.of.evaluate(values).value_or(0), least.most));
  return values;
}

std::optional<SizePoly> value_bytes(const Value& value) {
  if (!value.dtype || !value.shape) return std::nullopt;
  const DTypeInfo& info = dtype_info(*value.dtype);
  if (info.block_elements == 0) return std::nullopt;
  std::optional<SizePoly> elements(1);
  for (const SizePoly& dimension : *value.shape) {
    elements = SizePoly::product(*elements, dimension);
    if (!elements) return std::nullopt;
  }
  if (info.block_elements == 1) return SizePoly::product(*elements, SizePoly(info.block_bytes));
  // packed types have whole bytes only where the count is known
  const auto count = elements->constant();
  if (!count || *count < 0) return std::nullopt;
  const auto bytes = packed_byte_size(*value.dtype, static_cast<std::uint64_t>(*count));
  return bytes && *bytes <= INT64_MAX ? std::optional(SizePoly(static_cast<std::int64_t>(*bytes)))
                                      : std::nullopt;
}

}  // namespace loadline
