// The directory of a zip archive, checked against everything else in the file.
#pragma once

#include "core/base/text_arena.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace loadline {

struct ZipMember {
  std::string_view name;  // a clean relative path
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t header = 0;   // of the local header, absolute, in the file
  std::uint64_t payload = 0;  // of the first stored byte, absolute, in the file
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;
};

// Whether names that differ in case only may stand beside each other: numpy's do, torch's never.
enum class ZipCase : std::uint8_t { distinct, folded };

struct ZipDirectory {
  TextArena names;                 // the members'
  std::vector<ZipMember> members;  // in the order of the central directory, without folders
  std::vector<Note> notes;         // bytes that belong to no member
};

// Every member, checked against its local header and the descriptor behind it. Refused, so that no two
// readers can see different archives: anything before the first member or after the directory, a comment,
// overlapping members, encryption, methods other than stored and deflate, several disks, names that occur
// twice or are no clean relative paths, headers that disagree. Bytes between the members, or between the
// last one and the directory, are a warning with their place and number. No content is read. Throws Error.
ZipDirectory read_zip_directory(const SourceFile& file, ZipCase name_case);

}  // namespace loadline
