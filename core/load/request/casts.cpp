// Which storages are cast, and the sentence that says so.
#include "core/load/request/casts.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/graph/packed/quantization.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::load {

// --- Decides which storages are cast.

namespace {

std::optional<KeptWhy> why_kept(const graph::MetaGraph& graph, const graph::Tensor& tensor, bool packed,
                                graph::DType to) {
  const graph::DTypeInfo &from = graph::dtype_info(tensor.dtype), &target = graph::dtype_info(to);
  if (tensor.dtype == to) return KeptWhy::already;
  if (from.kind == graph::DTypeKind::block || packed) return KeptWhy::quantized;
  if (from.kind != graph::DTypeKind::floating || from.block_elements != 1) return KeptWhy::no_float;
  const std::uint64_t bytes = graph.storage(tensor.storage).bytes;
  if (tensor.offset % from.block_bytes != 0 || bytes % from.block_bytes != 0) return KeptWhy::uneven;
  if (target.kind == graph::DTypeKind::block &&
      (tensor.shape.size() < 2 || tensor.shape.back() % target.block_elements != 0 ||
       bytes / from.block_bytes % target.block_elements != 0))
    return KeptWhy::rows;
  if (!plan::cast_bytes({tensor.dtype, to}, bytes)) return KeptWhy::too_large;
  return std::nullopt;
}

}  // namespace

std::vector<std::optional<KeptWhy>> kept_reasons(const graph::MetaGraph& graph, graph::DType to) {
  const auto packed = graph::logical_positions(graph);
  std::vector<std::optional<KeptWhy>> reasons;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    reasons.push_back(why_kept(graph, graph.tensors[i], packed[i].has_value(), to));
  return reasons;
}

std::vector<std::optional<plan::Cast>> storage_casts(const graph::MetaGraph& graph, graph::DType to) {
  std::vector<std::optional<plan::Cast>> casts(graph.storages.size());
  std::vector<bool> kept(graph.storages.size(), false);
  const auto reasons = kept_reasons(graph, to);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const graph::Tensor& tensor = graph.tensors[i];
    const std::size_t at = graph::index(tensor.storage);
    const plan::Cast cast{tensor.dtype, to};
    const bool other = casts[at] && *casts[at] != cast;
    if (other || reasons[i]) kept[at] = true;
    casts[at] = cast;
  }
  for (std::size_t i = 0; i < casts.size(); ++i)
    if (kept[i]) casts[i].reset();
  return casts;
}

std::vector<std::uint64_t> loaded_bytes(const graph::MetaGraph& graph,
                                        const std::optional<graph::DType>& cast) {
  std::vector<std::uint64_t> sizes;
  for (const graph::Storage& storage : graph.storages) sizes.push_back(storage.bytes);
  if (!cast) return sizes;
  const std::vector<std::optional<plan::Cast>> casts = storage_casts(graph, *cast);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (casts[i]) sizes[i] = *plan::cast_bytes(*casts[i], sizes[i]);
  return sizes;
}

std::uint64_t add_loaded(std::uint64_t sum, std::uint64_t bytes) {
  if (const auto both = checked_add(sum, bytes)) return *both;
  throw Error(ErrorCode::limit,
              "as they are loaded, weights of {} bytes and {} more are too large "
              "to be counted in 64 bits",
              sum, bytes);
}

