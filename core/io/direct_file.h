// Reads a file past the page cache.
#pragma once

#include "core/io/pages.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace loadline {

// May be used from several threads, each with a buffer of its own.
class DirectFile {
 public:
  // Null if the file's bytes are in memory, or if its file system cannot read past the cache.
  static std::unique_ptr<DirectFile> open(const SourceFile& file);

  // Fills `out` from byte `offset`, through `buffer`: its address and size are multiples of kDirectUnit, and
  // it at least 2 of them. Throws Error{io} if the file cannot be read, or has become shorter.
  void read_at(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> buffer) const;

 private:
  DirectFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

}  // namespace loadline
