// Reads the central directory, the local headers and small members.
#include "importers/wire/zip.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/name.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"
#include "importers/resolve.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/core.h>
#include <zlib.h>

namespace loadline::importers {

// --- zip (PKWARE APPNOTE.TXT 6.3.10), as torch, numpy and Python's zipfile write it. Little-endian.
//
//   local header      PK\3\4  2 version 2 flags 2 method 4 time 4 crc 4 stored 4 plain 2 name 2 extra
//                     then name, extra, content, and with flag 3 a descriptor:
//   descriptor        PK\7\8 (or without)  4 crc 4 stored 4 plain, or 8 and 8
//   ... one per member, then the central directory:
//   central header    PK\1\2  2 made by, then as above, 2 comment 2 disk 2+4 attributes 4 local header
//                     then name, extra (id 1: the 64-bit values of fields that are 0xFFFFFFFF), comment
//   zip64 end         PK\6\6  8 size 2 made by 2 version 4+4 disk 8+8 members 8 directory bytes 8 offset
//   zip64 locator     PK\6\7  4 disk 8 zip64 end 4 disks         both optional
//   end               PK\5\6  2+2 disk 2+2 members 4 directory bytes 4 offset 2 comment

namespace {

constexpr std::uint32_t kLocal = 0x04034B50;
constexpr std::uint32_t kCentral = 0x02014B50;
constexpr std::uint32_t kEnd = 0x06054B50;
constexpr std::uint32_t kEnd64 = 0x06064B50;
constexpr std::uint32_t kLocator = 0x07064B50;
constexpr std::uint32_t kDescriptor = 0x08074B50;
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kMostDescriptor = 24;
constexpr std::uint64_t kCentralBytes = 46;
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kLocatorBytes = 20;
constexpr std::uint64_t kEnd64Bytes = 56;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // the value stands in the zip64 extra field
constexpr std::uint64_t kMostMembers = 2'000'000;
constexpr std::uint16_t kZip64Extra = 1;
// A deflate stream gives at most 1032 bytes for each of its own (zlib, "Maximum compression factor").
constexpr std::uint64_t kMostRatio = 1032;
// 1, 2: how hard deflate tried; 3: sizes follow the content; 11: names are UTF-8
constexpr std::uint16_t kKnownFlags = 0x080E;
constexpr std::uint16_t kSizesFollow = 0x0008;

struct End {
  std::uint64_t members = 0;
  std::uint64_t directory = 0;
  std::uint64_t directory_bytes = 0;
};

// One central or local header as it stands in the file.
struct Header {
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint16_t name_bytes = 0;
  std::uint16_t extra_bytes = 0;
};

class Reader {
 public:
  Reader(const io::SourceFile& file, ZipNames names) : file_(file), kind_of_names_(names) {}

  ZipDirectory read() {
    const End end = read_end();
    read_directory(end);
    check_local_headers(end.directory);
    check_names();
    std::erase_if(members_, [](const ZipMember& member) { return member.name.ends_with('/'); });
    return {std::move(names_), std::move(members_), gap_notes()};
  }

 private:
  template <typename... Values>
  Error malformed(std::uint64_t byte, fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = byte}, detail, values...);
  }
  template <typename... Values>
  Error at_member(const ZipMember& member, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return malformed(member.header, "member '{}' {}", safe_display(member.name, 200),
                     fmt::vformat(detail, fmt::make_format_args(values...)));
  }