graph::DType find_cast(std::string_view name) {
  const auto wanted = graph::dtype_named(name);
  std::string names;
  for (const graph::DTypeInfo& row : graph::dtype_table()) {
    const bool numbers = row.kind == graph::DTypeKind::floating || row.kind == graph::DTypeKind::block;
    if (!numbers || row.block_bytes == 0 || row.id == graph::DType::f8_e8m0) continue;
    if (row.id == wanted) return row.id;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error(ErrorCode::usage, "nothing can be cast to '{}'; there are: {}", safe_display(name, 40), names);
}

namespace {

constexpr std::array kFloats = {graph::DType::bf16, graph::DType::f16, graph::DType::f32, graph::DType::f64};

// That of the first floating weight in the first file, as safetensors lists them by name and torch as they
// were saved (get_state_dict_dtype() of transformers).
std::optional<graph::DType> first_type(const graph::MetaGraph& graph) {
  const bool by_name = graph.format == "safetensors";
  const graph::Tensor* first = nullptr;
  const auto path = [&](const graph::Tensor& tensor) -> const std::string& {
    return graph.file(graph.storage(tensor.storage).file).path;
  };
  for (const graph::Tensor& tensor : graph.tensors) {
    if (std::ranges::find(kFloats, tensor.dtype) == kFloats.end()) continue;
    if (graph.storage(tensor.storage).file == graph::kNoFile) return std::nullopt;
    const bool before = first == nullptr || path(tensor) < path(*first) ||
                        (by_name && path(tensor) == path(*first) && tensor.name.view() < first->name.view());
    if (before) first = &tensor;
  }
  return first == nullptr ? std::nullopt : std::optional(first->dtype);
}

// What config.json names the type of weights.
std::optional<std::string> named_type(const nlohmann::json& config) {
  for (const char* const key : {"dtype", "torch_dtype"})
    if (const auto found = config.find(key); found != config.end() && found->is_string())
      return found->get<std::string>();
  return std::nullopt;
}

}  // namespace

OwnTypes own_types(const graph::MetaGraph& graph) {
  const std::string* const text = graph::find_text(graph, graph::kConfigKey);
  if (text == nullptr || !graph.logical.empty()) return {};
  const auto config = small_json<nlohmann::json>(*text);
  if (!config.is_object()) return {};
  const auto changing = [&](std::optional<graph::DType> type) -> std::optional<graph::DType> {
    if (!type || std::ranges::find(kFloats, *type) == kFloats.end()) return std::nullopt;
    const auto casts = storage_casts(graph, *type);
    return std::ranges::any_of(casts, [](const auto& cast) { return cast.has_value(); }) ? type
                                                                                         : std::nullopt;
  };
  const std::optional<std::string> name = named_type(config);
  return {.configured = changing(name ? graph::dtype_named(*name) : first_type(graph)),
          .f32 = changing(graph::DType::f32)};
}

// --- Counts tensors by the result of storage_casts().

namespace {

// The reason after those of KeptWhy: another tensor on the storage is kept or has another type.
constexpr std::size_t kShared = kKeptWhys;

// Wording after "1 " and after any other count.
struct Words {
  std::string_view one;
  std::string_view many;
};
std::string reason_text(std::size_t why, std::uint64_t count, graph::DType to) {
  constexpr std::array<Words, kKeptWhys + 1> kWords = {
      {{"is {} already", "are {} already"},
       {"is quantized already", "are quantized already"},
       {"does not hold floating point numbers", "do not hold floating point numbers"},
       {"has bytes that are not whole elements", "have bytes that are not whole elements"},
       {"is not a matrix of rows of whole blocks", "are not matrices of rows of whole blocks"},
       {"would be too large", "would be too large"},
       {"shares its bytes with one that is kept or of another type",
        "share their bytes with ones that are kept or of another type"}}};
  const Words& words = kWords[why];
  return fmt::format(fmt::runtime(count == 1 ? words.one : words.many), graph::dtype_info(to).name);
}

}  // namespace

CastSummary cast_summary(const graph::MetaGraph& graph, graph::DType to) {
  CastSummary summary;
  const auto casts = storage_casts(graph, to);
  std::vector<bool> counted_storage(graph.storages.size(), false);
  std::array<std::uint64_t, kKeptWhys + 1> kept = {};
  const auto reasons = kept_reasons(graph, to);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::size_t at = graph::index(graph.tensors[i].storage);
    if (!casts[at]) {
      const std::optional<KeptWhy> why = reasons[i];
      ++kept[why ? static_cast<std::size_t>(*why) : kShared];
      ++summary.kept;
      continue;
    }
    ++summary.tensors;
    if (counted_storage[at]) continue;
    counted_storage[at] = true;
    summary.bytes_before += graph.storages[at].bytes;
    summary.bytes_after =
        add_loaded(summary.bytes_after, *plan::cast_bytes(*casts[at], graph.storages[at].bytes));
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (kept[i] > 0) summary.reasons.emplace_back(reason_text(i, kept[i], to), kept[i]);
  std::ranges::stable_sort(summary.reasons, [](const auto& a, const auto& b) { return a.second > b.second; });
  return summary;
}

std::string cast_text(const CastSummary& summary, graph::DType to) {
  std::string text = summary.tensors == 0
                         ? fmt::format("The cast to {} changes nothing", graph::dtype_info(to).name)
                         : fmt::format("Cast to {}: {}, {} become {}", graph::dtype_info(to).name,
                                       counted(summary.tensors, "tensor"), format_bytes(summary.bytes_before),
                                       format_bytes(summary.bytes_after));
  if (summary.kept == 0) return text + ".";
  text += fmt::format("{} {} {} as stored: ", summary.tensors == 0 ? ":" : ";",
                      counted(summary.kept, "tensor"), summary.kept == 1 ? "stays" : "stay");
  for (std::size_t i = 0; i < summary.reasons.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", format_grouped(summary.reasons[i].second),
                        summary.reasons[i].first);
  return text + ".";
}

}  // namespace loadline::load
