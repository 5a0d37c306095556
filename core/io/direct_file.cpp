// Whole units are read into the buffer, and the wanted part copied out of it.
#include "core/io/direct_file.h"

#include "core/base/error.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace loadline {

std::unique_ptr<DirectFile> DirectFile::open(const SourceFile& file) {
  if (file.descriptor() < 0) return nullptr;
  // the same file, whatever its path names by now
  UniqueFd fd(
      ::open(fmt::format("/proc/self/fd/{}", file.descriptor()).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  if (!fd) return nullptr;
  return std::unique_ptr<DirectFile>(new DirectFile(std::move(fd), file.path()));
}

void DirectFile::read_at(std::uint64_t offset, std::span<std::byte> out, std::span<std::byte> buffer) const {
  assert(buffer.size() >= 2 * kDirectUnit && buffer.size() % kDirectUnit == 0);
  assert(reinterpret_cast<std::uintptr_t>(buffer.data()) % kDirectUnit == 0);
  while (!out.empty()) {
    const std::uint64_t before = offset % kDirectUnit, begin = offset - before;
    const std::uint64_t wanted = (before + out.size() + kDirectUnit - 1) / kDirectUnit * kDirectUnit;
    const ssize_t got = ::pread(fd_.get(), buffer.data(), std::min<std::uint64_t>(wanted, buffer.size()),
                                static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error(path_, fmt::format("read {} bytes at {}", out.size(), offset), errno);
    const auto read = static_cast<std::uint64_t>(got);
    if (read <= before)
      throw Error(ErrorCode::io, {.file = path_, .byte = offset},
                  "the file became shorter while it was read");
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(read - before, out.size()));
    std::memcpy(out.data(), buffer.data() + before, bytes);
    offset += bytes;
    out = out.subspan(bytes);
  }
}

}  // namespace loadline