  // The end record must be the last thing in the file, and the directory must end where it begins: nothing
  // can hide behind a comment, and no reader can find another directory.
  End read_end() {
    if (file_.size() < kEndBytes)
      throw malformed(0, "a zip archive has at least 22 bytes, this file has {}", file_.size());
    const std::uint64_t at = file_.size() - kEndBytes;
    io::Cursor cursor(file_, at, file_.size());
    if (cursor.read<std::uint32_t>("the end record") != kEnd)
      throw malformed(at,
                      "the zip archive has no end record in its last 22 bytes: it is cut short, has a "
                      "comment, or something follows it");
    const auto disk = cursor.read<std::uint16_t>("the end record");
    const auto directory_disk = cursor.read<std::uint16_t>("the end record");
    const auto here = cursor.read<std::uint16_t>("the end record");
    const auto members = cursor.read<std::uint16_t>("the end record");
    const auto directory_bytes = cursor.read<std::uint32_t>("the end record");
    const auto directory = cursor.read<std::uint32_t>("the end record");
    if (const auto comment = cursor.read<std::uint16_t>("the end record"); comment != 0)
      throw malformed(at, "the end record announces a comment of {} bytes, 0 follow", comment);
    if (disk != 0 || directory_disk != 0 || here != members)
      throw malformed(at, "the zip archive spans several disks");
    End end{members, directory, directory_bytes};
    std::uint64_t directory_end = at;
    if (const auto end64_at = find_end64(at)) {
      const End wide = read_end64(*end64_at, at - kLocatorBytes);
      const auto agree = [&](std::uint64_t narrow, std::uint64_t value, std::uint64_t in_64) {
        if (narrow != in_64 && narrow != value)
          throw malformed(at, "the end record says {}, the zip64 end record {}", narrow, value);
      };
      agree(members, wide.members, 0xFFFF);
      agree(directory_bytes, wide.directory_bytes, kIn64);
      agree(directory, wide.directory, kIn64);
      end = wide;
      directory_end = *end64_at;
    }
    if (!range_fits(end.directory, end.directory_bytes, directory_end) ||
        end.directory + end.directory_bytes != directory_end)
      throw malformed(at,
                      "the directory of {} bytes at {} does not end where its end record begins, "
                      "at byte {}",
                      end.directory_bytes, end.directory, directory_end);
    return end;
  }

  // Where the zip64 end record is, if a locator stands before the end record.
  std::optional<std::uint64_t> find_end64(std::uint64_t end_at) const {
    if (end_at < kLocatorBytes) return std::nullopt;
    io::Cursor cursor(file_, end_at - kLocatorBytes, end_at);
    if (cursor.read<std::uint32_t>("the zip64 locator") != kLocator) return std::nullopt;
    const auto disk = cursor.read<std::uint32_t>("the zip64 locator");
    const auto offset = cursor.read<std::uint64_t>("the zip64 locator");
    const auto disks = cursor.read<std::uint32_t>("the zip64 locator");
    if (disk != 0 || disks > 1) throw malformed(cursor.at(), "the zip archive spans several disks");
    if (!range_fits(offset, kEnd64Bytes, end_at - kLocatorBytes))
      throw malformed(end_at - kLocatorBytes, "the zip64 locator gives byte {}, itself at {}", offset,
                      cursor.at());
    return offset;
  }

  End read_end64(std::uint64_t at, std::uint64_t locator) {
    io::Cursor cursor(file_, at, locator);
    if (cursor.read<std::uint32_t>("the zip64 end record") != kEnd64)
      throw malformed(at, "the zip64 locator gives a byte where no zip64 end record is");
    const auto bytes = cursor.read<std::uint64_t>("the zip64 end record");
    if (bytes != locator - at - 12)
      throw malformed(at, "the zip64 end record claims {} bytes, {} follow before its locator", bytes,
                      locator - at - 12);
    cursor.skip(4, "the zip64 end record");
    const auto disk = cursor.read<std::uint32_t>("the zip64 end record");
    const auto directory_disk = cursor.read<std::uint32_t>("the zip64 end record");
    const auto here = cursor.read<std::uint64_t>("the zip64 end record");
    End end;
    end.members = cursor.read<std::uint64_t>("the zip64 end record");
    end.directory_bytes = cursor.read<std::uint64_t>("the zip64 end record");
    end.directory = cursor.read<std::uint64_t>("the zip64 end record");
    if (disk != 0 || directory_disk != 0 || here != end.members)
      throw malformed(at, "the zip archive spans several disks");
    // extensions of the record have a meaning for some writers only
    add_gap(cursor.at(), locator);
    return end;
  }

