// One buffer, front to back.
#include "exporters/writer/read_back.h"

#include "core/base/error.h"
#include "core/io/page_residency.h"
#include "core/io/source_file.h"
#include "core/io/xxh3.h"

#include <algorithm>
#include <vector>

namespace loadline {
namespace {

using Piece = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;

// Adds bytes [begin, end) of a file to a hash. `piece` gets them too, in order.
void hash_range(const SourceFile& file, std::uint64_t begin, std::uint64_t end, Xxh3& hash,
                const Piece& piece) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(1 << 20, end - begin)));
  for (std::uint64_t at = begin; at < end;) {
    const auto bytes =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - at)));
    file.read_at(at, bytes);
    hash.update(bytes);
    piece(at, bytes);
    at += bytes.size();
  }
}

}  // namespace

std::size_t matching_checkpoints(const std::string& path, std::span<const Checkpoint> checkpoints,
                                 Progress& progress, const Piece& pass) {
  const SourceFile file = SourceFile::open(path);
  drop_pages(file);
  Xxh3 hash;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    if (checkpoints[i].at > file.size()) return i;
    hash_range(file, at, checkpoints[i].at, hash,
               [&](std::uint64_t offset, std::span<const std::byte> bytes) {
                 progress.check_cancelled();
                 if (pass) pass(offset, bytes);
                 progress.add(bytes.size());
               });
    at = checkpoints[i].at;
    if (hash.digest() != checkpoints[i].xxh3) return i;
  }
  return checkpoints.size();
}

std::uint64_t file_hash(const std::string& path, const Progress& progress) {
  const SourceFile file = SourceFile::open(path);
  Xxh3 hash;
  hash_range(file, 0, file.size(), hash,
             [&](std::uint64_t, std::span<const std::byte>) { progress.check_cancelled(); });
  return hash.digest();
}

void check_range_read_back(const std::string& path, const std::string& target, std::uint64_t begin,
                           std::uint64_t end, std::uint64_t xxh3) {
  const SourceFile file = SourceFile::open(path);
  drop_pages(file);
  Xxh3 hash;
  hash_range(file, begin, end, hash, [](std::uint64_t, std::span<const std::byte>) {});
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
