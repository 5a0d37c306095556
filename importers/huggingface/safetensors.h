// Parses the JSON header of a .safetensors file into entries. Shapes and offsets are not checked yet.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {

struct SafetensorsEntry {
  std::string_view name;  // name and dtype point into the parsed text, or into the parser
  std::string_view dtype;
  graph::Shape shape;
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
  std::vector<graph::Note> notes;

  void clear() {
    entries.clear();
    metadata.clear();
    notes.clear();
  }
};

// The fast path, for headers in the form of the usual writers: ASCII without escapes or needless white space,
// fields in their order. Several times faster than a JSON parser, and gives the same result. Returns false
// for any other header; `fields` then means nothing. Names may still occur twice.
bool scan_safetensors_header(std::string_view text, SafetensorsFields& fields);

// Reads any header through a JSON parser. The entries' texts live until the next parse() or the parser's end.
// Errors name `path`.
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

// The place of a tensor for an Error: the byte of its name in the header, if the name stands there unescaped.
ErrorPlace safetensors_place(const std::string& path, std::string_view header, std::string_view name);

}  // namespace loadline::importers
