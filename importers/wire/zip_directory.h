// Reads the directory of a zip archive and checks it against the whole file.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/text_arena.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace loadline {

struct ZipMember {
  std::string_view name;  // a clean relative path
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t header = 0;   // absolute file offset of the local header
  std::uint64_t payload = 0;  // absolute file offset of the first stored byte
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;  // decompressed
};

// Whether two names may differ in case only: in numpy's archives they do, in torch's never.
enum class ZipCase : std::uint8_t { distinct, folded };

struct ZipDirectory {
  TextArena names;                 // the members'
  std::vector<ZipMember> members;  // in the order of the central directory, without folders
  std::vector<Note> notes;         // bytes that belong to no member
};

// Checks every member against its local header and the descriptor after its content. Reads no content. So
// that no two readers can see different archives, it refuses: bytes before the first member or after the
// directory, a comment, overlapping members, encryption, methods other than stored and deflate, several
// disks, names that occur twice or are not clean relative paths, and headers that disagree. Bytes between
// members, or between the last member and the directory, give a warning with their place and number. Throws
// Error.
ZipDirectory read_zip_directory(const SourceFile& file, ZipCase name_case);

}  // namespace loadline
