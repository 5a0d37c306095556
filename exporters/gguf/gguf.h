// The key-values of an output GGUF file: those of a GGUF source, else the few that readers require.
#pragma once

#include "core/tokenizer/gguf_tokenizer.h"
#include "exporters/exporter.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

struct GgufMetadata {
  std::uint64_t keys = 0;
  std::vector<std::byte> bytes;    // the encoded key-values, without the elements in `copies`
  std::vector<HeaderCopy> copies;  // the elements of arrays; `at` counts from the start of the key-values
  std::vector<MetaEntry> entries;  // as an importer would give them; array offsets from the same start
  std::vector<Note> notes;         // as an importer would give them
};

// A part of a split set says its number, from 0, and what all parts hold together.
struct GgufPart {
  std::uint16_t number = 0, count = 0;
  std::int32_t tensors = 0;
};

// What the key-values say of the file that they are in.
struct GgufShape {
  std::uint64_t alignment = 0;
  // Bytes of the text loadline.slack, the last key-value. A later edit of the metadata makes that text
  // shorter or longer by what it adds or removes, so that neither the tensor entries nor the data move. GGUF
  // puts the data at the first multiple of the alignment behind the entries, so only a key can hold room;
  // readers ignore keys that they do not know. Nothing: a GGUF source's own slack, and kDefaultSlack for
  // any other source.
  std::optional<std::uint64_t> slack;
  std::optional<GgufPart> part;
};
// Room for a few keys, or for another chat template. A copy of a GGUF file gets none, because it keeps
// exactly the keys of its source.
inline constexpr std::uint64_t kDefaultSlack = 4096;
// Importers keep longer texts in the file.
inline constexpr std::uint64_t kMostSlack = 1 << 20;

// What the key-values say of a model that is mapped to llama.cpp's names, empty for any other; and of types.
struct GgufModelKeys {
  std::vector<MetaEntry> model = {};  // general.architecture first; no arrays
  std::vector<GgufTokenizerKey> tokenizer = {};
  std::vector<MetaEntry> types = {};  // instead of the source's values; no arrays
};

// Whether gguf_metadata() keeps this metadata entry of the source.
bool gguf_carries(const MetaGraph& graph, const MetaEntry& entry);

// A key of a GGUF file that tells how the file is written, not what its model is.
bool is_of_the_file(std::string_view key);
// The alignment that a GGUF source states, else the format's default.
std::uint64_t gguf_alignment(const MetaGraph& graph);

// `slots` are the tensors of the output. All keys of a GGUF source are kept, with their types and in their
// order; general.alignment and general.file_type change if the output differs, and split.* keys in a part of
// a split set. Reads a few bytes of the source file to tell a long text from an array. Throws Error{io}, and
// Error{limit} for slack that an importer would not read as a text.
GgufMetadata gguf_metadata(const MetaGraph& graph, const std::vector<Slot>& slots, const GgufShape& shape,
                           const GgufModelKeys& keys = {});
// The key-values of a part of a split set behind the first. `entries` stay empty: the first part has them
// all.
GgufMetadata gguf_part_metadata(const GgufPart& part, std::uint64_t alignment);

}  // namespace loadline
