// Chooses the format of an edit.
#include "exporters/edit/edit_header.h"

#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <set>

namespace loadline {
namespace {

struct Editor {
  std::string_view format;
  HeaderEdit (*edit)(const MetaGraph&, const SourceFile&, std::span<const MetadataChange>);
};
constexpr std::array kEditors = {Editor{"safetensors", edit_safetensors_header},
                                 Editor{"gguf", edit_gguf_header}};

}  // namespace

bool can_edit_header(std::string_view importer) {
  return std::ranges::find(kEditors, importer, &Editor::format) != kEditors.end();
}

void check_changes(const MetaGraph& graph, const SourceFile& file, std::span<const MetadataChange> changes) {
  std::set<std::string_view> keys;
  for (const MetadataChange& change : changes) {
    const auto refuse = [&](std::string_view why) {
      throw Error(ErrorCode::usage, {.file = file.path()}, "the key '{}' {}", safe_display(change.key, 100),
                  why);
    };
    if (change.key.empty()) refuse("is empty");
    if (!is_valid_utf8(change.key)) refuse("is not UTF-8");
    if (change.value && !is_valid_utf8(*change.value)) refuse("gets a value that is not UTF-8");
    if (!keys.insert(change.key).second) refuse("is changed twice");
    if (!change.value && find_metadata(graph, change.key) == nullptr) refuse("is not in the file");
  }
}

Error no_room(const SourceFile& file, std::uint64_t needed, std::uint64_t available) {
  return Error(ErrorCode::limit, {.file = file.path()},
               "the new metadata needs {} bytes in front of the tensors, there are {}: {} too few. Convert "
               "the model to a new file with --align 4096, which leaves room, and edit that one",
               needed, available, needed - available);
}

HeaderEdit edit_header(const MetaGraph& graph, const SourceFile& file,
                       std::span<const MetadataChange> changes) {
  for (const Editor& editor : kEditors)
    if (editor.format == graph.format) {
      check_changes(graph, file, changes);
      return editor.edit(graph, file, changes);
    }
  throw Error(ErrorCode::unsupported, {.file = file.path()},
              "metadata can be edited in safetensors and GGUF files, this is {}", graph.format);
}

}  // namespace loadline
