// The JSON header of a .safetensors file, as entries; what they claim is not checked yet.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

struct SafetensorsEntry {
  std::string_view name;  // these two live as long as what was parsed
  std::string_view dtype;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsMetadata {
  std::string_view key;
  std::string_view value;
};

struct SafetensorsFields {
  std::vector<SafetensorsEntry> entries;  // in the order of the header
  std::vector<SafetensorsMetadata> metadata;
  std::vector<Note> notes;

  void clear() {
    entries.clear();
    metadata.clear();
    notes.clear();
  }
};

// Reads a header written as the usual writers do: ASCII without escapes or needless white space, fields in
// their order. Several times faster than a JSON parser, which it may not disagree with: for anything else
// it returns false, and `fields` means nothing. Names may still occur twice.
bool scan_safetensors_header(std::string_view text, SafetensorsFields& fields);

// Any header, through a JSON parser, which holds the texts of the entries. Errors name `path`.
class SafetensorsJson {
 public:
  SafetensorsJson();
  ~SafetensorsJson();
  // `text` is followed by at least kPadding readable bytes. Throws Error{malformed | limit}.
  void parse(std::string_view text, const std::string& path, SafetensorsFields& fields);

  static constexpr std::size_t kPadding = 64;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// The byte where the tensor's name stands in the header, if it stands there without escapes.
ErrorPlace safetensors_place(const std::string& path, std::string_view header, std::string_view name);

}  // namespace loadline
