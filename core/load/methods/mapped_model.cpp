// Maps, touches and unmaps files as views come and go.
#include "core/load/methods/mapped_model.h"

#include <utility>

namespace loadline {

MappedModel::MappedModel(MethodBuilder& b)
    : b_(b),
      files_(b.by_shard()),
      file_of_(b.graph().storages.size(), 0),
      mappings_(files_.size()),
      own_(b.graph().storages.size()),
      viewed_(b.graph().storages.size(), false) {
  for (std::size_t file = 0; file < files_.size(); ++file)
    for (const StorageId id : files_[file]) file_of_[index(id)] = file;
}

BlockId MappedModel::touch(StorageId id) {
  std::vector<BlockId>& touched = mappings_[file_of_[index(id)]].touched;
  touched.push_back(b_.load(Space::page_cache, id));
  return touched.back();
}

void MappedModel::view(StorageId id) {
  viewed_[index(id)] = true;
  ++mappings_[file_of_[index(id)]].views;
}

void MappedModel::close(std::size_t file) {
  if (mappings_[file].views == 0) b_.drop_all(std::exchange(mappings_[file].touched, {}));
}

void MappedModel::close() {
  for (std::size_t file = 0; file < files_.size(); ++file) close(file);
}

void MappedModel::to_device() {
  for (std::size_t file = 0; file < files_.size(); ++file) {
    for (const StorageId id : files_[file]) {
      const bool moves = b_.home(id) == Home::device;
      if (const auto block = own_[index(id)]; block && moves) {
        Block made = b_.plan().block(*block);
        made.space = Space::device;
        const BlockId moved = alloc(b_.plan(), std::move(made));
        b_.move(moved, *block);
        b_.drop(*block);
      }
      if (!viewed_[index(id)]) continue;
      if (!moves) {
        b_.view(id);
        continue;
      }
      const BlockId pages = touch(id);
      b_.move(b_.make(Space::device, id), pages);
      --mappings_[file].views;
    }
    close(file);
  }
}

}  // namespace loadline
