// What a pickled checkpoint holds: the storages it names, its tensors, its other values as metadata.
#pragma once

#include "core/graph/meta_graph.h"
#include "importers/pickle.h"
#include "importers/torch_types.h"

#include <cstdint>
#include <string>
#include <vector>

namespace loadline {

// A storage as its persistent ids describe it.
struct TorchStorage {
  std::string key;
  TorchType type;
  bool untyped = false;
  std::uint64_t numel = 0;  // bytes when untyped
  std::uint64_t bytes = 0;
};

// What one persistent id gives: a storage, or in legacy files a window of one.
struct TorchStorageView {
  std::uint32_t storage = 0;  // position in TorchStorages::storages
  std::uint64_t offset = 0;   // in bytes
  std::uint64_t bytes = 0;
};

struct TorchStorages {
  std::vector<TorchStorage> storages;   // in the order in which the pickle names them
  std::vector<TorchStorageView> views;  // one per persistent id of the pickle
};

enum class TorchIds : std::uint8_t { zip, legacy };  // tuples of five, and of six with a view

// Throws Error{malformed} for ids of another form and for a key with two types or sizes,
// Error{unsupported} for unknown classes and whole pickled modules.
TorchStorages torch_storages(const Pickle& pickle, const std::string& file, TorchIds ids);

// Adds every tensor that the pickle's value holds, named by its path ("model.layers.0.weight"), and scalars,
// strings and short lists of them as metadata. `placed` gives each of storages.storages its place in the
// graph. What cannot be represented becomes a Note, or an Error{unsupported} when it holds tensors.
void add_torch_values(const Pickle& pickle, const TorchStorages& storages,
                      const std::vector<StorageId>& placed, MetaGraph& graph);

// Puts storages in the order of their bytes and tensors in that of their storages.
void sort_by_place(MetaGraph& graph);

}  // namespace loadline
