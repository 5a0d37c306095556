// File pages that the device reads where they are (VK_EXT_external_memory_host).
#pragma once

#include "core/gpu/transfer_queue.h"
#include "core/io/source_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace loadline::gpu {

// A mapped range of a file, as a buffer that copies may read. It must not be destroyed while one does. The
// device reads the mapping itself: if the file becomes shorter meanwhile, a software device ends the process
// with SIGBUS; a GPU either has pinned the pages or fails the copy.
class ImportedPages {
 public:
  // Null if the device cannot import pages at all, was opened for shaders (the buffer has no address), or
  // refuses these. Throws Error{io} if they cannot be read.
  static std::unique_ptr<ImportedPages> make(const Device& device, const SourceFile& file,
                                             std::uint64_t offset, std::uint64_t bytes);

  const BufferRange& range() const { return range_; }
  std::uint64_t whole_bytes() const { return mapping_.bytes; }  // of the pages

 private:
  struct Mapping {
    Mapping(const SourceFile& file, std::uint64_t offset, std::uint64_t length);
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();
    void* base = nullptr;  // null if the file cannot be mapped there
    std::size_t bytes = 0;
  };
  ImportedPages(const SourceFile& file, std::uint64_t offset, std::uint64_t length)
      : mapping_(file, offset, length) {}
  bool bind(const Device& device);

  Mapping mapping_;  // unmapped last
  UniqueMemory memory_;
  UniqueBuffer buffer_;
  BufferRange range_;
};

// Whether the device reads pages of this file when it is told to copy them. Some drivers take the pages, and
// lose the device when it first uses them: a device of its own tries, with bytes at the beginning of the
// range. Throws Error{io} if the file cannot be read.
bool can_import_pages(const Device& device, const SourceFile& file, std::uint64_t offset,
                      std::uint64_t bytes);

}  // namespace loadline::gpu
