// Persistent ids (torch/serialization.py, _save and _legacy_save):
//
//   zip      ('storage', CLASS, key, location, numel)
//   legacy   ('storage', CLASS, key, location, numel, None | (view key, offset, numel))
//            ('module', CLASS, source file, source)           a whole pickled model
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/torch/values.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace loadline {
namespace {

using Kind = PickleValue::Kind;

}  // namespace

class TorchStorageCollector {
 public:
  TorchStorageCollector(const Pickle& pickle, const std::string& file, TorchIds ids)
      : pickle_(pickle), file_(file), ids_(ids), out_(pickle) {}

  TorchStorages collect() {
    out_.storage_of_.reserve(pickle_.persistent_ids().size());
    out_.storages_.reserve(pickle_.persistent_ids().size());  // most ids name a separate storage
    for (const PickleValue id : pickle_.persistent_ids()) add(pickle_.items(id));
    return std::move(out_);
  }

 private:
  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_}, "persistent id: {}",
                 fmt::vformat(detail, fmt::make_format_args(values...)));
  }

  void add(std::span<const PickleValue> id) {
    const std::string_view kind = id.empty() ? "" : pickle_.text(id[0]);
    if (kind == "module")
      throw Error(ErrorCode::unsupported, {.file = file_},
                  "holds a whole pickled model of class '{}'; save its state_dict() instead",
                  safe_display(id.size() > 1 ? pickle_.text(id[1]) : "", 100));
    const std::size_t wanted = ids_ == TorchIds::legacy ? 6 : 5;
    if (kind != "storage" || id.size() != wanted)
      throw malformed("{} values that begin with '{}', not {} that begin with 'storage'", id.size(),
                      safe_display(kind, 40), wanted);
    const TorchStorage storage = described(id);
    const std::string key = out_.key(storage);
    const auto number = static_cast<std::uint32_t>(out_.storages_.size());
    const auto known = out_.by_key_.add(key, name_hash(key), number, [&](std::uint32_t position) {
      return out_.key(out_.storages_[position]);
    });
    if (ids_ == TorchIds::legacy && !id[5].is(Kind::none))
      out_.windows_.emplace(static_cast<std::uint32_t>(out_.storage_of_.size()),
                            window_in(storage, key, id[5]));
    if (known)
      require_same(out_.storages_[*known], storage, key);
    else
      out_.storages_.push_back(storage);
    out_.storage_of_.push_back(known.value_or(number));
  }

  TorchStorage described(std::span<const PickleValue> id) const {
    TorchStorage storage;
    const std::string_view name = pickle_.text(id[1]);
    const auto type = id[1].is(Kind::global) ? torch_storage_class(name) : std::nullopt;
    if (!type)
      throw Error(ErrorCode::unsupported, {.file = file_},
                  "a storage of class '{}', which this version does not know", safe_display(name, 100));
    storage.type = *type;
    storage.untyped = is_untyped_storage(name);
    if (!id[2].is(Kind::text) && !id[2].is(Kind::integer)) throw malformed("the storage's key is no string");
    storage.key = id[2];
    storage.numel = count(id[4], "numel");
    if (!checked_mul(storage.numel, storage.type.item_bytes))
      throw malformed("storage '{}': {} elements of {} bytes overflow 64 bits",
                      safe_display(out_.key(storage), 60), storage.numel, storage.type.item_bytes);
    return storage;
  }

  TorchWindow window_in(const TorchStorage& storage, std::string_view key, PickleValue view) const {
    const std::span<const PickleValue> parts = pickle_.items(view);
    if (!view.is(Kind::tuple) || parts.size() != 3) throw malformed("its view is no tuple of three");
    const std::uint64_t offset = count(parts[1], "a view's offset"), numel = count(parts[2], "a view's size");
    if (!range_fits(offset, numel, storage.numel))
      throw malformed("a view of {} elements at {} of storage '{}', which has {}", numel, offset,
                      safe_display(key, 60), storage.numel);
    return {offset * storage.type.item_bytes, numel * storage.type.item_bytes};
  }

  std::uint64_t count(PickleValue value, std::string_view what) const {
    if (!value.is(Kind::integer) || pickle_.integer(value) < 0)
      throw malformed("{} is no whole number from 0 on", what);
    return static_cast<std::uint64_t>(pickle_.integer(value));
  }

  void require_same(const TorchStorage& known, const TorchStorage& again, std::string_view key) const {
    if (known.numel != again.numel || known.type.dtype != again.type.dtype || known.untyped != again.untyped)
      throw malformed("storage '{}' has {} elements of {} once, {} of {} another time", safe_display(key, 60),
                      known.numel, dtype_info(known.type.dtype).name, again.numel,
                      dtype_info(again.type.dtype).name);
  }

  const Pickle& pickle_;
  const std::string& file_;
  TorchIds ids_;
  TorchStorages out_;
};

std::string TorchStorages::key_text(PickleValue key) const {
  return key.is(Kind::integer) ? fmt::format("{}", pickle_->integer(key)) : std::string(pickle_->text(key));
}

std::optional<std::uint32_t> TorchStorages::find(std::string_view key) const {
  return by_key_.find(key, name_hash(key),
                      [&](std::uint32_t position) { return this->key(storages_[position]); });
}

TorchWindow TorchStorages::window_of(std::uint32_t id) const {
  const auto window = windows_.find(id);
  return window == windows_.end() ? TorchWindow{0, storages_[storage_of_[id]].bytes()} : window->second;
}

TorchStorages torch_storages(const Pickle& pickle, const std::string& file, TorchIds ids) {
  return TorchStorageCollector(pickle, file, ids).collect();
}

std::vector<Note> unused_storages(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return {make_note(Severity::warning, {}, "{} storage{} no tensor uses: {}", names.size(),
                    names.size() == 1 ? " that" : "s that", join_names(names, 3))};
}

void sort_by_place(MetaGraph& graph) {
  const auto before = [](const Storage& a, const Storage& b) {
    return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
  };
  if (!std::ranges::is_sorted(graph.storages, before)) {
    std::vector<std::uint32_t> order(graph.storages.size()), place(graph.storages.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      return before(graph.storages[a], graph.storages[b]);
    });
    std::vector<Storage> sorted;
    sorted.reserve(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(graph.storages[order[i]]);
    }
    graph.storages = std::move(sorted);
    for (Tensor& tensor : graph.tensors) tensor.storage = StorageId{place[index(tensor.storage)]};
  }
  const auto earlier = [](const Tensor& a, const Tensor& b) {
    return std::tie(a.storage, a.offset) < std::tie(b.storage, b.offset);
  };
  if (!std::ranges::is_sorted(graph.tensors, earlier)) std::ranges::stable_sort(graph.tensors, earlier);
}

}  // namespace loadline
