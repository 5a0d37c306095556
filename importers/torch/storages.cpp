// Torch's types, storages behind persistent ids, and tensors rebuilt on them.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "importers/torch/values.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

namespace loadline::importers {

// --- torch 2.13: torch/storage.py (_new_dtypes, _dtype_to_storage_type_map), c10/core/ScalarType.h.

namespace {

struct Named {
  std::string_view name;
  TorchType type;
};

constexpr std::array<Named, 17> kStorages = {{
    {"FloatStorage", {graph::DType::f32, 4}},
    {"HalfStorage", {graph::DType::f16, 2}},
    {"BFloat16Storage", {graph::DType::bf16, 2}},
    {"DoubleStorage", {graph::DType::f64, 8}},
    {"LongStorage", {graph::DType::i64, 8}},
    {"IntStorage", {graph::DType::i32, 4}},
    {"ShortStorage", {graph::DType::i16, 2}},
    {"CharStorage", {graph::DType::i8, 1}},
    {"ByteStorage", {graph::DType::u8, 1}},
    {"BoolStorage", {graph::DType::boolean, 1}},
    {"ComplexFloatStorage", {graph::DType::c64, 8}},
    {"ComplexDoubleStorage", {graph::DType::c128, 16}},
    {"QInt8Storage", {graph::DType::i8, 1}},
    {"QUInt8Storage", {graph::DType::u8, 1}},
    {"QInt32Storage", {graph::DType::i32, 4}},
    {"QUInt4x2Storage", {graph::DType::opaque, 1}},
    {"QUInt2x4Storage", {graph::DType::opaque, 1}},
}};

// Types without a row in the dtype table, and other names of some that have one.
constexpr std::array<Named, 19> kOthers = {{
    {"float", {graph::DType::f32, 4}},       {"double", {graph::DType::f64, 8}},
    {"half", {graph::DType::f16, 2}},        {"long", {graph::DType::i64, 8}},
    {"int", {graph::DType::i32, 4}},         {"short", {graph::DType::i16, 2}},
    {"cfloat", {graph::DType::c64, 8}},      {"cdouble", {graph::DType::c128, 16}},
    {"qint8", {graph::DType::i8, 1}},        {"quint8", {graph::DType::u8, 1}},
    {"qint32", {graph::DType::i32, 4}},      {"complex32", {graph::DType::opaque, 4}},
    {"bits8", {graph::DType::opaque, 1}},    {"bits16", {graph::DType::opaque, 2}},
    {"bits1x8", {graph::DType::opaque, 1}},  {"bits2x4", {graph::DType::opaque, 1}},
    {"bits4x2", {graph::DType::opaque, 1}},  {"quint4x2", {graph::DType::opaque, 1}},
    {"quint2x4", {graph::DType::opaque, 1}},
}};

template <std::size_t N>
std::optional<TorchType> find(const std::array<Named, N>& table, std::string_view name) {
  const auto row = std::ranges::find_if(table, [&](const Named& n) { return n.name == name; });
  return row == table.end() ? std::nullopt : std::optional(row->type);
}

}  // namespace

std::optional<TorchType> torch_dtype(std::string_view global) {
  if (!global.starts_with("torch.")) return std::nullopt;
  global.remove_prefix(6);
  if (const auto known = graph::dtype_from(&graph::DTypeInfo::torch, global))
    // float4_e2m1fn_x2: an element of torch is one byte and holds two of our elements
    return TorchType{*known, static_cast<std::uint8_t>(graph::dtype_info(*known).block_bytes)};
  if (const auto other = find(kOthers, global)) return other;
  return TorchType{};
}

std::optional<TorchType> torch_storage_class(std::string_view global) {
  if (is_untyped_storage(global)) return TorchType{graph::DType::u8, 1};
  for (const std::string_view module : {"torch.cuda.", "torch.storage.", "torch."})
    if (global.starts_with(module)) return find(kStorages, global.substr(module.size()));
  return std::nullopt;
}

bool is_untyped_storage(std::string_view global) {
  return global == "torch.storage.UntypedStorage" || global == "torch.UntypedStorage" ||
         global == "torch.storage._UntypedStorage" || global == "torch.cuda.UntypedStorage";
}

// --- Persistent ids (torch/serialization.py, _save and _legacy_save):
//
//   zip      ('storage', CLASS, key, location, numel)
//   legacy   ('storage', CLASS, key, location, numel, None | (view key, offset, numel))
//            ('module', CLASS, source file, source)           a whole pickled model

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
    const auto known = out_.by_key_.add(key, graph::name_hash(key), number, [&](std::uint32_t position) {
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
    if (!id[2].is(Kind::text) && !id[2].is(Kind::integer))
      throw malformed("the storage's key is not a string");
    storage.key = id[2];
    storage.numel = count(id[4], "numel");
    if (!checked_mul(storage.numel, storage.type.item_bytes))
      throw malformed("storage '{}': {} elements of {} bytes overflow 64 bits",
                      safe_display(out_.key(storage), 60), storage.numel, storage.type.item_bytes);
    return storage;
  }

  TorchWindow window_in(const TorchStorage& storage, std::string_view key, PickleValue view) const {
    const std::span<const PickleValue> parts = pickle_.items(view);
    if (!view.is(Kind::tuple) || parts.size() != 3) throw malformed("its view is not a tuple of three");
    const std::uint64_t offset = count(parts[1], "a view's offset"), numel = count(parts[2], "a view's size");
    if (!range_fits(offset, numel, storage.numel))
      throw malformed("a view of {} elements at {} of storage '{}', which has {}", numel, offset,
                      safe_display(key, 60), storage.numel);
    return {offset * storage.type.item_bytes, numel * storage.type.item_bytes};
  }

  std::uint64_t count(PickleValue value, std::string_view what) const {
    if (!value.is(Kind::integer) || pickle_.integer(value) < 0)
      throw malformed("{} is not a whole number from 0 on", what);
    return static_cast<std::uint64_t>(pickle_.integer(value));
  }

  void require_same(const TorchStorage& known, const TorchStorage& again, std::string_view key) const {
    if (known.numel != again.numel || known.type.dtype != again.type.dtype || known.untyped != again.untyped)
      throw malformed("storage '{}' has {} elements of {} once, {} of {} another time", safe_display(key, 60),
                      known.numel, graph::dtype_info(known.type.dtype).name, again.numel,
                      graph::dtype_info(again.type.dtype).name);
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
  return by_key_.find(key, graph::name_hash(key),
                      [&](std::uint32_t position) { return this->key(storages_[position]); });
}

TorchWindow TorchStorages::window_of(std::uint32_t id) const {
  const auto window = windows_.find(id);
  return window == windows_.end() ? TorchWindow{0, storages_[storage_of_[id]].bytes()} : window->second;
}

TorchStorages torch_storages(const Pickle& pickle, const std::string& file, TorchIds ids) {
  return TorchStorageCollector(pickle, file, ids).collect();
}

std::vector<graph::Note> unused_storages(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return {graph::make_note(graph::Severity::warning, {}, "{} storage{} no tensor uses: {}", names.size(),
                           names.size() == 1 ? " that" : "s that", join_names(names, 3))};
}

void sort_by_place(graph::MetaGraph& graph) {
  const auto before = [](const graph::Storage& a, const graph::Storage& b) {
    return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
  };
  if (!std::ranges::is_sorted(graph.storages, before)) {
    std::vector<std::uint32_t> order(graph.storages.size()), place(graph.storages.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      return before(graph.storages[a], graph.storages[b]);
    });
    std::vector<graph::Storage> sorted;
    sorted.reserve(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(graph.storages[order[i]]);
    }
    graph.storages = std::move(sorted);
    for (graph::Tensor& tensor : graph.tensors)
      tensor.storage = graph::StorageId{place[graph::index(tensor.storage)]};
  }
  const auto earlier = [](const graph::Tensor& a, const graph::Tensor& b) {
    return std::tie(a.storage, a.offset) < std::tie(b.storage, b.offset);
  };
  if (!std::ranges::is_sorted(graph.tensors, earlier)) std::ranges::stable_sort(graph.tensors, earlier);
  bind_quantized(graph);
}

void bind_quantized(graph::MetaGraph& graph) {
  if (graph.logical.empty()) return;
  graph::TextMap<graph::TensorId> places;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i)
    places.try_emplace(graph.tensors[i].name.str(), graph::TensorId{i});
  graph::TextSet bound;
  std::erase_if(graph.logical, [&](graph::LogicalTensor& weight) {
    const auto bind = [&](std::string_view ending, graph::TensorId& id) {
      const auto found = places.find(weight.name.str().append(ending));
      if (found != places.end()) id = found->second;
      return found != places.end();
    };
    if (!bound.insert(weight.name.str()).second) return true;
    bool whole = bind("", weight.codes) && graph.tensor(weight.codes).shape == weight.shape &&
                 8 * graph::dtype_info(graph.tensor(weight.codes).dtype).block_bytes == weight.bits;
    for (graph::CompanionTensor& companion : weight.companions)
      whole = whole &&
              bind(companion.kind == graph::Companion::scales ? ".scale" : ".zero_point", companion.tensor);
    if (!whole)
      graph.note(graph::Severity::error, weight.name.str(),
                 "quantized, but its scales and zero points are not tensors of the file");
    return !whole;
  });
  std::ranges::sort(graph.logical, {}, &graph::LogicalTensor::codes);
}

