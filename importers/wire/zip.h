// A zip archive: its directory, checked against the whole file, and the content of members.
#pragma once

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {

// --- Reads the directory of a zip archive and checks it against the whole file.

struct ZipMember {
  std::string_view name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t header = 0;   // absolute file offset of the local header
  std::uint64_t payload = 0;  // absolute file offset of the first stored byte
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;  // decompressed
};

// What the names of members are. Nothing is extracted here, so labels lead nowhere.
enum class ZipNames : std::uint8_t {
  labels,  // numpy's: names of tensors, any text without NUL, at which other readers end the name
  paths,   // torch's: clean relative paths, of which no two differ in case only
};

struct ZipDirectory {
  graph::TextArena names;          // the members'
  std::vector<ZipMember> members;  // in the order of the central directory, without folders
  std::vector<graph::Note> notes;  // bytes that belong to no member
};

// Checks every member against its local header and the descriptor after its content. Reads no content. So
// that no two readers can see different archives, it refuses: bytes before the first member or after the
// directory, a comment, overlapping members, encryption, methods other than stored and deflate, several
// disks, names that occur twice or are not what `names` says, and headers that disagree. Bytes between
// members, or between the last member and the directory, give a warning with their place and number. Throws
// Error.
ZipDirectory read_zip_directory(const io::SourceFile& file, ZipNames names);

// --- Reads a zip archive: the place of each member's bytes, and the content of small members.

// The members of an archive and their content. read_zip_directory() says which are refused.
class ZipArchive {
 public:
  // Reads the directory and the local headers, no content. `file` must outlive it. Throws Error.
  ZipArchive(const io::SourceFile& file, ZipNames names);

  const io::SourceFile& file() const { return *file_; }
  const std::vector<ZipMember>& members() const { return directory_.members; }
  // Notes about the directory.
  const std::vector<graph::Note>& notes() const { return directory_.notes; }
  const ZipMember* find(std::string_view name) const;
  // The single folder that holds all members, without its slash. Throws Error{malformed} if there is none.
  std::string root() const;
  // The member's content, decompressed and compared with its checksum. A checksum of 0 means that the writer
  // omitted it. Throws Error{limit} above `most` bytes, and Error{malformed}.
  std::string read(const ZipMember& member, std::uint64_t most) const;
  // Compares a stored member with its checksum, piece by piece. Throws Error{malformed}.
  void check_stored(const ZipMember& member) const;
  // The member as a storage of a graph.
  graph::Storage storage(const ZipMember& member, graph::FileId file) const;

  template <typename... Values>
  Error malformed(const ZipMember& member, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_->path(), .byte = member.header}, "member '{}' {}",
                 safe_display(member.name, 200), fmt::vformat(detail, fmt::make_format_args(values...)));
  }

 private:
  void check_crc(const ZipMember& member, std::uint32_t crc) const;

  const io::SourceFile* file_;
  ZipDirectory directory_;
  graph::NameIndex by_name_;
};

// The member name in the local header at the start of `head`, a file's first bytes; cut where `head` ends.
std::optional<std::string_view> first_zip_name(std::string_view head);

}  // namespace loadline::importers
