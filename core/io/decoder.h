// Bytes of a storage that does not lie plainly in its file: decoded front to back.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace loadline {

// Gives the decoded bytes in order, in bounded memory. Errors name the file and the byte.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Fills `out` with the next bytes. Throws Error{malformed} if the encoded bytes end before, or are no
  // valid encoding.
  virtual void read(std::span<std::byte> out) = 0;
  // Bytes given so far.
  std::uint64_t at() const { return at_; }

 protected:
  std::uint64_t at_ = 0;
};

// For deflate and protobuf; `file` must outlive it. Throws Error{unsupported} for other encodings.
std::unique_ptr<Decoder> make_decoder(const SourceFile& file, const Storage& storage);

// byte_swapped: fills `out` from byte `offset` of the storage, at any offset.
void read_swapped(const SourceFile& file, const Storage& storage, std::uint64_t offset,
                  std::span<std::byte> out);

}  // namespace loadline
