// Decodes storages whose bytes are encoded in their file (deflate, protobuf, byte-swapped).
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace loadline {

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
std::unique_ptr<Decoder> make_decoder(const SourceFile& file, const Storage& storage);

// For byte_swapped storages: fills `out` from byte `offset` of the storage. Any offset is allowed.
void read_swapped(const SourceFile& file, const Storage& storage, std::uint64_t offset,
                  std::span<std::byte> out);

}  // namespace loadline
