// The header of an output file, with the metadata arrays that are copied from the source, front to back.
#pragma once

#include "core/graph/meta_graph.h"
#include "exporters/exporter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace loadline {

// A metadata array of the source as little-endian bytes, front to back in pieces. Throws Error{io}, and
// Error{malformed} if the file has changed since it was opened.
class ElementStream {
 public:
  ElementStream(const MetaGraph& source, const MetaArray& array);
  ~ElementStream();
  // The next piece; empty at the end. Valid until the next call.
  std::span<const std::byte> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The bytes [0, header_bytes(file)) of an output file. `file` and `source` must outlive it.
class HeaderStream {
 public:
  HeaderStream(const LayoutFile& file, const MetaGraph& source) : file_(file), source_(source) {}

  // Fills `out` with the next bytes. `out` must not reach past the end of the header.
  void read(std::span<std::byte> out);

 private:
  std::span<const std::byte> next_piece();

  const LayoutFile& file_;
  const MetaGraph& source_;
  std::uint64_t at_ = 0;       // bytes passed on, copies included
  std::size_t header_at_ = 0;  // of file_.header
  std::size_t copy_ = 0;       // the next of file_.copies
  std::unique_ptr<ElementStream> elements_;
  std::span<const std::byte> piece_;
};

}  // namespace loadline
