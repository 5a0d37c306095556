// One buffer, front to back.
#include "exporters/writer/read_back.h"

#include "core/base/error.h"
#include "core/base/xxh3.h"
#include "core/io/page_residency.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <vector>

namespace loadline {
namespace {

constexpr std::size_t kBuffer = 1 << 20;

}  // namespace

std::size_t matching_checkpoints(
    const std::string& path, std::span<const Checkpoint> checkpoints, Progress& progress,
    const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& pass) {
  const SourceFile file = SourceFile::open(path);
  drop_pages(file);
  std::vector<std::byte> buffer(kBuffer);
  Xxh3 hash;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    if (checkpoints[i].at > file.size()) return i;
    while (at < checkpoints[i].at) {
      progress.check_cancelled();
      const auto bytes = std::span(buffer).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(kBuffer, checkpoints[i].at - at)));
      file.read_at(at, bytes);
      hash.update(bytes);
      if (pass) pass(at, bytes);
      at += bytes.size();
      progress.add(bytes.size());
    }
    if (hash.digest() != checkpoints[i].xxh3) return i;
  }
  return checkpoints.size();
}

std::uint64_t file_hash(const std::string& path, const Progress& progress) {
  const SourceFile file = SourceFile::open(path);
  std::vector<std::byte> buffer(kBuffer);
  Xxh3 hash;
  for (std::uint64_t at = 0; at < file.size();) {
    progress.check_cancelled();
    const auto bytes =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(kBuffer, file.size() - at)));
    file.read_at(at, bytes);
    hash.update(bytes);
    at += bytes.size();
  }
  return hash.digest();
}

void check_range_read_back(const std::string& path, const std::string& target, std::uint64_t begin,
                           std::uint64_t end, std::uint64_t xxh3) {
  const SourceFile file = SourceFile::open(path);
  drop_pages(file);
  std::vector<std::byte> buffer(kBuffer);
  Xxh3 hash;
  for (std::uint64_t at = begin; at < end;) {
    const auto bytes =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(kBuffer, end - at)));
    file.read_at(at, bytes);
    hash.update(bytes);
    at += bytes.size();
  }
  if (hash.digest() != xxh3)
    throw Error(
        ErrorCode::io, {.file = target, .byte = begin},
        "{} bytes read back differently from what was written (hash {:016x}, now {:016x}); the disk or "
        "memory is faulty",
        end - begin, xxh3, hash.digest());
}

void check_read_back(const std::string& path, const std::string& target, const Checkpoint& whole,
                     Progress& progress) {
  if (SourceFile::open(path).size() != whole.at || matching_checkpoints(path, {&whole, 1}, progress) != 1)
    throw Error(ErrorCode::io, {.file = target},
                "reads back differently from what was written (hash {:016x}); the disk or memory is faulty",
                whole.xxh3);
}

}  // namespace loadline
