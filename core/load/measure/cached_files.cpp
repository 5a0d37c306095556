// Sums over the files behind storages.
#include "core/load/measure/cached_files.h"

#include "core/base/error.h"
#include "core/io/direct_file.h"
#include "core/io/file_system.h"
#include "core/io/page_residency.h"

namespace loadline {

std::vector<StorageId> one_of_each_file(const MetaGraph& graph) {
  std::vector<bool> seen(graph.files.size(), false);
  std::vector<StorageId> found;
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    if (storage.bytes == 0 || seen[index(storage.file)]) continue;
    seen[index(storage.file)] = true;
    found.push_back(StorageId{static_cast<std::uint32_t>(i)});
  }
  return found;
}

std::uint64_t file_bytes(const StorageReader& reader, const std::vector<StorageId>& files) {
  std::uint64_t bytes = 0;
  for (const StorageId id : files) bytes += reader.file_of(id).size();
  return bytes;
}

std::uint64_t cached_bytes(const StorageReader& reader, const std::vector<StorageId>& files) {
  std::uint64_t bytes = 0;
  for (const StorageId id : files) bytes += resident_bytes(reader.file_of(id));
  return bytes;
}

std::optional<std::uint64_t> bytes_read_from_cache(const StorageReader& reader,
                                                   const std::vector<StorageId>& files, FileReading reading) {
  std::uint64_t bytes = 0;
  for (const StorageId id : files) try {
      const SourceFile& file = reader.file_of(id);
      if (file_system_of(file.path()).memory) {
        bytes += file.size();
        continue;
      }
      if (!tells_residency(file)) return std::nullopt;
      const std::uint64_t held = resident_bytes(file);
      if (!reads_past_cache(reading, held, file.size()) || DirectFile::open(file) == nullptr) bytes += held;
    } catch (const Error&) {
      return std::nullopt;
    }
  return bytes;
}

}  // namespace loadline