  void read_directory(const End& end) {
    if (end.members > kMostMembers)
      throw Error(ErrorCode::limit, {.file = file_.path(), .byte = end.directory},
                  "the zip archive has {} members, the limit is {}", end.members, kMostMembers);
    if (end.members > end.directory_bytes / kCentralBytes)
      throw malformed(end.directory, "a directory of {} bytes cannot hold {} members", end.directory_bytes,
                      end.members);
    if (end.members == 0) throw malformed(end.directory, "the zip archive is empty");
    members_.reserve(static_cast<std::size_t>(end.members));
    io::Cursor cursor(file_, end.directory, end.directory + end.directory_bytes);
    for (std::uint64_t i = 0; i < end.members; ++i) read_member(cursor);
    if (cursor.remaining() != 0)
      throw malformed(cursor.at(), "{} bytes follow the {} members that the end record counts",
                      cursor.remaining(), end.members);
  }

  // From the version on: the part that central and local headers share.
  static Header read_common(io::Cursor& cursor) {
    constexpr std::string_view what = "a zip header";
    Header header;
    cursor.skip(2, what);
    header.flags = cursor.read<std::uint16_t>(what);
    header.method = cursor.read<std::uint16_t>(what);
    cursor.skip(4, what);
    header.crc = cursor.read<std::uint32_t>(what);
    header.stored_bytes = cursor.read<std::uint32_t>(what);
    header.bytes = cursor.read<std::uint32_t>(what);
    header.name_bytes = cursor.read<std::uint16_t>(what);
    header.extra_bytes = cursor.read<std::uint16_t>(what);
    return header;
  }

  void read_member(io::Cursor& cursor) {
    constexpr std::string_view what = "a central header";
    const std::uint64_t at = cursor.at();
    if (cursor.read<std::uint32_t>(what) != kCentral)
      throw malformed(at, "no central header where the directory should go on");
    cursor.skip(2, what);
    Header header = read_common(cursor);
    const auto comment_bytes = cursor.read<std::uint16_t>(what);
    const auto disk = cursor.read<std::uint16_t>(what);
    cursor.skip(6, what);
    std::uint64_t local = cursor.read<std::uint32_t>(what);
    ZipMember member;
    member.name = names_.keep(cursor.read_text(header.name_bytes, header.name_bytes, what));
    read_extra(cursor, header, &local);
    cursor.skip(comment_bytes, what);
    member.header = local;
    member.deflated = header.method == 8;
    member.crc = header.crc;
    member.stored_bytes = header.stored_bytes;
    member.bytes = header.bytes;
    if (disk != 0) throw at_member(member, "lies on another disk");
    check_header(member, header);
    if (!member.deflated && member.stored_bytes != member.bytes)
      throw at_member(member, "is stored as {} bytes and has {}", member.stored_bytes, member.bytes);
    if (member.deflated && member.bytes / kMostRatio > member.stored_bytes)
      throw at_member(member, "claims {} bytes out of {}: no deflate stream holds that many", member.bytes,
                      member.stored_bytes);
    members_.push_back(std::move(member));
  }

  void check_header(const ZipMember& member, const Header& header) const {
    if ((header.flags & 1) != 0)
      throw Error(ErrorCode::unsupported, {.file = file_.path(), .byte = member.header},
                  "member '{}' is encrypted", safe_display(member.name, 200));
    if ((header.flags & ~kKnownFlags) != 0)
      throw at_member(member, "has flags {:#06x} that no writer sets", header.flags);
    if (header.method != 0 && header.method != 8)
      throw Error(ErrorCode::unsupported, {.file = file_.path(), .byte = member.header},
                  "member '{}' is compressed with method {}; only stored and deflate are read",
                  safe_display(member.name, 200), header.method);
  }

