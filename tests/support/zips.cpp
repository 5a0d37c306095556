// Writes zip archives for tests.
#include "tests/support/zips.h"

#include <stdexcept>

#include <zlib.h>

namespace loadline::testing {
namespace {

std::string deflated(const std::string& content) {
  z_stream stream = {};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string in = content, out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// An extra field of torch's kind that moves the content to a multiple of the alignment.
std::string padding(std::size_t at, std::size_t alignment) {
  if (alignment == 0) return "";
  const std::size_t fill = (alignment - (at + 4) % alignment) % alignment;
  return "FB" + little_endian(fill, 2) + std::string(fill, 'Z');
}

}  // namespace

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

std::string zip_bytes(const std::vector<ZipSpec>& members, const ZipEnd& end) {
  std::string out = end.prefix, directory;
  for (const ZipSpec& member : members) {
    const std::string stored = member.deflate ? deflated(member.content) : member.content;
    const auto crc = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(member.content.data()), member.content.size()));
    const std::uint16_t method = member.method.value_or(member.deflate ? 8 : 0);
    const auto flags = static_cast<std::uint16_t>(member.flags | (member.sizes_follow ? 8 : 0));
    const std::string name = member.local_name.value_or(member.name);
    const std::uint64_t header = out.size();
    const auto local = [&](std::uint64_t value) { return little_endian(member.sizes_follow ? 0 : value, 4); };
    const std::string extra =
        member.local_extra +
        padding(out.size() + 30 + name.size() + member.local_extra.size(), member.alignment);
    out += "PK\3\4" + little_endian(20, 2) + little_endian(flags, 2) +
           little_endian(member.local_method.value_or(method), 2) + little_endian(0, 4) +
           local(member.local_crc.value_or(member.crc.value_or(crc))) +
           local(member.stored_bytes.value_or(static_cast<std::uint32_t>(stored.size()))) +
           local(member.local_bytes.value_or(
               member.bytes.value_or(static_cast<std::uint32_t>(member.content.size())))) +
           little_endian(name.size(), 2) + little_endian(extra.size(), 2) + name + extra + stored;
    if (member.sizes_follow)
      out += member.descriptor.value_or("PK\7\10" + little_endian(member.crc.value_or(crc), 4) +
                                        little_endian(stored.size(), 4) +
                                        little_endian(member.content.size(), 4));
    out += member.after;
    directory += "PK\1\2" + little_endian(20, 2) + little_endian(20, 2) + little_endian(flags, 2) +
                 little_endian(method, 2) + little_endian(0, 4) + little_endian(member.crc.value_or(crc), 4) +
                 little_endian(member.stored_bytes.value_or(static_cast<std::uint32_t>(stored.size())), 4) +
                 little_endian(member.bytes.value_or(static_cast<std::uint32_t>(member.content.size())), 4) +
                 little_endian(member.name.size(), 2) + little_endian(member.extra.size(), 2) +
                 little_endian(0, 2) + little_endian(member.disk, 2) + little_endian(0, 6) +
                 little_endian(member.header.value_or(static_cast<std::uint32_t>(header)), 4) + member.name +
                 member.extra;
  }
  const std::uint64_t at = out.size();
  out += directory + end.before_end;
  const std::uint64_t end64 = out.size();
  if (end.zip64)
    out += "PK\6\6" + little_endian(44 + end.extension.size(), 8) + little_endian(45, 2) +
           little_endian(45, 2) + little_endian(0, 8) +
           little_endian(end.members64.value_or(members.size()), 8) +
           little_endian(end.members64.value_or(members.size()), 8) + little_endian(directory.size(), 8) +
           little_endian(end.directory64.value_or(at), 8) + end.extension + "PK\6\7" + little_endian(0, 4) +
           little_endian(end.end64.value_or(end64), 8) + little_endian(1, 4);
  const auto count = end.members.value_or(static_cast<std::uint16_t>(members.size()));
  out += "PK\5\6" + little_endian(end.disk, 4) + little_endian(count, 2) + little_endian(count, 2) +
         little_endian(end.directory_bytes.value_or(static_cast<std::uint32_t>(directory.size())), 4) +
         little_endian(end.directory.value_or(static_cast<std::uint32_t>(at)), 4) +
         little_endian(end.comment_bytes, 2);
  return out + end.after_end;
}

}  // namespace loadline::testing
