// Decides which storages are cast.
#include "core/load/storage_cast.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace loadline {

namespace {

// Scales, zero points and codebooks of weights that are stored as codes: GPTQ, AWQ, bitsandbytes, FP8, NVFP4,
// MLX.
bool belongs_to_codes(std::string_view name) {
  constexpr std::array<std::string_view, 15> kParts = {
      "scales",           "qzeros",           "g_idx",       "qscales", "weight_scale",
      "weight_scale_inv", "weight_scale_2",   "input_scale", "absmax",  "nested_absmax",
      "quant_map",        "nested_quant_map", "biases",      "SCB",     "weight_zero_point"};
  return std::ranges::find(kParts, name.substr(name.rfind('.') + 1)) != kParts.end();
}

}  // namespace

std::optional<KeptWhy> why_kept(const MetaGraph& graph, const Tensor& tensor, DType to) {
  const DTypeInfo &from = dtype_info(tensor.dtype), &target = dtype_info(to);
  if (tensor.dtype == to) return KeptWhy::already;
  if (from.kind == DTypeKind::block || belongs_to_codes(tensor.name.view())) return KeptWhy::quantised;
  if (from.kind != DTypeKind::floating || from.block_elements != 1) return KeptWhy::no_float;
  const std::uint64_t bytes = graph.storage(tensor.storage).bytes;
  if (tensor.offset % from.block_bytes != 0 || bytes % from.block_bytes != 0) return KeptWhy::uneven;
  if (target.kind == DTypeKind::block &&
      (tensor.shape.size() < 2 || tensor.shape.back() % target.block_elements != 0 ||
       bytes / from.block_bytes % target.block_elements != 0))
    return KeptWhy::rows;
  if (!cast_bytes({tensor.dtype, to}, bytes)) return KeptWhy::too_large;
  return std::nullopt;
}

std::vector<std::optional<Cast>> storage_casts(const MetaGraph& graph, DType to) {
  std::vector<std::optional<Cast>> casts(graph.storages.size());
  std::vector<bool> kept(graph.storages.size(), false);
  for (const Tensor& tensor : graph.tensors) {
    const std::size_t at = index(tensor.storage);
    const Cast cast{tensor.dtype, to};
    const bool other = casts[at] && *casts[at] != cast;
    if (other || why_kept(graph, tensor, to)) kept[at] = true;
    casts[at] = cast;
  }
  for (std::size_t i = 0; i < casts.size(); ++i)
    if (kept[i]) casts[i].reset();
  return casts;
}

std::vector<std::uint64_t> loaded_bytes(const MetaGraph& graph, const std::optional<DType>& cast) {
  std::vector<std::uint64_t> sizes;
  for (const Storage& storage : graph.storages) sizes.push_back(storage.bytes);
  if (!cast) return sizes;
  const std::vector<std::optional<Cast>> casts = storage_casts(graph, *cast);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (casts[i]) sizes[i] = *cast_bytes(*casts[i], sizes[i]);
  return sizes;
}

std::uint64_t add_loaded(std::uint64_t sum, std::uint64_t bytes) {
  if (const auto both = checked_add(sum, bytes)) return *both;
  throw Error(ErrorCode::limit,
              "as they are loaded, weights of {} bytes and {} more are too large "
              "to be counted in 64 bits",
              sum, bytes);
}

DType find_cast(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string names;
  for (const DTypeInfo& row : dtype_table()) {
    const bool numbers = row.kind == DTypeKind::floating || row.kind == DTypeKind::block;
    if (!numbers || row.block_bytes == 0 || row.id == DType::f8_e8m0) continue;
    if (row.name == upper) return row.id;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error(ErrorCode::usage, "nothing can be cast to '{}'; there are: {}", safe_display(name, 40), names);
}

}  // namespace loadline
