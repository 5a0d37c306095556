// torch 2.13: torch/storage.py (_new_dtypes, _dtype_to_storage_type_map), c10/core/ScalarType.h.
#include "importers/torch/types.h"

#include <algorithm>
#include <array>

namespace loadline {
namespace {

struct Named {
  std::string_view name;
  TorchType type;
};

constexpr std::array<Named, 17> kStorages = {{
    {"FloatStorage", {DType::f32, 4}},
    {"HalfStorage", {DType::f16, 2}},
    {"BFloat16Storage", {DType::bf16, 2}},
    {"DoubleStorage", {DType::f64, 8}},
    {"LongStorage", {DType::i64, 8}},
    {"IntStorage", {DType::i32, 4}},
    {"ShortStorage", {DType::i16, 2}},
    {"CharStorage", {DType::i8, 1}},
    {"ByteStorage", {DType::u8, 1}},
    {"BoolStorage", {DType::boolean, 1}},
    {"ComplexFloatStorage", {DType::c64, 8}},
    {"ComplexDoubleStorage", {DType::c128, 16}},
    {"QInt8Storage", {DType::i8, 1}},
    {"QUInt8Storage", {DType::u8, 1}},
    {"QInt32Storage", {DType::i32, 4}},
    {"QUInt4x2Storage", {DType::opaque, 1}},
    {"QUInt2x4Storage", {DType::opaque, 1}},
}};

// Types without a row in the dtype table, and other names of some that have one.
constexpr std::array<Named, 19> kOthers = {{
    {"float", {DType::f32, 4}},       {"double", {DType::f64, 8}},     {"half", {DType::f16, 2}},
    {"long", {DType::i64, 8}},        {"int", {DType::i32, 4}},        {"short", {DType::i16, 2}},
    {"cfloat", {DType::c64, 8}},      {"cdouble", {DType::c128, 16}},  {"qint8", {DType::i8, 1}},
    {"quint8", {DType::u8, 1}},       {"qint32", {DType::i32, 4}},     {"complex32", {DType::opaque, 4}},
    {"bits8", {DType::opaque, 1}},    {"bits16", {DType::opaque, 2}},  {"bits1x8", {DType::opaque, 1}},
    {"bits2x4", {DType::opaque, 1}},  {"bits4x2", {DType::opaque, 1}}, {"quint4x2", {DType::opaque, 1}},
    {"quint2x4", {DType::opaque, 1}},
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
  if (const auto known = dtype_from(&DTypeInfo::torch, global))
    // float4_e2m1fn_x2: an element of torch is one byte and holds two of our elements
    return TorchType{*known, static_cast<std::uint8_t>(dtype_info(*known).block_bytes)};
  if (const auto other = find(kOthers, global)) return other;
  return TorchType{};
}

std::optional<TorchType> torch_storage_class(std::string_view global) {
  if (is_untyped_storage(global)) return TorchType{DType::u8, 1};
  for (const std::string_view module : {"torch.cuda.", "torch.storage.", "torch."})
    if (global.starts_with(module)) return find(kStorages, global.substr(module.size()));
  return std::nullopt;
}

bool is_untyped_storage(std::string_view global) {
  return global == "torch.storage.UntypedStorage" || global == "torch.UntypedStorage" ||
         global == "torch.storage._UntypedStorage" || global == "torch.cuda.UntypedStorage";
}

}  // namespace loadline
