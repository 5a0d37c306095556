// Reads weight bytes: the storages of a MetaGraph from its files.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/decoder.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace loadline {

// Opens each file at its first use and keeps it open. All members may be called from several threads. Files
// are opened by the paths in the graph, without a new check of where links end. A file whose size differs
// from the graph's gives Error{io}. A replacement by a file of the same size is not noticed.
class StorageReader {
 public:
  explicit StorageReader(MetaGraphPtr graph);

  const MetaGraph& graph() const { return *graph_; }

  // Fills `out` from byte `offset` of the decoded storage. Reading an encoded storage front to back decodes
  // it once; each step back restarts decoding at its beginning. Throws Error{usage} if the storage has no
  // file, Error{io} if the file cannot be read, and Error{malformed} if it does not decode.
  void read(StorageId storage, std::uint64_t offset, std::span<std::byte> out) const;
  // Throws Error{usage} if the storage does not have these bytes.
  void require_range(StorageId storage, std::uint64_t offset, std::uint64_t bytes) const;
  // The open file that holds the storage.
  const SourceFile& file_of(StorageId storage) const;

 private:
  void read_decoded(StorageId storage, std::uint64_t offset, std::span<std::byte> out) const;

  MetaGraphPtr graph_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<SourceFile>> files_;
  // the one storage being decoded
  mutable std::mutex decoder_mutex_;
  mutable StorageId decoded_{};
  mutable std::unique_ptr<Decoder> decoder_;
};

}  // namespace loadline
