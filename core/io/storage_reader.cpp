// Opens the files of a graph's storages at their first use.
#include "core/io/storage_reader.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"

#include <algorithm>
#include <array>

namespace loadline {

StorageReader::StorageReader(MetaGraphPtr graph) : graph_(std::move(graph)), files_(graph_->files.size()) {}

const SourceFile& StorageReader::file_of(StorageId id) const {
  const Storage& storage = graph_->storage(id);
  if (storage.file == kNoFile)
    throw Error(ErrorCode::usage, "this model has shapes only: no file holds its weights");
  const ModelFile& file = graph_->files[index(storage.file)];
  const std::lock_guard lock(mutex_);
  std::unique_ptr<SourceFile>& slot = files_[index(storage.file)];
  if (!slot) {
    auto opened = std::make_unique<SourceFile>(SourceFile::open(file.path));
    if (opened->size() != file.bytes)
      throw Error(ErrorCode::io, {.file = file.path}, "has {} bytes now, it had {} when the model was opened",
                  opened->size(), file.bytes);
    slot = std::move(opened);
  }
  return *slot;
}

void StorageReader::require_range(StorageId id, std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t most = graph_->storage(id).bytes;
  if (!range_fits(offset, bytes, most))
    throw Error(ErrorCode::usage, "reads {} bytes at {} of a storage of {}", bytes, offset, most);
}

void StorageReader::read(StorageId id, std::uint64_t offset, std::span<std::byte> out) const {
  const Storage& storage = graph_->storage(id);
  require_range(id, offset, out.size());
  switch (storage.encoding) {
    case Encoding::plain:
      return file_of(id).read_at(storage.offset + offset, out);
    case Encoding::byte_swapped:
      return read_swapped(file_of(id), storage, offset, out);
    default:
      return read_decoded(id, offset, out);
  }
}

void StorageReader::read_decoded(StorageId id, std::uint64_t offset, std::span<std::byte> out) const {
  const SourceFile& file = file_of(id);
  const std::lock_guard lock(decoder_mutex_);
  if (!decoder_ || decoded_ != id || decoder_->at() > offset) {
    decoder_ = make_decoder(file, graph_->storage(id));
    decoded_ = id;
  }
  try {
    std::array<std::byte, 16 << 10> passed = {};
    while (decoder_->at() < offset)
      decoder_->read(std::span(passed).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(passed.size(), offset - decoder_->at()))));
    decoder_->read(out);
  } catch (...) {
    decoder_.reset();  // it stopped in the middle of the storage
    throw;
  }
}

}  // namespace loadline
