// Reads what a MetaGraph describes: elements of metadata arrays, bytes of storages (decoded), tensors in C
// order.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace loadline::io {

// --- Reads elements of metadata arrays from their file on demand.

// Longer string elements are cut at this many bytes.
inline constexpr std::uint64_t kMostElementText = 1 << 20;

// Reads a bool or a number; another `type` is a caller's bug. Throws Error{malformed} past the cursor's end.
graph::MetaValue read_meta_number(Cursor& cursor, graph::MetaType type);

// Reads an array's elements front to back, each once.
class MetaArrayReader {
 public:
  // Opens the file by the path in the graph. Throws Error{io}.
  MetaArrayReader(const graph::MetaGraph& graph, const graph::MetaArray& array);
  // Of a file that is open already, or that is in memory. Throws Error{io | malformed}.
  MetaArrayReader(const SourceFile& file, const graph::MetaArray& array);
  MetaArrayReader(const MetaArrayReader&) = delete;
  MetaArrayReader& operator=(const MetaArrayReader&) = delete;

  std::uint64_t at() const { return at_; }  // the index of the next element
  std::uint64_t remaining() const { return array_.count - at_; }
  std::uint64_t bytes_passed() const { return cursor_.at() - array_.offset; }
  // Steps over at most `count` elements. Strings are stepped over one by one.
  void skip(std::uint64_t count);
  // The next element, of the array's element type. Call it only while remaining() > 0. Throws
  // Error{io | malformed}.
  graph::MetaValue next();

 private:
  MetaArrayReader(SourceFile&& file, const graph::MetaArray& array);

  graph::MetaArray array_;
  SourceFile file_;
  Cursor cursor_;
  std::uint64_t at_ = 0;
};

// Elements [first, first + count) in order, fewer at the array's end. Throws as MetaArrayReader does.
std::vector<graph::MetaValue> read_meta_array(const graph::MetaGraph& graph, const graph::MetaArray& array,
                                              std::uint64_t first, std::uint64_t count);

// --- Decodes storages whose bytes are encoded in their file (deflate, protobuf, byte-swapped).

// Returns the decoded bytes front to back, in bounded memory. Errors name the file and the byte.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Fills `out` with the next bytes. Throws Error{malformed} if the encoded bytes end too early or are not a
  // valid encoding.
  virtual void read(std::span<std::byte> out) = 0;
  // Decoded bytes returned so far.
  std::uint64_t at() const { return at_; }

 protected:
  std::uint64_t at_ = 0;
};

// A decoder for deflate or protobuf. `file` must outlive it. Throws Error{unsupported} for other encodings.
std::unique_ptr<Decoder> make_decoder(const SourceFile& file, const graph::Storage& storage);

// For byte_swapped storages: fills `out` from byte `offset` of the storage. Any offset is allowed.
void read_swapped(const SourceFile& file, const graph::Storage& storage, std::uint64_t offset,
                  std::span<std::byte> out);

// --- Reads weight bytes: the storages of a MetaGraph from its files.

// Opens each file at its first use and keeps it open. All members may be called from several threads. Files
// are opened by the paths in the graph, without a new check of where links end. A file whose size differs
// from the graph's gives Error{io}. A replacement by a file of the same size is not noticed.
class StorageReader {
 public:
  explicit StorageReader(graph::MetaGraphPtr graph);

  const graph::MetaGraph& graph() const { return *graph_; }

  // Fills `out` from byte `offset` of the decoded storage. Reading an encoded storage front to back decodes
  // it once; each step back restarts decoding at its beginning. Throws Error{usage} if the storage has no
  // file, Error{io} if the file cannot be read, and Error{malformed} if it does not decode.
  void read(graph::StorageId storage, std::uint64_t offset, std::span<std::byte> out) const;
  // Throws Error{usage} if the storage does not have these bytes.
  void require_range(graph::StorageId storage, std::uint64_t offset, std::uint64_t bytes) const;
  // The open file that holds the storage.
  const SourceFile& file_of(graph::StorageId storage) const;

 private:
  void read_decoded(graph::StorageId storage, std::uint64_t offset, std::span<std::byte> out) const;

  graph::MetaGraphPtr graph_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<SourceFile>> files_;
  // the one storage being decoded
  mutable std::mutex decoder_mutex_;
  mutable graph::StorageId decoded_{};
  mutable std::unique_ptr<Decoder> decoder_;
};

// --- Reads the bytes of a tensor in C order, even if it is strided.

// Fills `out` with bytes of a tensor, in C order, from byte `offset` on.
using ReadTensor =
    std::function<void(graph::TensorId tensor, std::uint64_t offset, std::span<std::byte> out)>;

// May be called from several threads. `storages` must outlive it.
class TensorReader {
 public:
  explicit TensorReader(const StorageReader& storages) : storages_(storages) {}

  // Fills `out` from byte `offset` of the tensor as if it were contiguous. A strided tensor is gathered
  // through a buffer of at most kMostGathered bytes; a larger `out` means fewer and longer reads. Throws
  // Error{unsupported} for a strided tensor of a sub-byte or block type, and as StorageReader::read does.
  void read(graph::TensorId tensor, std::uint64_t offset, std::span<std::byte> out) const;
  // The same for any view of the graph's storages; it need not be a tensor of the graph.
  void read(const graph::Tensor& tensor, std::uint64_t offset, std::span<std::byte> out) const;

  static constexpr std::uint64_t kMostGathered = 4 << 20;

 private:
  const StorageReader& storages_;
};

}  // namespace loadline::io
