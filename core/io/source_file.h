// One open input, read by ranges; and a bounds-checked reader of its numbers and strings, front to back.
#pragma once

#include "core/base/error.h"
#include "core/io/file_system.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace loadline::io {

// --- The ways of reading files that a user can choose from.

// How bytes come from a file.
enum class FileReading : std::uint8_t {
  cached,  // through the page cache
  direct,  // past it, where the file system can
  cold,    // past it for files of which the cache holds less than half
};

struct FileReads {
  unsigned threads = 0;  // 0: as many as cores that are free
  FileReading reading = FileReading::cached;
  bool operator==(const FileReads&) const = default;
};

// --- One open input: a regular file read with pread, or bytes in memory. It is never a mapping: a file that
// shrinks while it is read gives an Error instead of SIGBUS.

// Move-only; read_at may be called from several threads at once.
class SourceFile {
 public:
  // Throws Error{io} if the file cannot be opened and Error{unsupported} if it is not a regular file.
  static SourceFile open(const std::string& path);
  // For tests and fuzzers: the same interface over bytes in memory. `path` is used in messages.
  static SourceFile from_memory(std::string path, std::vector<std::byte> bytes);
  // Takes over an open descriptor; `path` is used in messages.
  static SourceFile adopt(UniqueFd fd, std::string path);
  // The range [offset, offset + bytes) as a separate SourceFile, for an archive inside an archive. `path` is
  // used in messages. Throws Error{malformed} for a range past the end, and Error{io}.
  SourceFile part(std::string path, std::uint64_t offset, std::uint64_t bytes) const;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // The descriptor, or -1 for bytes in memory.
  int descriptor() const { return fd_.get(); }

  // Fills `out` from byte `offset`. Throws Error{malformed} for a range past the end, and Error{io} if the
  // file has become shorter or cannot be read.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  // Asks the system to read the range ahead, without waiting for it.
  void will_read(std::uint64_t offset, std::uint64_t bytes) const;
  // False if the range is known to lie in a hole of a sparse file, where nothing was ever written and zeros
  // are read.
  bool has_data(std::uint64_t offset, std::uint64_t bytes) const;
  // Bytes [offset, offset + bytes) as a string. Throws as read_at does.
  std::string text_at(std::uint64_t offset, std::uint64_t bytes) const;

  // At most `most` bytes from the start, fewer if the file is shorter.
  std::string head(std::size_t most) const { return text_at(0, std::min<std::uint64_t>(most, size_)); }

 private:
  SourceFile() = default;
  std::string path_;
  std::uint64_t size_ = 0;
  std::uint64_t base_ = 0;  // offset of byte 0 in the descriptor's file
  UniqueFd fd_;
  std::vector<std::byte> memory_;
};

// What to throw where mapped pages of the file could not be made resident. `number`: errno.
Error mapped_read_error(const SourceFile& file, int number);

// --- A bounds-checked reader of numbers and strings in a range of a file, front to back.

// Reads ahead into its own buffer (at most kBufferBytes), so that many small reads cost few system calls. A
// read past the range throws Error{malformed} naming the file, the byte and both numbers. `what` names the
// field in messages. The file must outlive the cursor.
class Cursor {
 public:
  // The range [begin, end) of the file; an `end` beyond the file means the file's end.
  Cursor(const SourceFile& file, std::uint64_t begin, std::uint64_t end);
  explicit Cursor(const SourceFile& file) : Cursor(file, 0, file.size()) {}

  // Numbers are little-endian unless set otherwise.
  void set_big_endian(bool big_endian) { big_endian_ = big_endian; }

  std::uint64_t at() const { return at_; }
  std::uint64_t end() const { return end_; }
  std::uint64_t remaining() const { return end_ - at_; }

  template <typename T>
  T read(std::string_view what) {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8);
    if (!in_buffer(sizeof(T))) fetch(sizeof(T), what);
    std::uint64_t raw = 0;
    std::memcpy(&raw, buffer_.data() + (at_ - buffer_at_), sizeof(T));
    if (big_endian_ && sizeof(T) > 1) raw = __builtin_bswap64(raw) >> (64 - 8 * sizeof(T));
    at_ += sizeof(T);
    if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
    else if constexpr (std::is_same_v<T, double>)
      return std::bit_cast<double>(raw);
    else
      return static_cast<T>(raw);
  }
  // The next `bytes` bytes; Error{limit} above `most`.
  std::string read_text(std::uint64_t bytes, std::uint64_t most, std::string_view what);
  void read_bytes(std::span<std::byte> out, std::string_view what);
  // Steps over `bytes` bytes without reading them.
  void skip(std::uint64_t bytes, std::string_view what) {
    if (bytes > end_ - at_) fail_past_end(bytes, what);
    at_ += bytes;
  }

  // Makes an Error{malformed} that names this file and `byte`.
  template <typename... Values>
  Error malformed(std::uint64_t byte, fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .byte = byte}, detail, values...);
  }

  static constexpr std::size_t kBufferBytes = 128 << 10;

 private:
  // Whether the next `bytes` bytes lie in the range and in the buffer.
  bool in_buffer(std::size_t bytes) const {
    return bytes <= end_ - at_ && at_ >= buffer_at_ && at_ - buffer_at_ <= buffered_ &&
           buffered_ - (at_ - buffer_at_) >= bytes;
  }
  // Reads the next `bytes` bytes into the buffer, or throws.
  void fetch(std::size_t bytes, std::string_view what);
  [[noreturn]] void fail_past_end(std::uint64_t bytes, std::string_view what) const;

  const SourceFile& file_;
  std::uint64_t at_;
  std::uint64_t end_;
  bool big_endian_ = false;
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_at_ = 0;  // in the file
  std::size_t buffered_ = 0;     // valid bytes of it
  std::size_t ahead_ = 4096;     // bytes that the next fill reads; grows while reading goes on
};

}  // namespace loadline::io
