// Reads protobuf wire data field by field, front to back, without touching the bytes that are skipped.
#pragma once

#include "core/base/error.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace loadline {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

constexpr std::uint32_t wire_tag(std::uint32_t number, WireType type) {
  return number << 3 | static_cast<std::uint32_t>(type);
}

struct WireField {
  std::uint32_t tag = 0;     // wire_tag(number, type): what a switch over known fields compares
  std::uint64_t at = 0;      // of its first byte, absolute, in the file
  std::uint64_t value = 0;   // of a varint or a fixed number
  std::uint64_t offset = 0;  // of what a length-delimited field holds, absolute, in the file
  std::uint64_t bytes = 0;

  std::uint32_t number() const { return tag >> 3; }
  WireType type() const { return static_cast<WireType>(tag & 7); }
  std::uint64_t end() const { return offset + bytes; }
};

// A walk through the message that fills [begin, end) of a file, which must outlive it. Throws
// Error{malformed}, naming the file and the absolute byte, for varints over 10 bytes or cut off, field
// numbers out of range, groups, wire types 6 and 7, and lengths over what remains of the enclosing message.
class WireReader {
 public:
  // Error{limit} for a range of 2^31 bytes or more, which is past what protobuf allows.
  WireReader(const SourceFile& file, std::uint64_t begin, std::uint64_t end);
  ~WireReader();
  WireReader(const WireReader&) = delete;
  WireReader& operator=(const WireReader&) = delete;

  // The next field of the current message; nothing at its end. What a length-delimited field holds is
  // stepped over by the following call unless enter() or text() took it.
  std::optional<WireField> next();
  // Goes into the message, or the packed run, that `field`, the last one that next() gave, holds.
  // Error{limit} beyond kMostDepth levels: protobuf's own readers refuse those.
  void enter(const WireField& field);
  // Steps out of what enter() went into, over whatever was not read of it.
  void leave();

  // The bytes of the field that next() gave last. Error{limit} above `most`; `what` names it there.
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

}  // namespace loadline
