// Local headers, data descriptors and the directory.
//
//   local header     "PK\3\4" version flags method time date crc size size name-length extra-length name
//   extra descriptor       "PK\7\8" crc size size (8 bytes each in ZIP64) directory entry  "PK\1\2" made-by
//   version flags method time date crc size size lengths... offset name extra end              ["PK\6\6" ...
//   "PK\6\7" ...] "PK\5\6" disks counts size offset comment-length
#include "core/base/error.h"
#include "exporters/exporter.h"
#include "exporters/formats/formats.h"

#include <algorithm>
#include <cassert>

namespace loadline::exporters {
namespace {

constexpr std::uint32_t kFull32 = 0xFFFFFFFF;
constexpr std::uint16_t kFull16 = 0xFFFF;
constexpr std::uint16_t kFlags = 0x0808;   // a data descriptor; names are UTF-8
constexpr std::uint16_t kFirstDay = 0x21;  // 1980-01-01, so that equal input gives equal bytes
constexpr std::uint16_t kPlainVersion = 20, kLargeVersion = 45;
constexpr std::uint16_t kLargeField = 1, kPaddingField = 0x4246;  // "FB"
constexpr std::uint64_t kLocalBytes = 30, kLargeFieldBytes = 20, kFieldHead = 4;
constexpr std::uint64_t kCrcInDescriptor = 4, kCrcInEntry = 16;

void put16(std::vector<std::byte>& out, std::uint16_t value) {
  out.push_back(static_cast<std::byte>(value & 0xFF));
  out.push_back(static_cast<std::byte>(value >> 8));
}

}  // namespace

void ZipLayout::append(std::vector<std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  file_.pieces.push_back({at_, std::move(bytes)});
  at_ += size;
}

std::uint64_t ZipLayout::begin(std::string_view name, std::uint64_t bytes, std::uint64_t aligned) {
  assert(name.size() <= kMostName);
  const bool large = bytes >= kFull32 || at_ >= kFull32;
  std::vector<std::byte> header;
  append_bytes(header, "PK\3\4");
  put16(header, large ? kLargeVersion : kPlainVersion);
  put16(header, kFlags);
  put16(header, 0);  // stored
  put16(header, 0);
  put16(header, kFirstDay);
  append_u32(header, 0);
  append_u32(header, large ? kFull32 : 0);
  append_u32(header, large ? kFull32 : 0);
  put16(header, static_cast<std::uint16_t>(name.size()));
  const std::uint64_t before =
      at_ + kLocalBytes + name.size() + (large ? kLargeFieldBytes : 0) + kFieldHead + aligned;
  const std::uint64_t padding = (alignment_ - before % alignment_) % alignment_;
  put16(header, static_cast<std::uint16_t>((large ? kLargeFieldBytes : 0) + kFieldHead + padding));
  append_bytes(header, name);
  if (large) {
    put16(header, kLargeField);
    put16(header, kLargeFieldBytes - kFieldHead);
    append_u64(header, 0);
    append_u64(header, 0);
  }
  put16(header, kPaddingField);
  put16(header, static_cast<std::uint16_t>(padding));
  members_.push_back({std::string(name), at_, bytes, large});
  append(std::move(header));
  at_ += padding;  // zeros, which a layout need not hold
  file_.checksums.push_back({at_, at_ + bytes, {}});
  return at_;
}

void ZipLayout::end() {
  const Member& member = members_.back();
  file_.checksums.back().at.push_back(at_ + kCrcInDescriptor);
  std::vector<std::byte> descriptor;
  append_bytes(descriptor, "PK\7\10");
  append_u32(descriptor, 0);
  for (int i = 0; i < 2; ++i)
    if (member.large)
      append_u64(descriptor, member.bytes);
    else
      append_u32(descriptor, static_cast<std::uint32_t>(member.bytes));
  append(std::move(descriptor));
}

void ZipLayout::add(std::string_view name, std::vector<std::byte> content) {
  begin(name, content.size(), 0);
  append(std::move(content));
  end();
}

void ZipLayout::add(std::string_view name, std::vector<std::byte> prefix, Slot slot) {
  begin(name, prefix.size() + slot.bytes, prefix.size());
  append(std::move(prefix));
  slot.offset = at_;
  at_ += slot.bytes;
  file_.slots.push_back(std::move(slot));
  end();
}

void ZipLayout::add_directory() {
  const std::uint64_t start = at_;
  std::vector<std::byte> directory;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    file_.checksums[i].at.push_back(start + directory.size() + kCrcInEntry);
    const auto bytes = member.large ? kFull32 : static_cast<std::uint32_t>(member.bytes);
    append_bytes(directory, "PK\1\2");
    put16(directory, member.large ? kLargeVersion : kPlainVersion);
    put16(directory, member.large ? kLargeVersion : kPlainVersion);
    put16(directory, kFlags);
    put16(directory, 0);
    put16(directory, 0);
    put16(directory, kFirstDay);
    append_u32(directory, 0);
    append_u32(directory, bytes);
    append_u32(directory, bytes);
    put16(directory, static_cast<std::uint16_t>(member.name.size()));
    put16(directory, member.large ? kFieldHead + 24 : 0);
    for (int k = 0; k < 3; ++k) put16(directory, 0);  // comment, disk, attributes
    append_u32(directory, 0);
    append_u32(directory, member.large ? kFull32 : static_cast<std::uint32_t>(member.header));
    append_bytes(directory, member.name);
    if (!member.large) continue;
    put16(directory, kLargeField);
    put16(directory, 24);
    append_u64(directory, member.bytes);
    append_u64(directory, member.bytes);
    append_u64(directory, member.header);
  }
  const std::uint64_t size = directory.size(), count = members_.size();
  const bool large = count >= kFull16 || start >= kFull32 || size >= kFull32;
  if (large) {
    const std::uint64_t end = start + size;
    append_bytes(directory, "PK\6\6");
    append_u64(directory, 44);
    put16(directory, kLargeVersion);
    put16(directory, kLargeVersion);
    append_u32(directory, 0);
    append_u32(directory, 0);
    for (const std::uint64_t value : {count, count, size, start}) append_u64(directory, value);
    append_bytes(directory, "PK\6\7");
    append_u32(directory, 0);
    append_u64(directory, end);
    append_u32(directory, 1);
  }
  append_bytes(directory, "PK\5\6");
  append_u32(directory, 0);
  for (int i = 0; i < 2; ++i)
    put16(directory, static_cast<std::uint16_t>(std::min<std::uint64_t>(count, kFull16)));
  append_u32(directory, static_cast<std::uint32_t>(std::min<std::uint64_t>(size, kFull32)));
  append_u32(directory, static_cast<std::uint32_t>(std::min<std::uint64_t>(start, kFull32)));
  put16(directory, 0);
  append(std::move(directory));
}

Layout ZipLayout::layout(const graph::MetaGraph& source, std::string format, const std::string& out,
                         const std::vector<std::vector<graph::Name>>& names) {
  add_directory();
  file_.path = out;
  file_.bytes = at_;
  Layout layout;
  layout.result.format = std::move(format);
  layout.result.files.push_back({out, at_});
  for (std::size_t i = 0; i < file_.slots.size(); ++i)
    add_result(layout.result, graph::FileId{0}, file_.slots[i],
               names.empty() ? std::span<const graph::Name>() : names[i]);
  add_logical(source, layout.result);
  layout.files.push_back(std::move(file_));
  return layout;
}

}  // namespace loadline::exporters
