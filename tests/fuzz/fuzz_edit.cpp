// Edits of headers: whatever the file is, an edit gives an Error, or a file of the same size with the same
// tensors and the metadata that was asked for. The change is made from the file's own bytes.
#include "core/base/error.h"
#include "exporters/edit/edit_header.h"
#include "importers/importer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

using namespace loadline;

graph::MetaGraph read(const importers::Importer& importer, const std::vector<std::byte>& bytes) {
  importers::Source source;
  source.file = std::make_shared<const io::SourceFile>(io::SourceFile::from_memory("input", bytes));
  source.open_sibling = [](const std::string&) { return std::shared_ptr<const io::SourceFile>(); };
  return importer.read(source);
}

exporters::MetadataChange change_for(const graph::MetaGraph& graph, std::uint64_t seed) {
  const std::string text(seed % 50, 'x');
  if (graph.metadata.empty() || seed % 4 == 0) return {"new.key", "string", text};
  const graph::MetaEntry& entry = graph.metadata[seed / 4 % graph.metadata.size()];
  if (seed % 4 == 1) return {entry.key, {}, {}};
  if (seed % 4 == 2) return {entry.key, {}, "1"};
  return {entry.key, {}, text};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto whole = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(whole.begin(), whole.end());
  const std::string_view id = size >= 4 && std::memcmp(data, "GGUF", 4) == 0 ? "gguf" : "safetensors";
  static const auto find_importer = [](std::string_view wanted) {
    return std::find_if(importers::importers().begin(), importers::importers().end(),
                        [&](const importers::Importer& row) { return row.id == wanted; });
  };
  const importers::Importer& importer = *find_importer(id);
  std::uint64_t seed = 14695981039346656037ull;
  for (const std::byte byte : bytes) seed = (seed ^ static_cast<std::uint64_t>(byte)) * 1099511628211ull;
  seed >>= 16;
  try {
    const graph::MetaGraph before = read(importer, bytes);
    const exporters::MetadataChange change = change_for(before, seed);
    const exporters::HeaderEdit edit =
        exporters::edit_header(before, io::SourceFile::from_memory("input", bytes), std::span(&change, 1));
    if (edit.before.size() != edit.after.size() || edit.after.size() > bytes.size()) std::abort();
    std::copy(edit.after.begin(), edit.after.end(), bytes.begin());
    const graph::MetaGraph after = [&] {
      try {
        return read(importer, bytes);
      } catch (const Error&) {
        std::abort();  // it could be read before
      }
    }();
    if (after.tensors != before.tensors || after.storages != before.storages) std::abort();
    const graph::MetaValue* const value = graph::find_metadata(after, change.key);
    if ((value != nullptr) != change.value.has_value()) std::abort();
    if (value != nullptr && graph::meta_text(*value) != edit.changed.front().after) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
