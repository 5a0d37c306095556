// Reads protobuf wire data field by field, front to back, without reading skipped bytes.
#pragma once

#include "core/base/error.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace loadline::io {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

constexpr std::uint32_t wire_tag(std::uint32_t number, WireType type) {
  return number << 3 | static_cast<std::uint32_t>(type);
}

struct WireField {
  std::uint32_t tag = 0;     // wire_tag(number, type), for a switch over known fields
  std::uint64_t at = 0;      // absolute file offset of the field's first byte
  std::uint64_t value = 0;   // of a varint or a fixed-size number
  std::uint64_t offset = 0;  // absolute file offset of a length-delimited field's content
  std::uint64_t bytes = 0;   // size of that content

  std::uint32_t number() const { return tag >> 3; }
  WireType type() const { return static_cast<WireType>(tag & 7); }
  std::uint64_t end() const { return offset + bytes; }
};

// Walks through the message that fills [begin, end) of a file, which must outlive the reader. Throws
// Error{malformed} naming the file and the absolute byte for varints that are cut off or over 10 bytes, field
// numbers out of range, groups, wire types 6 and 7, and lengths beyond the end of the enclosing message.
class WireReader {
 public:
  // Throws Error{limit} for a range of 2^31 bytes or more, which protobuf does not allow.
  WireReader(const SourceFile& file, std::uint64_t begin, std::uint64_t end);
  ~WireReader();
  WireReader(const WireReader&) = delete;
  WireReader& operator=(const WireReader&) = delete;

  // The next field of the current message; nothing at its end. The following call skips the content of a
  // length-delimited field unless enter() or text() has taken it.
  std::optional<WireField> next();
  // Enters the message or packed run inside `field`, which must be the last result of next(). Throws
  // Error{limit} beyond kMostDepth levels, as protobuf's own readers do.
  void enter(const WireField& field);
  // Leaves the message or run that enter() entered, skipping its unread rest.
  void leave();

  // The content of the last result of next(). Throws Error{limit} above `most` bytes; `what` names the field
  // in the message.
  std::string text(const WireField& field, std::uint64_t most, std::string_view what);
  // Inside a packed run of varints.
  bool at_end() const;
  std::uint64_t varint();

  template <typename... Values>
  Error malformed(std::uint64_t byte, fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = byte}, detail, values...);
  }

  static constexpr std::size_t kMostDepth = 100;

 private:
  struct State;
  const SourceFile& file_;
  std::unique_ptr<State> state_;
};

}  // namespace loadline::io
