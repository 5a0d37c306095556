// deflate (RFC 1951, through zlib), protobuf numbers (protobuf.dev, "Encoding"), big-endian numbers.
#include "core/base/error.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <zlib.h>

namespace loadline::io {
namespace {

class DeflateDecoder final : public Decoder {
 public:
  DeflateDecoder(const SourceFile& file, const graph::Storage& storage)
      : file_(file), next_(storage.offset), end_(storage.offset + storage.stored_bytes) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK)
      throw Error(ErrorCode::limit, {.file = file.path()}, "not enough memory to decompress");
  }
  ~DeflateDecoder() override { inflateEnd(&stream_); }
  DeflateDecoder(const DeflateDecoder&) = delete;
  DeflateDecoder& operator=(const DeflateDecoder&) = delete;

  void read(std::span<std::byte> out) override {
    while (!out.empty()) {
      if (stream_.avail_in == 0 && next_ < end_) {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(in_.size(), end_ - next_));
        file_.read_at(next_, std::span(in_).first(n));
        stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
        stream_.avail_in = static_cast<uInt>(n);
        next_ += n;
      }
      const auto room = static_cast<uInt>(std::min<std::size_t>(out.size(), std::size_t{1} << 30));
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = room;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t given = room - stream_.avail_out;
      at_ += given;
      out = out.subspan(given);
      const bool stuck = given == 0 && stream_.avail_in == 0 && next_ == end_;
      if ((code == Z_STREAM_END && !out.empty()) || (code == Z_BUF_ERROR && stuck))
        throw fail("the compressed data ends after {} bytes", at_);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        throw fail("the compressed data is damaged after {} bytes: {}", at_,
                   stream_.msg != nullptr ? stream_.msg : "no valid deflate stream");
    }
  }

 private:
  template <typename... Values>
  Error fail(fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = next_ - stream_.avail_in}, detail,
                 values...);
  }

  const SourceFile& file_;
  std::uint64_t next_;
  std::uint64_t end_;
  z_stream stream_ = {};
  std::array<std::byte, 64 << 10> in_ = {};
};

// Wire types.
constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kLength = 2;
constexpr std::uint64_t kFixed32 = 5;

// Repeated scalars may be packed, single or mixed; all are read, in order.
class ProtobufFieldDecoder final : public Decoder {
 public:
  ProtobufFieldDecoder(const SourceFile& file, const graph::Storage& storage)
      : cursor_(file, storage.offset, storage.offset + storage.stored_bytes),
        field_(storage.field),
        unit_(storage.unit),
        fixed_(storage.encoding == graph::Encoding::protobuf_fixed ? storage.unit : 0) {}

  void read(std::span<std::byte> out) override {
    while (!out.empty()) {
      if (held_at_ == unit_) {
        held_ = next_number();
        held_at_ = 0;
      }
      out.front() = static_cast<std::byte>(held_ >> (8 * held_at_++));
      out = out.subspan(1);
      ++at_;
    }
  }

 private:
  std::uint64_t next_number() {
    const std::uint64_t number = read_number();
    if (packed_end_ != 0 && cursor_.at() > packed_end_)
      throw cursor_.malformed(cursor_.at(), "a number of field {} crosses the end of its packed run at {}",
                              field_, packed_end_);
    return number;
  }

  std::uint64_t read_number() {
    const std::uint64_t own = fixed_ == 0 ? kVarint : fixed_ == 8 ? kFixed64 : kFixed32;
    while (cursor_.at() == packed_end_ || packed_end_ == 0) {
      packed_end_ = 0;
      if (cursor_.remaining() == 0)
        throw cursor_.malformed(cursor_.at(), "field {} ends after {} bytes", field_, at_);
      const std::uint64_t key = varint();
      const bool wanted = key >> 3 == field_;
      if (wanted && (key & 7) == own) return number(own);
      if ((key & 7) != kLength) {
        number(key & 7);
        continue;
      }
      const std::uint64_t bytes = varint();
      if (bytes > cursor_.remaining())
        throw cursor_.malformed(cursor_.at(), "a field needs {} bytes, {} are left", bytes,
                                cursor_.remaining());
      if (wanted && bytes > 0)
        packed_end_ = cursor_.at() + bytes;
      else
        cursor_.skip(bytes, "a field");
    }
    return number(own);
  }

  std::uint64_t number(std::uint64_t type) {
    switch (type) {
      case kVarint:
        return varint();
      case kFixed64:
        return cursor_.read<std::uint64_t>("a number");
      case kFixed32:
        return cursor_.read<std::uint32_t>("a number");
      default:
        throw cursor_.malformed(cursor_.at(), "wire type {}", type);
    }
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = cursor_.read<std::uint8_t>("a varint");
      if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    throw cursor_.malformed(cursor_.at(), "a varint of more than 10 bytes");
  }

  Cursor cursor_;
  std::uint64_t field_;
  unsigned unit_;
  unsigned fixed_;                // bytes per number, 0 for varints
  std::uint64_t packed_end_ = 0;  // of the packed run being read, 0 outside one
  std::uint64_t held_ = 0;
  unsigned held_at_ = unit_;  // bytes of held_ already returned
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const SourceFile& file, const graph::Storage& storage) {
  switch (storage.encoding) {
    case graph::Encoding::deflate:
      return std::make_unique<DeflateDecoder>(file, storage);
    case graph::Encoding::protobuf_varints:
    case graph::Encoding::protobuf_fixed:
      return std::make_unique<ProtobufFieldDecoder>(file, storage);
    default:
      throw Error(ErrorCode::unsupported, {.file = file.path(), .byte = storage.offset},
                  "quantized blocks in big-endian order cannot be read");
  }
}

void read_swapped(const SourceFile& file, const graph::Storage& storage, std::uint64_t offset,
                  std::span<std::byte> out) {
  const std::uint64_t unit = storage.unit;
  while (!out.empty()) {
    const std::uint64_t within = offset % unit;
    if (within == 0 && out.size() >= unit) {  // whole units
      const auto whole = out.first(out.size() / unit * unit);
      file.read_at(storage.offset + offset, whole);
      for (auto rest = whole; !rest.empty(); rest = rest.subspan(unit))
        std::reverse(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(unit));
      out = out.subspan(whole.size());
      offset += whole.size();
    } else {  // a part of one
      std::array<std::byte, 8> one = {};
      file.read_at(storage.offset + offset - within, std::span(one).first(unit));
      std::reverse(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(unit));
      const auto n = std::min<std::size_t>(out.size(), unit - within);
      std::copy_n(one.begin() + static_cast<std::ptrdiff_t>(within), n, out.begin());
      out = out.subspan(n);
      offset += n;
    }
  }
}

}  // namespace loadline::io
