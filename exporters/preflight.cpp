// Lays the output out and sums it up by type.
#include "exporters/preflight.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/gguf_names.h"
#include "core/graph/packed/declared_transform.h"
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

// What becomes of the files beside the model.
void add_files_left_out(const Layout& layout, const FolderFiles& beside,
                        std::vector<std::string>& sentences) {
  constexpr std::size_t kMostNamed = 3;
  const auto say = [&](const std::vector<std::string>& names, std::string_view why) {
    if (!names.empty())
      sentences.push_back(fmt::format("{} of the model's folder {} not copied{}: {}",
                                      counted(names.size(), "file"), names.size() == 1 ? "is" : "are", why,
                                      join_names(names, kMostNamed)));
  };
  std::vector<std::string> names;
  for (const FolderFile& file : beside.files)
    if (std::ranges::find(layout.held_files, file.name) == layout.held_files.end())
      names.push_back(file.name);
  if (layout.folder.empty()) say(names, ", the output is no model folder");
  say(beside.left_out, "");
}

// An output is one model.
void refuse_set(const MetaGraph& graph) {
  for (std::uint32_t i = 0; i < graph.files.size(); ++i)
    if (const std::string_view role = set_role(graph, FileId{i}); !role.empty())
      throw Error(ErrorCode::unsupported, {.file = graph.files[i].path},
                  "goes with the model as its '{}': convert one file at a time, '{}' first", role,
                  safe_display(graph.files.front().path));
}

// Rotated weights stay what they are in a copy that keeps the metadata and the types.
void refuse_transformed(const MetaGraph& graph, const Exporter& exporter, const ExportOptions& options) {
  const MetaEntry* const key = declared_transform(graph);
  if (key == nullptr) return;
  const bool keeps_types = !options.outtype && options.policy == nullptr && options.types.empty();
  if (exporter.carries(graph, *key) && keeps_types && options.recipes == nullptr) return;
  throw Error(ErrorCode::unsupported,
              "the key '{}' says that weights are stored rotated: only a GGUF file with the same types keeps "
              "their meaning",
              safe_display(key->key, 100));
}

}  // namespace

std::vector<std::string> remarks(const Preflight& planned) {
  std::vector<std::string> sentences = planned.left_out;
  for (const Note& note : planned.layout.notes) sentences.push_back(note.text);
  return sentences;
}

Preflight preflight(const MetaGraph& graph, const Exporter& exporter, const ExportOptions& options,
                    const std::string& out) {
  require_sound(graph, "convert");
  refuse_set(graph);
  if (out.empty()) throw Error(ErrorCode::usage, "the output has no name");
  check_options_taken(exporter, options);
  refuse_own_folder(graph, out);
  refuse_transformed(graph, exporter, options);
  Preflight result;
  result.layout = exporter.layout(graph, options, out);
  if (options.link_files && result.layout.folder.empty())
    throw Error(ErrorCode::usage, {.file = out},
                "is a single file: only folders have files that can be linked");
  const FolderFiles beside = folder_files(graph, options.follow_links);
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
  result.left_out = left_out(graph, exporter, options, result.layout.held_keys);
  std::ranges::copy(result.layout.left_out, std::back_inserter(result.left_out));
  add_files_left_out(result.layout, beside, result.left_out);
  if (options.strict && !result.left_out.empty())
    throw Error(ErrorCode::unsupported, "{}; without --strict it is left out", result.left_out.front());
  return result;
}

}  // namespace loadline
