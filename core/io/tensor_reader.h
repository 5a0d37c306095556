// Reads the bytes of a tensor in C order, even if it is strided.
#pragma once

#include "core/io/storage_reader.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace loadline {

// Fills `out` with bytes of a tensor, in C order, from byte `offset` on.
using ReadTensor = std::function<void(TensorId tensor, std::uint64_t offset, std::span<std::byte> out)>;

// May be called from several threads. `storages` must outlive it.
class TensorReader {
 public:
  explicit TensorReader(const StorageReader& storages) : storages_(storages) {}

  // Fills `out` from byte `offset` of the tensor as if it were contiguous. A strided tensor is gathered
  // through a buffer of at most kMostGathered bytes; a larger `out` means fewer and longer reads. Throws
  // Error{unsupported} for a strided tensor of a sub-byte or block type, and as StorageReader::read does.
  void read(TensorId tensor, std::uint64_t offset, std::span<std::byte> out) const;
  // The same for any view of the graph's storages; it need not be a tensor of the graph.
  void read(const Tensor& tensor, std::uint64_t offset, std::span<std::byte> out) const;

  static constexpr std::uint64_t kMostGathered = 4 << 20;

 private:
  const StorageReader& storages_;
};

}  // namespace loadline