  // Replaces the header's saturated 32-bit values by those of the zip64 field; `local` in central ones.
  void read_extra(io::Cursor& cursor, Header& header, std::uint64_t* local) const {
    constexpr std::string_view what = "an extra field";
    const std::uint64_t at = cursor.at();
    const std::uint64_t end = at + header.extra_bytes;
    if (header.extra_bytes > cursor.remaining())
      throw malformed(at, "extra fields of {} bytes, {} follow", header.extra_bytes, cursor.remaining());
    const bool wanted = header.bytes == kIn64 || header.stored_bytes == kIn64 || (local && *local == kIn64);
    bool found = false;
    while (end - cursor.at() >= 4) {
      const auto id = cursor.read<std::uint16_t>(what);
      std::uint64_t bytes = cursor.read<std::uint16_t>(what);
      if (bytes > end - cursor.at())
        throw malformed(cursor.at(), "an extra field of {} bytes, {} follow", bytes, end - cursor.at());
      if (id == kZip64Extra) {
        if (std::exchange(found, true)) throw malformed(cursor.at(), "two zip64 extra fields");
        // in this order; without a saturated value the field must repeat the 32-bit ones
        const auto take = [&](std::uint64_t& value) {
          if (wanted && value != kIn64) return;
          if (bytes < 8) {
            if (wanted) throw malformed(cursor.at(), "the zip64 extra field is cut short");
            return;
          }
          const auto wide = cursor.read<std::uint64_t>(what);
          if (value != kIn64 && value != wide)
            throw malformed(cursor.at(), "the zip64 extra field says {}, the header {}", wide, value);
          value = wide;
          bytes -= 8;
        };
        take(header.bytes);
        take(header.stored_bytes);
        if (local != nullptr) take(*local);
      }
      cursor.skip(bytes, what);
    }
    // some writers fill up with a rest that is too short for a field
    cursor.skip(end - cursor.at(), what);
  }

