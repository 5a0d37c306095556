// What a pickled checkpoint holds: the storages it names, its tensors, its other values as metadata.
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

// A storage as its persistent ids describe it.
struct TorchStorage {
  PickleValue key;  // a text or a whole number
  TorchType type;
  bool untyped = false;
  std::uint64_t numel = 0;                                         // bytes when untyped
  std::uint64_t bytes() const { return numel * type.item_bytes; }  // fits
};

// A part of a storage, which legacy files name by persistent ids of their own.
struct TorchWindow {
  std::uint64_t offset = 0;  // in bytes
  std::uint64_t bytes = 0;
};

// What the persistent ids of a pickle say. There are as many as tensors: nothing is kept twice.
class TorchStorages {
 public:
  // In the order in which the pickle names them.
  const std::vector<TorchStorage>& storages() const { return storages_; }
  // What persistent id number `id` gives.
  std::uint32_t storage_of(std::uint32_t id) const { return storage_of_[id]; }
  TorchWindow window_of(std::uint32_t id) const;
  std::string key(const TorchStorage& storage) const { return key_text(storage.key); }
  std::optional<std::uint32_t> find(std::string_view key) const;
  // Frees what find() needs.
  void forget_keys() { by_key_ = NameIndex(); }
  // "" for what is no key.
  std::string key_text(PickleValue key) const;

 private:
  friend class TorchStorageCollector;
  explicit TorchStorages(const Pickle& pickle) : pickle_(&pickle) {}

  const Pickle* pickle_;
  std::vector<TorchStorage> storages_;
  std::vector<std::uint32_t> storage_of_;         // each persistent id
  std::map<std::uint32_t, TorchWindow> windows_;  // of those that are not whole storages
  NameIndex by_key_;
};

enum class TorchIds : std::uint8_t { zip, legacy };  // tuples of five, and of six with a view

// `pickle` must outlive it. Throws Error{malformed} for ids of another form and for a key with two types or
// sizes, Error{unsupported} for unknown classes and whole pickled modules.
TorchStorages torch_storages(const Pickle& pickle, const std::string& file, TorchIds ids);

// Adds every tensor that the pickle's value holds, named by its path ("model.layers.0.weight"), and scalars,
// strings and short lists of them as metadata. `placed` gives each of storages.storages() its place in the
// graph. What cannot be represented becomes a Note, or an Error{unsupported} when it holds tensors.
void add_torch_values(const Pickle& pickle, const TorchStorages& storages,
                      const std::vector<StorageId>& placed, MetaGraph& graph);

// What to say of storages that are called so and that no tensor uses; nothing if there are none.
std::vector<Note> unused_storages(const std::vector<std::string>& names);

// Puts storages in the order of their bytes and tensors in that of their storages. Writers keep to it mostly,
// and then nothing is moved.
void sort_by_place(MetaGraph& graph);

}  // namespace loadline
