// Lays the output out and sums it up by type.
#include "exporters/preflight.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/common.h"
#include "exporters/convert.h"
#include "exporters/convert_options.h"
#include "exporters/left_out.h"
#include "exporters/model_folder.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

namespace loadline {
namespace {

void add_files_left_out(const FolderFiles& beside, bool folder, std::vector<std::string>& sentences) {
  constexpr std::size_t kMostNamed = 3;
  const auto say = [&](const std::vector<std::string>& names, std::string_view why) {
    if (!names.empty())
      sentences.push_back(fmt::format("{} of the model's folder {} not copied{}: {}",
                                      counted(names.size(), "file"), names.size() == 1 ? "is" : "are", why,
                                      join_names(names, kMostNamed)));
  };
  std::vector<std::string> names;
  for (const FolderFile& file : beside.files) names.push_back(file.name);
  if (!folder) say(names, ", the output is no model folder");
  say(beside.left_out, "");
}

}  // namespace

Preflight preflight(const MetaGraph& graph, const Exporter& exporter, const ExportOptions& options,
                    const std::string& out) {
  require_sound(graph, "convert");
  if (out.empty()) throw Error(ErrorCode::usage, "the output has no name");
  check_options_taken(exporter, options);
  refuse_own_folder(graph, out);
  Preflight result;
  result.layout = exporter.layout(graph, options, out);
  if (options.link_files && result.layout.folder.empty())
    throw Error(ErrorCode::usage, {.file = out},
                "is a single file: only folders have files that can be linked");
  const FolderFiles beside = folder_files(graph);
  if (!result.layout.folder.empty()) add_folder_files(result.layout, beside.files, options.link_files);
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
  add_files_left_out(beside, !result.layout.folder.empty(), result.left_out);
  if (options.strict && !result.left_out.empty())
    throw Error(ErrorCode::unsupported, "{}; without --strict it is left out", result.left_out.front());
  return result;
}

}  // namespace loadline
