// The key-values of a GGUF file: those of the GGUF file it comes from, or the few that readers require.
#pragma once

#include "exporters/exporter.h"

#include <cstdint>
#include <vector>

namespace loadline {

struct GgufMetadata {
  std::vector<std::byte> bytes;    // as they stand in the file, without what is copied
  std::vector<HeaderCopy> copies;  // the elements of arrays; `at` counts from the start of the key-values
  std::vector<MetaEntry> entries;  // as an importer gives them, arrays' offsets from the same start
  std::vector<Note> notes;         // as an importer gives them
};

// Whether gguf_metadata() takes over this entry of the source.
bool gguf_carries(const MetaGraph& graph, const MetaEntry& entry);
// The source's own alignment if it is a GGUF file that says one, else the format's default.
std::uint64_t gguf_alignment(const MetaGraph& graph);

// `slots` are the tensors as they will be written. Of a GGUF source every key is kept with its type and in
// its place, but for general.alignment and general.file_type where the output differs. Reads a few bytes of
// the source file where a long text must be told from an array. Throws Error{io}.
GgufMetadata gguf_metadata(const MetaGraph& graph, const std::vector<TensorSlot>& slots,
                           std::uint64_t alignment);

}  // namespace loadline
