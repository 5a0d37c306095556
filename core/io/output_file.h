// A file being written: reserved, filled by large writes, and made durable. It knows no name of its own.
#pragma once

#include "core/io/unique_fd.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace loadline {

// How bytes reach the disk. What was measured is in tests/bench/convert_bench.cpp.
enum class WritePolicy : std::uint8_t {
  cached,       // through the page cache, which keeps them
  drop_behind,  // through the page cache; pages are written out soon and dropped
  direct,       // past the page cache (O_DIRECT), where offset, size and memory are multiples of kDirectUnit
};

// Move-only. `path` is used in messages. One thread at a time.
class OutputFile {
 public:
  OutputFile(UniqueFd fd, std::string path) : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string& path() const { return path_; }
  int descriptor() const { return fd_.get(); }

  // Reserves disk blocks for exactly `bytes`, so that a full disk fails now and not at the end.
  // Throws Error{io}. File systems that cannot reserve are accepted.
  void preallocate(std::uint64_t bytes);
  // Sets the size without reserving blocks: unwritten ranges are holes that read as zero.
  void set_size(std::uint64_t bytes);
  // How later calls of write_at() write. File systems that refuse O_DIRECT get drop_behind.
  void set_policy(WritePolicy policy);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  // Makes the content durable.
  void sync();

 private:
  // Bytes between a write and the moment when its pages are dropped.
  static constexpr std::uint64_t kBehind = 32 << 20;

  void set_direct(bool direct);
  void write_behind(std::uint64_t offset, std::uint64_t bytes);

  std::string path_;
  UniqueFd fd_;
  WritePolicy policy_ = WritePolicy::cached;
  bool direct_ = false;        // the descriptor's state
  std::uint64_t dropped_ = 0;  // pages before this offset have been dropped
};

}  // namespace loadline
