// Writes protobuf wire data.
#include "tests/support/protobuf_builder.h"

namespace loadline::testing {

std::string varint_bytes(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

Proto& Proto::number(std::uint32_t field, std::uint64_t value) {
  bytes_ += varint_bytes(field << 3) + varint_bytes(value);
  return *this;
}

Proto& Proto::fixed32(std::uint32_t field, std::uint32_t value) {
  bytes_ += varint_bytes(field << 3 | 5);
  for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
  return *this;
}

Proto& Proto::fixed64(std::uint32_t field, std::uint64_t value) {
  bytes_ += varint_bytes(field << 3 | 1);
  for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
  return *this;
}

Proto& Proto::text(std::uint32_t field, std::string_view content) {
  bytes_ += varint_bytes(field << 3 | 2) + varint_bytes(content.size());
  bytes_ += content;
  return *this;
}

Proto& Proto::varints(std::uint32_t field, const std::vector<std::uint64_t>& values) {
  std::string run;
  for (const std::uint64_t value : values) run += varint_bytes(value);
  return text(field, run);
}

Proto& Proto::raw(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

}  // namespace loadline::testing
