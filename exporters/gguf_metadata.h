// The key-values of an output GGUF file: those of a GGUF source, else the few that readers require.
#pragma once

#include "exporters/exporter.h"

#include <cstdint>
#include <vector>

namespace loadline {

struct GgufMetadata {
  std::vector<std::byte> bytes;    // the encoded key-values, without the elements in `copies`
  std::vector<HeaderCopy> copies;  // the elements of arrays; `at` counts from the start of the key-values
  std::vector<MetaEntry> entries;  // as an importer would give them; array offsets from the same start
  std::vector<Note> notes;         // as an importer would give them
};

// Whether gguf_metadata() keeps this metadata entry of the source.
bool gguf_carries(const MetaGraph& graph, const MetaEntry& entry);
// The alignment that a GGUF source states, else the format's default.
std::uint64_t gguf_alignment(const MetaGraph& graph);

// `slots` are the tensors of the output. All keys of a GGUF source are kept, with their types and in their
// order; general.alignment and general.file_type change if the output differs. Reads a few bytes of the
// source file to tell a long text from an array. Throws Error{io}.
GgufMetadata gguf_metadata(const MetaGraph& graph, const std::vector<Slot>& slots, std::uint64_t alignment);

}  // namespace loadline