  // Front to back: each local header must repeat its central one, and begin after the content before it.
  void check_local_headers(std::uint64_t directory) {
    std::vector<std::uint32_t> order(members_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(
        order, [&](std::uint32_t a, std::uint32_t b) { return members_[a].header < members_[b].header; });
    if (const std::uint64_t first = members_[order.front()].header; first != 0)
      throw malformed(0, "{} bytes stand before the first member", first);
    const ZipMember* before = nullptr;
    bool sizes_follow = false;
    for (const std::uint32_t position : order) {
      ZipMember& member = members_[position];
      const std::uint64_t end = before == nullptr ? 0 : before->payload + before->stored_bytes;
      if (member.header < end) throw at_member(member, "overlaps the one before it");
      if (!range_fits(member.header, kLocalBytes + member.name.size(), directory))
        throw at_member(member, "has its local header at {}, the directory begins at {}", member.header,
                        directory);
      const std::size_t between = read_between(end, member.header, kLocalBytes + member.name.size());
      if (before != nullptr) judge_gap(*before, sizes_follow, end, member.header);
      sizes_follow = check_local_header(member, std::span(local_).subspan(between), directory);
      before = &member;
    }
    const std::uint64_t end = before->payload + before->stored_bytes;
    read_between(end, directory, 0);
    judge_gap(*before, sizes_follow, end, directory);
  }

  // Fills local_ with the start of what lies in [end, next), as far as a descriptor may reach, and the
  // `bytes` bytes at `next`; says how many bytes come before these. Next to each other, as a rule.
  std::size_t read_between(std::uint64_t end, std::uint64_t next, std::uint64_t bytes) {
    const auto between = static_cast<std::size_t>(std::min(next - end, kMostDescriptor));
    local_.resize(between + static_cast<std::size_t>(bytes));
    if (next - end == between) {
      file_.read_at(end, local_);
    } else {
      file_.read_at(end, std::span(local_).first(between));
      file_.read_at(next, std::span(local_).subspan(between));
    }
    return between;
  }

  // Looks at the bytes between a member's content, which ends at `end`, and the next header. If flag 3 is
  // set, a descriptor is expected there. All other bytes count as a gap, which no known writer leaves.
  void judge_gap(const ZipMember& member, bool sizes_follow, std::uint64_t end, std::uint64_t next) {
    const auto between = static_cast<std::size_t>(std::min(next - end, kMostDescriptor));
    const std::uint64_t described =
        sizes_follow ? descriptor_bytes(member, std::span(local_).first(between)) : 0;
    add_gap(end + described, next);
  }

  // crc 4, then both sizes in 4 or 8 bytes each, with or without a signature in front. How many of these
  // bytes that is; 0 if they are something else. A checksum of 0 in the directory is one left out.
  std::uint64_t descriptor_bytes(const ZipMember& member, std::span<const std::byte> bytes) const {
    const auto number = [&](std::size_t at, std::size_t width) {
      std::uint64_t value = 0;
      for (std::size_t i = width; i-- > 0;)
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
      return value;
    };
    const bool is_signed = bytes.size() >= 4 && number(0, 4) == kDescriptor;
    for (const std::size_t start : {std::size_t{4}, std::size_t{0}}) {
      if (start != 0 && !is_signed) continue;
      for (const std::size_t width : {std::size_t{8}, std::size_t{4}}) {
        const std::size_t size = start + 4 + 2 * width;
        if (bytes.size() >= size && (member.crc == 0 || number(start, 4) == member.crc) &&
            number(start + 4, width) == member.stored_bytes &&
            number(start + 4 + width, width) == member.bytes)
          return size;
      }
    }
    if (is_signed) throw at_member(member, "has another size or checksum in the descriptor behind it");
    return 0;
  }

  void add_gap(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    if (gaps_++ == 0 || begin < first_gap_) first_gap_ = begin;
    gap_bytes_ += end - begin;
  }

  // A note about the gaps: other readers ignore these bytes, and a file of two formats at once hides the
  // second one there.
  std::vector<graph::Note> gap_notes() const {
    if (gaps_ == 0) return {};
    const std::string where = gaps_ == 1 ? fmt::format("byte {}", first_gap_)
                                         : fmt::format("{} places, the first byte {}", gaps_, first_gap_);
    return {{graph::Severity::warning,
             {},
             fmt::format("{}: {} bytes at {} belong to no member of the zip archive",
                         safe_display(file_.path()), gap_bytes_, where)}};
  }

  // `local` is the file from the header on, as long as it should be. Whether flag 3 is set in it.
  bool check_local_header(ZipMember& member, std::span<const std::byte> local, std::uint64_t directory) {
    constexpr std::string_view what = "a local header";
    const std::uint64_t name_bytes = member.name.size();
    // a cursor over the file would read ahead into the content
    const io::SourceFile held = io::SourceFile::from_memory(file_.path(), {local.begin(), local.end()});
    io::Cursor cursor(held);
    if (cursor.read<std::uint32_t>(what) != kLocal) throw at_member(member, "has no local header");
    Header header = read_common(cursor);
    const std::string_view name(reinterpret_cast<const char*>(local.data()) + kLocalBytes, name_bytes);
    if (header.name_bytes != name_bytes || name != member.name)
      throw at_member(member, "has another name in its local header");
    check_header(member, header);
    if ((header.method == 8) != member.deflated)
      throw at_member(member, "has another compression method in its local header");
    const auto payload = checked_add(member.header, kLocalBytes + name_bytes + header.extra_bytes);
    if (!payload || !range_fits(*payload, member.stored_bytes, directory))
      throw at_member(member, "has {} bytes at {}, the directory begins at {}", member.stored_bytes,
                      payload.value_or(0), directory);
    member.payload = *payload;
    check_local_sizes(member, header);
    return (header.flags & kSizesFollow) != 0;
  }

  void check_local_sizes(const ZipMember& member, Header& header) const {
    const bool sizes_follow = (header.flags & kSizesFollow) != 0;
    if (header.bytes == kIn64 || header.stored_bytes == kIn64) {
      io::Cursor extra(file_, member.payload - header.extra_bytes, member.payload);
      read_extra(extra, header, nullptr);
    }
    // with flag 3 the writer did not know them yet: zero, or what they became
    const auto agree = [&](std::uint64_t local, std::uint64_t central) {
      return local == central || (sizes_follow && local == 0);
    };
    if (!agree(header.stored_bytes, member.stored_bytes) || !agree(header.bytes, member.bytes))
      throw at_member(member,
                      "has {} bytes ({} stored) in its local header, {} ({}) in the "
                      "directory",
                      header.bytes, header.stored_bytes, member.bytes, member.stored_bytes);
    if (!agree(header.crc, member.crc)) throw at_member(member, "has another checksum in its local header");
  }

  void check_names() const {
    // by hash: two different names with one hash are refused too, which nobody can provoke
    std::vector<std::pair<std::uint64_t, std::uint32_t>> seen;  // and the member
    seen.reserve(members_.size());
    std::string key;
    for (const ZipMember& member : members_) {
      const bool is_path = kind_of_names_ == ZipNames::paths;
      key = is_path ? lower_case(member.name) : std::string(member.name);
      if (key.ends_with('/')) {
        if (is_path) key.pop_back();
        if (member.bytes != 0) throw at_member(member, "is a folder with content");
      }
      if (is_path && !is_clean_relative(key))
        throw at_member(member, "has a name that is not a clean relative path");
      if (key.find('\0') != std::string::npos) throw at_member(member, "has a name with a NUL byte");
      seen.emplace_back(graph::text_hash(key), static_cast<std::uint32_t>(seen.size()));
    }
    std::ranges::sort(seen);
    const auto again =
        std::ranges::adjacent_find(seen, [](const auto& a, const auto& b) { return a.first == b.first; });
    if (again != seen.end()) throw at_member(members_[std::next(again)->second], "occurs twice");
  }

  const io::SourceFile& file_;
  ZipNames kind_of_names_;
  graph::TextArena names_;
  std::vector<ZipMember> members_;
  std::vector<std::byte> local_;  // see read_between
  std::uint64_t gaps_ = 0;        // stretches of bytes that belong to nothing
  std::uint64_t gap_bytes_ = 0;
  std::uint64_t first_gap_ = 0;
};

}  // namespace

