// A zip archive's members: found by name, read, and given as storages.
#include "importers/wire/zip.h"

#include "core/io/decoder.h"

#include <algorithm>

#include <zlib.h>

namespace loadline {
namespace {

constexpr std::size_t kLocalBytes = 30;  // of a local header without its name

}  // namespace

ZipArchive::ZipArchive(const SourceFile& file, ZipCase name_case)
    : file_(&file), directory_(read_zip_directory(file, name_case)), by_name_(members().size()) {
  for (std::uint32_t i = 0; i < members().size(); ++i) {
    const std::string_view name = members()[i].name;
    by_name_.add(name, name_hash(name), i, [&](std::uint32_t k) { return members()[k].name; });
  }
}

const ZipMember* ZipArchive::find(std::string_view name) const {
  const auto found = by_name_.find(name, name_hash(name), [&](std::uint32_t k) { return members()[k].name; });
  return found ? &members()[*found] : nullptr;
}

std::string ZipArchive::root() const {
  if (members().empty())
    throw Error(ErrorCode::malformed, {.file = file_->path()}, "the zip archive is empty");
  const std::string_view first = members().front().name;
  const std::size_t slash = first.find('/');
  if (slash == std::string_view::npos)
    throw malformed(members().front(), "lies in no folder; all members of such an archive lie in one");
  const std::string_view prefix = first.substr(0, slash + 1);
  for (const ZipMember& member : members())
    if (!member.name.starts_with(prefix))
      throw malformed(member, "lies outside '{}'", safe_display(prefix, 100));
  return std::string(first.substr(0, slash));
}

Storage ZipArchive::storage(const ZipMember& member, FileId file) const {
  Storage storage = plain_storage(file, member.payload, member.bytes);
  storage.stored_bytes = member.stored_bytes;
  if (member.deflated) storage.encoding = Encoding::deflate;
  return storage;
}

void ZipArchive::check_crc(const ZipMember& member, std::uint32_t crc) const {
  if (member.crc != 0 && crc != member.crc)
    throw malformed(member, "has checksum {:08x}, the directory says {:08x}", crc, member.crc);
}

void ZipArchive::check_stored(const ZipMember& member) const {
  std::vector<std::byte> piece(std::min<std::uint64_t>(member.bytes, 256 << 10));
  uLong crc = crc32_z(0, nullptr, 0);
  for (std::uint64_t at = 0; at < member.bytes; at += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), member.bytes - at)));
    file_->read_at(member.payload + at, piece);
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
  }
  check_crc(member, static_cast<std::uint32_t>(crc));
}

std::string ZipArchive::read(const ZipMember& member, std::uint64_t most) const {
  if (member.bytes > most)
    throw Error(ErrorCode::limit, {.file = file_->path(), .byte = member.header},
                "member '{}' has {} bytes, the limit is {}", safe_display(member.name, 200), member.bytes,
                most);
  std::string text;
  if (!member.deflated) {
    text = file_->text_at(member.payload, member.bytes);
  } else {
    // the stated size may be false: allocate only as content arrives
    const auto decoder = make_decoder(*file_, storage(member, FileId{0}));
    constexpr std::uint64_t kPiece = 256 << 10;
    while (text.size() < member.bytes) {
      const std::size_t at = text.size();
      text.resize(static_cast<std::size_t>(std::min<std::uint64_t>(member.bytes, at + kPiece)));
      decoder->read(std::as_writable_bytes(std::span(text)).subspan(at));
    }
  }
  check_crc(member,
            static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size())));
  return text;
}

std::optional<std::string_view> first_zip_name(std::string_view head) {
  if (head.size() < kLocalBytes || !head.starts_with("PK\3\4")) return std::nullopt;
  const std::size_t bytes = static_cast<unsigned char>(head[26]) +
                            (static_cast<std::size_t>(static_cast<unsigned char>(head[27])) << 8);
  return head.substr(kLocalBytes, bytes);
}

}  // namespace loadline
