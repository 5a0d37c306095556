// Protobuf wire data, field by field, right or wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::testing {

// Fields in the order of the calls. Converts to its bytes.
class Proto {
 public:
  Proto& number(std::uint32_t field, std::uint64_t value);
  Proto& fixed32(std::uint32_t field, std::uint32_t value);
  Proto& fixed64(std::uint32_t field, std::uint64_t value);
  // Text, a message or a packed run.
  Proto& text(std::uint32_t field, std::string_view content);
  Proto& varints(std::uint32_t field, const std::vector<std::uint64_t>& values);
  // Bytes as they are.
  Proto& raw(std::string_view bytes);

  const std::string& bytes() const { return bytes_; }
  operator std::string_view() const { return bytes_; }
  operator const std::string&() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string varint_bytes(std::uint64_t value);

}  // namespace loadline::testing