// --- torch/_utils.py, _rebuild_tensor*: offset and strides count elements.

namespace {

using Kind = PickleValue::Kind;
constexpr std::size_t kMostRank = 64;  // torch's own limit

std::string numbers_text(std::span<const std::uint64_t> numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

void check_extent(const graph::Tensor& tensor, TorchType type, std::uint64_t offset, std::uint64_t bytes,
                  const std::string& file) {
  const ErrorPlace place{.file = file, .tensor = tensor.name};
  const auto count = graph::element_count(tensor.shape);
  if (!count || !checked_mul(*count, std::max<std::uint64_t>(type.item_bytes, 1)))
    throw Error(ErrorCode::malformed, place, "the shape {} overflows 64 bits", numbers_text(tensor.shape));
  if (tensor.strides.size() != tensor.shape.size())
    throw Error(ErrorCode::malformed, place, "{} strides for rank {}", tensor.strides.size(),
                tensor.shape.size());
  if (*count == 0 || type.item_bytes == 0) return;  // no elements, or elements of unknown size
  const auto length = graph::spanned_elements(tensor);
  const auto end = length ? checked_add(*length, offset) : std::nullopt;
  const auto needed = end ? checked_mul(*end, type.item_bytes) : std::nullopt;
  if (!needed || *needed > bytes)
    throw Error(ErrorCode::malformed, place,
                "needs {} bytes for {} with strides {} from element {}, its storage "
                "has {}",
                needed ? fmt::format("{}", *needed) : "more than 2^64", numbers_text(tensor.shape),
                numbers_text(tensor.strides), offset, bytes);
}

// Clears the strides of a contiguous tensor. torch packs two numbers into an element of float4_e2m1fn_x2; the
// shape here counts numbers.
graph::Tensor settled(graph::Tensor tensor, TorchType type, const std::string& file) {
  if (graph::element_count(tensor.shape) == 0 || graph::is_contiguous(tensor)) tensor.strides = {};
  if (graph::dtype_info(type.dtype).block_elements != 2) return tensor;
  if (!tensor.strides.empty())
    throw Error(ErrorCode::unsupported, {.file = file, .tensor = tensor.name},
                "a strided view of packed 4-bit numbers");
  if (tensor.shape.empty()) tensor.shape.push_back(1);
  const auto doubled = checked_mul(tensor.shape.back(), 2);
  tensor.shape[tensor.shape.size() - 1] = doubled.value_or(0);
  if (!doubled || !graph::element_count(tensor.shape))
    throw Error(ErrorCode::malformed, {.file = file, .tensor = tensor.name}, "its shape overflows 64 bits");
  return tensor;
}

}  // namespace

graph::Tensor place_tensor(graph::Tensor tensor, TorchType type, std::uint64_t offset,
                           const StorageWindow& window, const std::string& file) {
  check_extent(tensor, type, offset, window.bytes, file);
  tensor.dtype = type.dtype;
  tensor.storage = window.storage;
  // an empty tensor may begin anywhere, one of unknown type only at the beginning
  const std::uint64_t skipped = checked_mul(offset, type.item_bytes).value_or(window.bytes);
  tensor.offset = window.offset + std::min(skipped, window.bytes);
  return settled(std::move(tensor), type, file);
}

std::uint64_t TorchRebuilder::number(const std::string& name, PickleValue value,
                                     std::string_view what) const {
  if (!value.is(Kind::integer) || pickle_.integer(value) < 0)
    throw malformed(name, "{} is not a whole number from 0 on", what);
  return static_cast<std::uint64_t>(pickle_.integer(value));
}

std::span<const PickleValue> TorchRebuilder::sequence(PickleValue value) const {
  const PickleObject* object = pickle_.object(value);
  if (object == nullptr || !pickle_.is_global(object->callee, "torch.Size")) return pickle_.items(value);
  const std::span<const PickleValue> arguments = pickle_.items(object->arguments);
  return arguments.empty() ? arguments : pickle_.items(arguments[0]);
}

std::vector<std::uint64_t> TorchRebuilder::numbers(const std::string& name, PickleValue value,
                                                   std::string_view what) const {
  const PickleObject* const object = pickle_.object(value);
  const bool is_size = object != nullptr && pickle_.is_global(object->callee, "torch.Size");
  const bool is_list = value.is(Kind::tuple) || value.is(Kind::list) || is_size;
  if (!is_list) throw malformed(name, "its {} is not a tuple", what);
  const std::span<const PickleValue> items = sequence(value);
  if (items.size() > kMostRank)
    throw malformed(name, "its {} has {} dimensions, torch allows {}", what, items.size(), kMostRank);
  std::vector<std::uint64_t> result;
  result.reserve(items.size());
  for (const PickleValue item : items) result.push_back(number(name, item, fmt::format("its {}", what)));
  return result;
}

TorchType TorchRebuilder::type_of(const std::string& name, PickleValue value) const {
  const auto type = value.is(Kind::global) ? torch_dtype(pickle_.text(value)) : std::nullopt;
  if (!type) throw malformed(name, "'{}' is not a dtype of torch", safe_display(pickle_.text(value), 60));
  return *type;
}

graph::Tensor TorchRebuilder::on_storage(const std::string& name, std::span<const PickleValue> arguments,
                                         std::optional<TorchType> type) const {
  if (arguments.size() < 4) throw malformed(name, "is rebuilt from {} values", arguments.size());
  if (!arguments[0].is(Kind::persistent))
    throw malformed(name, "is rebuilt from a value that is not a storage");
  const std::uint32_t storage = storages_.storage_of(arguments[0].number());
  const TorchWindow window = storages_.window_of(arguments[0].number());
  if (!type) type = storages_.storages()[storage].type;
  graph::Tensor tensor;
  tensor.name = name;
  const std::uint64_t offset = number(name, arguments[1], "its storage offset");
  tensor.shape = numbers(name, arguments[2], "size");
  tensor.strides = numbers(name, arguments[3], "stride");
  return place_tensor(std::move(tensor), *type, offset, {placed_[storage], window.offset, window.bytes},
                      file_);
}

graph::Tensor TorchRebuilder::without_storage(const std::string& name, PickleValue dtype, PickleValue size,
                                              PickleValue stride) const {
  const TorchType type = type_of(name, dtype);
  graph::Tensor tensor;
  tensor.name = name;
  tensor.shape = numbers(name, size, "size");
  tensor.strides = numbers(name, stride, "stride");
  return place_tensor(std::move(tensor), type, 0, {graph::StorageId{}, 0, ~std::uint64_t{0}}, file_);
}

graph::Tensor TorchRebuilder::whole_storage(const std::string& name, PickleValue persistent) const {
  const std::uint32_t storage = storages_.storage_of(persistent.number());
  const TorchWindow window = storages_.window_of(persistent.number());
  const TorchType type = storages_.storages()[storage].type;
  graph::Tensor tensor;
  tensor.name = name;
  tensor.dtype = type.dtype;
  tensor.shape = {window.bytes / type.item_bytes};
  tensor.storage = placed_[storage];
  tensor.offset = window.offset;
  return tensor;
}

}  // namespace loadline::importers