ZipDirectory read_zip_directory(const io::SourceFile& file, ZipNames names) {
  return Reader(file, names).read();
}

// --- A zip archive's members: found by name, read, and given as storages.

namespace {

constexpr std::size_t kLocalHeaderBytes = 30;  // of a local header without its name

}  // namespace

ZipArchive::ZipArchive(const io::SourceFile& file, ZipNames names)
    : file_(&file), directory_(read_zip_directory(file, names)), by_name_(members().size()) {
  for (std::uint32_t i = 0; i < members().size(); ++i) {
    const std::string_view name = members()[i].name;
    by_name_.add(name, graph::name_hash(name), i, [&](std::uint32_t k) { return members()[k].name; });
  }
}

const ZipMember* ZipArchive::find(std::string_view name) const {
  const auto found =
      by_name_.find(name, graph::name_hash(name), [&](std::uint32_t k) { return members()[k].name; });
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

graph::Storage ZipArchive::storage(const ZipMember& member, graph::FileId file) const {
  graph::Storage storage = graph::plain_storage(file, member.payload, member.bytes);
  storage.stored_bytes = member.stored_bytes;
  if (member.deflated) storage.encoding = graph::Encoding::deflate;
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
    const auto decoder = io::make_decoder(*file_, storage(member, graph::FileId{0}));
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
  if (head.size() < kLocalHeaderBytes || !head.starts_with("PK\3\4")) return std::nullopt;
  const std::size_t bytes = static_cast<unsigned char>(head[26]) +
                            (static_cast<std::size_t>(static_cast<unsigned char>(head[27])) << 8);
  return head.substr(kLocalHeaderBytes, bytes);
}

}  // namespace loadline::importers
