// Lays the output out and sums it up by type.
#include "exporters/preflight.h"

#include "exporters/common.h"
#include "exporters/convert.h"
#include "exporters/left_out.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace loadline {

Preflight preflight(const MetaGraph& graph, const Exporter& exporter, const ExportOptions& options,
                    const std::string& out) {
  require_sound(graph, "convert");
  refuse_own_folder(graph, out);
  Preflight result;
  result.layout = exporter.layout(graph, options, out);
  std::map<std::tuple<DType, DType, bool>, TypeChange> changes;
  for (const LayoutFile& file : result.layout.files)
    for (const Slot& slot : file.slots) {
      const bool unpacked = slot.recipe.steps.front().kind == StepKind::unpack;
      TypeChange& change = changes[{stored_dtype(graph, slot), slot.dtype, unpacked}];
      change = {stored_dtype(graph, slot), slot.dtype, unpacked, change.tensors + 1,
                change.bytes + slot.bytes};
    }
  for (const auto& [types, change] : changes) result.changes.push_back(change);
  std::ranges::stable_sort(result.changes,
                           [](const TypeChange& a, const TypeChange& b) { return a.bytes > b.bytes; });
  result.left_out = left_out(graph, exporter, options);
  return result;
}

}  // namespace loadline
