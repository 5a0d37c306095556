// GGUF output: key-values, types of tensors, a Hugging Face model under llama.cpp names.
#pragma once

#include "core/forward/gguf/gguf_map.h"
#include "core/forward/gguf/type_policy.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "exporters/exporter.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline::exporters {

// --- The key-values of an output GGUF file: those of a GGUF source, else the few that readers require.

struct GgufMetadata {
  std::uint64_t keys = 0;
  std::vector<std::byte> bytes;    // the encoded key-values, without the elements in `copies`
  std::vector<HeaderCopy> copies;  // the elements of arrays; `at` counts from the start of the key-values
  std::vector<graph::MetaEntry> entries;  // as an importer would give them; array offsets from the same start
  std::vector<graph::Note> notes;         // as an importer would give them
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
  std::vector<graph::MetaEntry> model = {};  // general.architecture first; no arrays
  std::vector<tokenizer::GgufTokenizerKey> tokenizer = {};
  std::vector<graph::MetaEntry> types = {};  // instead of the source's values; no arrays
};

// Whether gguf_metadata() keeps this metadata entry of the source.
bool gguf_carries(const graph::MetaGraph& graph, const graph::MetaEntry& entry);

// A key of a GGUF file that tells how the file is written, not what its model is.
bool is_of_the_file(std::string_view key);
// The alignment that a GGUF source states, else the format's default.
std::uint64_t gguf_alignment(const graph::MetaGraph& graph);

// `slots` are the tensors of the output. All keys of a GGUF source are kept, with their types and in their
// order; general.alignment and general.file_type change if the output differs, and split.* keys in a part of
// a split set. Reads a few bytes of the source file to tell a long text from an array. Throws Error{io}, and
// Error{limit} for slack that an importer would not read as a text.
GgufMetadata gguf_metadata(const graph::MetaGraph& graph, const std::vector<Slot>& slots,
                           const GgufShape& shape, const GgufModelKeys& keys = {});
// The key-values of a part of a split set behind the first. `entries` stay empty: the first part has them
// all.
GgufMetadata gguf_part_metadata(const GgufPart& part, std::uint64_t alignment);

// --- The type of each tensor of a GGUF file, where a policy, rules of the user or both choose it.

struct TypedSlots {
  std::vector<Slot> slots;                  // without offsets
  std::vector<graph::MetaEntry> keys = {};  // that the choice adds to the file, or replaces in it
  std::vector<graph::Note> notes = {};
};

// `keys`: those that the file gets beside those of a GGUF source. Rules of the user come after the policy,
// the last that matches wins; neither changes vectors, norms and other tensors that a policy keeps. Reads a
// few bytes of the source's file where a key has a value for each layer. Throws Error{unsupported} for a
// policy that needs llama.cpp's names, Error{malformed} where the importance matrix has the wrong number of
// weights for a tensor.
TypedSlots typed_slots(const graph::MetaGraph& graph, std::vector<SlotDraft> drafts,
                       const std::vector<graph::MetaEntry>& keys, const ExportOptions& options);

// The value of general.file_type for a file of mostly this type, if llama.cpp has a number for it.
std::optional<std::uint32_t> gguf_file_type(graph::DType dtype);

// --- A Hugging Face model as the tensors and keys that llama.cpp runs: core/forward/gguf_map, made into
// recipes.

struct GgufModel {
  std::vector<SlotDraft> drafts = {};
  GgufModelKeys keys = {};
  std::vector<std::string> notes = {};       // what llama.cpp does in another way than the model
  std::vector<std::string> dropped = {};     // tensors of the model that are not written
  std::vector<std::string> files_read = {};  // files of the model's folder that `keys` come from
};

// Whether a GGUF file of this model has llama.cpp's names: not if they are to be kept, and not for a model
// without config.json, or whose file lists operators or is a GGUF file itself.
bool maps_names(const graph::MetaGraph& graph, const ExportOptions& options);
// A model without a tokenizer gets the vocabulary "none", which llama.cpp runs on token ids. Throws
// Error{unsupported} for a model of a family that no asset describes, or with tensors that have no place in
// the file, and Error{malformed} for one that does not fit its configuration.
GgufModel gguf_model(const graph::MetaGraph& graph, const ExportOptions& options);
// Throws Error{usage} for a pattern of `options` other than "*" that matches none of the settings.
void check_ignored(const std::vector<forward::Setting>& settings, const ExportOptions& options);
// Nothing may be left of these settings unless `options` ignores them: throws Error{unsupported} that names
// each with its value. `why` ends the sentence. Those that are ignored.
std::vector<forward::Setting> ignored_settings(const std::vector<forward::Setting>& settings,
                                               const ExportOptions& options, const std::string& file,
                                               std::string_view why);
// The value of a key as the file has it. Throws Error{malformed} for a value that its type cannot hold.
graph::MetaValue key_value(const forward::MappedKey& key);
// The slots alone, without looking for a tokenizer.
std::vector<Slot> gguf_slots(const graph::MetaGraph& graph, const ExportOptions& options);

}  // namespace loadline::exporters
