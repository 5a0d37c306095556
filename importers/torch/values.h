// A pickled checkpoint: element types, storages, tensors, other values.
#pragma once

#include "core/base/error.h"
#include "core/graph/dtype_and_shape.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "importers/wire/pickle.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {

// --- Torch's names for element types and storage classes.

struct TorchType {
  graph::DType dtype = graph::DType::opaque;
  std::uint8_t item_bytes = 0;  // bytes of one element as torch counts elements; 0: unknown
};

// The type named "torch.float32", "torch.float8_e4m3fn" and so on; opaque if the dtype table has no row for
// it. Nothing if the name is not in the module torch.
std::optional<TorchType> torch_dtype(std::string_view global);
// The element type of "torch.FloatStorage", "torch.cuda.HalfStorage" and so on; UntypedStorage has elements
// of one byte. Nothing if the name is not a storage class.
std::optional<TorchType> torch_storage_class(std::string_view global);
bool is_untyped_storage(std::string_view global);

// --- Reads a pickled checkpoint: its storages, its tensors, and its other values as metadata.

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
  void forget_keys() { by_key_ = graph::NameIndex(); }
  // A key as text; "" if the value is not a key.
  std::string key_text(PickleValue key) const;

 private:
  friend class TorchStorageCollector;
  explicit TorchStorages(const Pickle& pickle) : pickle_(&pickle) {}

  const Pickle* pickle_;
  std::vector<TorchStorage> storages_;
  std::vector<std::uint32_t> storage_of_;         // by persistent id
  std::map<std::uint32_t, TorchWindow> windows_;  // by persistent id, for parts of storages only
  graph::NameIndex by_key_;
};

enum class TorchIds : std::uint8_t { zip, legacy };  // ids of five items; ids of six, the last one a view

// `pickle` must outlive the result. Throws Error{malformed} for ids of another form or a key with two types
// or sizes, and Error{unsupported} for unknown storage classes and whole pickled modules.
TorchStorages torch_storages(const Pickle& pickle, const std::string& file, TorchIds ids);

// Adds every tensor in the pickle's value, named by its path ("model.layers.0.weight"). Scalars, strings and
// short lists of them become metadata. `placed` maps each of storages.storages() to its storage in the graph.
// A value that cannot be represented becomes a Note, or an Error{unsupported} if it holds tensors.
void add_torch_values(const Pickle& pickle, const TorchStorages& storages,
                      const std::vector<graph::StorageId>& placed, graph::MetaGraph& graph);

// The notes about storages, given by name, that no tensor uses; none for an empty list.
std::vector<graph::Note> unused_storages(const std::vector<std::string>& names);

// Sorts storages by file position, and tensors by storage. Most files are in this order already; then nothing
// moves. Ends with bind_quantized().
void sort_by_place(graph::MetaGraph& graph);

// Finds the parts of the graph's packed weights, which are torch's quantized tensors, by their names: codes
// "w", scales "w.scale", zeros "w.zero_point". A weight without all of them becomes a note of severity error;
// a second one of a name is taken out.
void bind_quantized(graph::MetaGraph& graph);

// --- Makes a tensor from the arguments of torch's rebuild functions.

// The bytes of a storage that a tensor may use.
struct StorageWindow {
  graph::StorageId storage{};
  std::uint64_t offset = 0;  // from the start of the storage
  std::uint64_t bytes = 0;
};

// Completes a tensor whose name, shape and strides are set, at element `offset` of the window: sets its
// dtype, storage and byte offset, and clears the strides if it is contiguous. Throws Error{malformed} naming
// the tensor if it needs more bytes than the window has.
graph::Tensor place_tensor(graph::Tensor tensor, TorchType type, std::uint64_t offset,
                           const StorageWindow& window, const std::string& file);

// Reads the arguments of rebuild functions and checks them against the storage. Every Error names the tensor.
class TorchRebuilder {
 public:
  TorchRebuilder(const Pickle& pickle, const TorchStorages& storages,
                 const std::vector<graph::StorageId>& placed, std::string file)
      : pickle_(pickle), storages_(storages), placed_(placed), file_(std::move(file)) {}

  // Arguments (storage, offset, size, stride, ...). The elements have `type`, or by default the storage's
  // type.
  graph::Tensor on_storage(const std::string& name, std::span<const PickleValue> arguments,
                           std::optional<TorchType> type) const;
  // A tensor without bytes; its storage is not set.
  graph::Tensor without_storage(const std::string& name, PickleValue dtype, PickleValue size,
                                PickleValue stride) const;
  // A bare storage as a tensor: a vector of its elements.
  graph::Tensor whole_storage(const std::string& name, PickleValue persistent) const;

  // The type that the global `value` names. Throws Error{malformed} if it names none.
  TorchType type_of(const std::string& name, PickleValue value) const;
  // The items of a tuple, a list, or a torch.Size.
  std::span<const PickleValue> sequence(PickleValue value) const;

 private:
  template <typename... Values>
  Error malformed(const std::string& name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_, .tensor = name}, detail, values...);
  }
  std::uint64_t number(const std::string& name, PickleValue value, std::string_view what) const;
  std::vector<std::uint64_t> numbers(const std::string& name, PickleValue value, std::string_view what) const;

  const Pickle& pickle_;
  const TorchStorages& storages_;
  const std::vector<graph::StorageId>& placed_;
  std::string file_;
};

}  // namespace loadline::importers
