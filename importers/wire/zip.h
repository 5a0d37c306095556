// Reads a zip archive: the place of each member's bytes, and the content of small members.
#pragma once

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name_index.h"
#include "core/io/source_file.h"
#include "importers/wire/zip_directory.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// The members of an archive and their content. zip_directory.h lists the archives that are refused.
class ZipArchive {
 public:
  // Reads the directory and the local headers, no content. `file` must outlive it. Throws Error.
  ZipArchive(const SourceFile& file, ZipCase name_case);

  const SourceFile& file() const { return *file_; }
  const std::vector<ZipMember>& members() const { return directory_.members; }
  // Notes about the directory.
  const std::vector<Note>& notes() const { return directory_.notes; }
  const ZipMember* find(std::string_view name) const;
  // The single folder that holds all members, without its slash. Throws Error{malformed} if there is none.
  std::string root() const;
  // The member's content, decompressed and compared with its checksum. A checksum of 0 means that the writer
  // omitted it. Throws Error{limit} above `most` bytes, and Error{malformed}.
  std::string read(const ZipMember& member, std::uint64_t most) const;
  // Compares a stored member with its checksum, piece by piece. Throws Error{malformed}.
  void check_stored(const ZipMember& member) const;
  // The member as a storage of a graph.
  Storage storage(const ZipMember& member, FileId file) const;

  template <typename... Values>
  Error malformed(const ZipMember& member, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_->path(), .byte = member.header}, "member '{}' {}",
                 safe_display(member.name, 200), fmt::vformat(detail, fmt::make_format_args(values...)));
  }

 private:
  void check_crc(const ZipMember& member, std::uint32_t crc) const;

  const SourceFile* file_;
  ZipDirectory directory_;
  NameIndex by_name_;
};

// The member name in the local header at the start of `head`, a file's first bytes; cut where `head` ends.
std::optional<std::string_view> first_zip_name(std::string_view head);

}  // namespace loadline
