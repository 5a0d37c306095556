// Changes of the metadata in a file's header that leave its size, and so all tensors, as they are.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::exporters {

struct MetadataChange {
  std::string key;
  std::optional<std::string> type;   // of a new key: "u32", "string", "f32[]"
  std::optional<std::string> value;  // as text; nothing removes the key
};

struct ChangedKey {
  std::string key;
  std::optional<std::string> before, after;  // as meta_text() gives them; nothing: no such key
};

struct HeaderEdit {
  std::vector<std::byte> before, after;  // the beginning of the file; of equal size
  std::vector<ChangedKey> changed;
  std::uint64_t room = 0;  // bytes by which the metadata can still grow
};

// The header of `file`, as read into `graph`, with `changes`. Throws Error{usage} for a change that makes no
// sense, Error{unsupported} for a format without editable metadata or a key that says how the file is laid
// out, and Error{limit} with the bytes that are missing if the header does not fit.
HeaderEdit edit_header(const graph::MetaGraph& graph, const io::SourceFile& file,
                       std::span<const MetadataChange> changes);

// Whether files that this importer reads can be edited.
bool can_edit_header(std::string_view importer);
// Whether `word` is a type that a key can have: "u32", "f32[]".
bool is_metadata_type(std::string_view word);
// The key-value of GGUF files that only takes room.
inline constexpr std::string_view kSlackKey = "loadline.slack";

// The two formats.
HeaderEdit edit_gguf_header(const graph::MetaGraph& graph, const io::SourceFile& file,
                            std::span<const MetadataChange> changes);
HeaderEdit edit_safetensors_header(const graph::MetaGraph& graph, const io::SourceFile& file,
                                   std::span<const MetadataChange> changes);

inline constexpr std::uint64_t kMostEditedHeader = 256 << 20;

// What is wrong with a change, whatever the format: an empty key, a key that is changed twice or that is to
// be removed but absent. Throws Error{usage}.
void check_changes(const graph::MetaGraph& graph, const io::SourceFile& file,
                   std::span<const MetadataChange> changes);
// An Error{limit} that says how many bytes are missing, and what to do.
Error no_room(const io::SourceFile& file, std::uint64_t needed, std::uint64_t available);

}  // namespace loadline::exporters
