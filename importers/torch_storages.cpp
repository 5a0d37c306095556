// Persistent ids (torch/serialization.py, _save and _legacy_save):
//
//   zip      ('storage', CLASS, key, location, numel)
//   legacy   ('storage', CLASS, key, location, numel, None | (view key, offset, numel))
//            ('module', CLASS, source file, source)           a whole pickled model
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/text_hash.h"
#include "importers/torch_values.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace loadline {
namespace {

using Kind = PickleValue::Kind;

class Collector {
 public:
  Collector(const Pickle& pickle, const std::string& file, TorchIds ids)
      : pickle_(pickle), file_(file), ids_(ids) {}

  TorchStorages collect() {
    for (const PickleValue& id : pickle_.persistent_ids()) add(pickle_.items(id));
    return std::move(out_);
  }

 private:
  Error malformed(std::string_view detail) const {
    return Error(ErrorCode::malformed, {.file = file_}, fmt::format("persistent id: {}", detail));
  }

  void add(std::span<const PickleValue> id) {
    const std::string_view kind = id.empty() ? "" : pickle_.text(id[0]);
    if (kind == "module")
      throw Error(ErrorCode::unsupported, {.file = file_},
                  fmt::format("holds a whole pickled model of class '{}'; save its state_dict() instead",
                              safe_display(id.size() > 1 ? pickle_.text(id[1]) : "", 100)));
    const std::size_t wanted = ids_ == TorchIds::legacy ? 6 : 5;
    if (kind != "storage" || id.size() != wanted)
      throw malformed(fmt::format("{} values that begin with '{}', not {} that begin with 'storage'",
                                  id.size(), safe_display(kind, 40), wanted));
    TorchStorage storage = described(id);
    const auto number = static_cast<std::uint32_t>(out_.storages.size());
    const auto [known, fresh] = by_key_.try_emplace(storage.key, number);
    TorchStorageView view{known->second, 0, storage.bytes};
    if (ids_ == TorchIds::legacy && !id[5].is(Kind::none)) view = window(storage, known->second, id[5]);
    if (fresh)
      out_.storages.push_back(std::move(storage));
    else
      require_same(out_.storages[known->second], storage);
    out_.views.push_back(view);
  }

  TorchStorage described(std::span<const PickleValue> id) const {
    TorchStorage storage;
    const std::string_view name = pickle_.text(id[1]);
    const auto type = id[1].is(Kind::global) ? torch_storage_class(name) : std::nullopt;
    if (!type)
      throw Error(
          ErrorCode::unsupported, {.file = file_},
          fmt::format("a storage of class '{}', which this version does not know", safe_display(name, 100)));
    storage.type = *type;
    storage.untyped = is_untyped_storage(name);
    if (!id[2].is(Kind::text) && !id[2].is(Kind::integer)) throw malformed("the storage's key is no string");
    storage.key =
        id[2].is(Kind::text) ? std::string(pickle_.text(id[2])) : fmt::format("{}", id[2].integer());
    storage.numel = count(id[4], "numel");
    const auto bytes = checked_mul(storage.numel, storage.type.item_bytes);
    if (!bytes)
      throw malformed(fmt::format("storage '{}': {} elements of {} bytes overflow 64 bits",
                                  safe_display(storage.key, 60), storage.numel, storage.type.item_bytes));
    storage.bytes = *bytes;
    return storage;
  }

  TorchStorageView window(const TorchStorage& storage, std::uint32_t number, const PickleValue& view) const {
    const std::span<const PickleValue> parts = pickle_.items(view);
    if (!view.is(Kind::tuple) || parts.size() != 3) throw malformed("its view is no tuple of three");
    const std::uint64_t offset = count(parts[1], "a view's offset"), numel = count(parts[2], "a view's size");
    if (!range_fits(offset, numel, storage.numel))
      throw malformed(fmt::format("a view of {} elements at {} of storage '{}', which has {}", numel, offset,
                                  safe_display(storage.key, 60), storage.numel));
    return {number, offset * storage.type.item_bytes, numel * storage.type.item_bytes};
  }

  std::uint64_t count(const PickleValue& value, std::string_view what) const {
    if (!value.is(Kind::integer) || value.integer() < 0)
      throw malformed(fmt::format("{} is no whole number from 0 on", what));
    return value.number;
  }

  void require_same(const TorchStorage& known, const TorchStorage& again) const {
    if (known.numel != again.numel || known.type.dtype != again.type.dtype || known.untyped != again.untyped)
      throw malformed(fmt::format("storage '{}' has {} elements of {} once, {} of {} another time",
                                  safe_display(known.key, 60), known.numel, dtype_info(known.type.dtype).name,
                                  again.numel, dtype_info(again.type.dtype).name));
  }

  const Pickle& pickle_;
  const std::string& file_;
  TorchIds ids_;
  TorchStorages out_;
  TextMap<std::uint32_t> by_key_;
};

}  // namespace

TorchStorages torch_storages(const Pickle& pickle, const std::string& file, TorchIds ids) {
  return Collector(pickle, file, ids).collect();
}

void sort_by_place(MetaGraph& graph) {
  std::vector<std::uint32_t> order(graph.storages.size()), place(graph.storages.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Storage &x = graph.storages[a], &y = graph.storages[b];
    return std::tie(x.file, x.offset) < std::tie(y.file, y.offset);
  });
  std::vector<Storage> sorted;
  sorted.reserve(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(graph.storages[order[i]]);
  }
  graph.storages = std::move(sorted);
  for (Tensor& tensor : graph.tensors) tensor.storage = StorageId{place[index(tensor.storage)]};
  std::stable_sort(graph.tensors.begin(), graph.tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::tie(a.storage, a.offset) < std::tie(b.storage, b.offset);
  });
}

}  // namespace loadline
