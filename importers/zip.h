// The directory of a zip archive: where each member's bytes lie, nothing extracted.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace loadline {

struct ZipMember {
  std::string name;  // a clean relative path
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t header = 0;   // of the local header, absolute, in the file
  std::uint64_t payload = 0;  // of the first stored byte, absolute, in the file
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;
};

// Whether names that differ in case only may stand beside each other: numpy's do, torch's never.
enum class ZipCase : std::uint8_t { distinct, folded };

// Every member, in the order of the central directory, checked against its local header. Refused, so that
// no two readers can see different archives: anything before the first member or after the directory, a
// comment, overlapping members, encryption, methods other than stored and deflate, several disks, names
// that occur twice or are no clean relative paths, headers that disagree. Folders are left out.
class ZipArchive {
 public:
  // Reads the directory and the local headers, no content. `file` must outlive it. Throws Error.
  ZipArchive(const SourceFile& file, ZipCase name_case);

  const SourceFile& file() const { return *file_; }
  const std::vector<ZipMember>& members() const { return members_; }
  const ZipMember* find(std::string_view name) const;
  // The one folder that holds everything, without its slash. Throws Error{malformed} if there is none.
  std::string root() const;
  // The member's content, decompressed and compared with its checksum; a checksum of 0 is one that the
  // writer was told to leave out. Throws Error{limit} above `most` bytes, Error{malformed}.
  std::string read(const ZipMember& member, std::uint64_t most) const;
  // Compares a stored member with its checksum, piece by piece. Throws Error{malformed}.
  void check_stored(const ZipMember& member) const;
  // The member as a storage of a graph.
  Storage storage(const ZipMember& member, FileId file) const;

  Error malformed(const ZipMember& member, std::string_view detail) const;

 private:
  void check_crc(const ZipMember& member, std::uint32_t crc) const;

  const SourceFile* file_;
  std::vector<ZipMember> members_;
  std::unordered_map<std::string_view, std::uint32_t> by_name_;
};

// The name in the local header that `head`, the start of a file, begins with; cut where `head` ends.
std::optional<std::string_view> first_zip_name(std::span<const std::byte> head);

}  // namespace loadline
