// Reads a pickled checkpoint: its storages, its tensors, and its other values as metadata.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/name_index.h"
#include "importers/torch/types.h"
#include "importers/wire/pickle.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// A storage as described by its persistent ids.
struct TorchStorage {
  PickleValue key;  // a text or a whole number
  TorchType type;
  bool untyped = false;
  std::uint64_t numel = 0;                                         // bytes when untyped
  std::uint64_t bytes() const { return numel * type.item_bytes; }  // checked: no overflow
};

// A part of a storage. In legacy files a part can have its own persistent id.
struct TorchWindow {
  std::uint64_t offset = 0;  // in bytes
  std::uint64_t bytes = 0;
};

// The storages behind the persistent ids of a pickle. There can be as many ids as tensors, so nothing is
// stored twice.
class TorchStorages {
 public:
  // In the order in which the pickle names them.
  const std::vector<TorchStorage>& storages() const { return storages_; }
  // Position in storages() of the storage that persistent id number `id` names.
  std::uint32_t storage_of(std::uint32_t id) const { return storage_of_[id]; }
  TorchWindow window_of(std::uint32_t id) const;
  std::string key(const TorchStorage& storage) const { return key_text(storage.key); }
  std::optional<std::uint32_t> find(std::string_view key) const;
  // Frees the index of find(), which must not be called afterwards.
  void forget_keys() { by_key_ = NameIndex(); }
  // A key as text; "" if the value is not a key.
  std::string key_text(PickleValue key) const;

 private:
  friend class TorchStorageCollector;
  explicit TorchStorages(const Pickle& pickle) : pickle_(&pickle) {}

  const Pickle* pickle_;
  std::vector<TorchStorage> storages_;
  std::vector<std::uint32_t> storage_of_;         // by persistent id
  std::map<std::uint32_t, TorchWindow> windows_;  // by persistent id, for parts of storages only
  NameIndex by_key_;
};

enum class TorchIds : std::uint8_t { zip, legacy };  // ids of five items; ids of six, the last one a view

// `pickle` must outlive the result. Throws Error{malformed} for ids of another form or a key with two types
// or sizes, and Error{unsupported} for unknown storage classes and whole pickled modules.
TorchStorages torch_storages(const Pickle& pickle, const std::string& file, TorchIds ids);

// Adds every tensor in the pickle's value, named by its path ("model.layers.0.weight"). Scalars, strings and
// short lists of them become metadata. `placed` maps each of storages.storages() to its storage in the graph.
// A value that cannot be represented becomes a Note, or an Error{unsupported} if it holds tensors.
void add_torch_values(const Pickle& pickle, const TorchStorages& storages,
                      const std::vector<StorageId>& placed, MetaGraph& graph);

// The notes about storages, given by name, that no tensor uses; none for an empty list.
std::vector<Note> unused_storages(const std::vector<std::string>& names);

// Sorts storages by file position, and tensors by storage. Most files are in this order already; then nothing
// moves.
void sort_by_place(MetaGraph& graph);

}  // namespace loadline
