// A model on the host whose parameters are views of mapped files, or blocks of their own; for methods only.
#pragma once

#include "core/load/methods/builder.h"

#include <optional>
#include <vector>

namespace loadline {

// Keeps account of files that are mapped and touched tensor by tensor. Pages that were touched stay resident
// until their file is unmapped: once it is closed and no parameter is a view of it any longer.
class MappedModel {
 public:
  explicit MappedModel(MethodBuilder& b);

  // The files or shards, in load order.
  const std::vector<StorageOrder>& files() const { return files_; }
  // Reads the pages of a weight.
  BlockId touch(StorageId id);
  // The parameter is a view of the mapping; nothing is read yet.
  void view(StorageId id);
  // The parameter is a block in host memory, such as a cast copy.
  void own(StorageId id, BlockId block) { own_[index(id)] = block; }
  // Closes one file, by its position, or all of them.
  void close(std::size_t file);
  void close();
  // Module.to(device), in the order of the files, for parameters that belong on the device; closes the files.
  // Other views remain views.
  void to_device();

 private:
  struct Mapping {
    std::vector<BlockId> touched = {};
    std::size_t views = 0;
  };

  MethodBuilder& b_;
  const std::vector<StorageOrder> files_;
  std::vector<std::size_t> file_of_;  // by storage
  std::vector<Mapping> mappings_;     // by file
  std::vector<std::optional<BlockId>> own_;
  std::vector<bool> viewed_;
};

}  // namespace loadline
