// Reads config.json and metadata; looks up columns in the importance matrix.
#include "core/graph/packed/quantization.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace loadline::graph {

// --- Looks into config.json; anything that is not a JSON object counts as no config.

namespace {

// The top-level value under `key`; null without one.
nlohmann::json config_value(const MetaGraph& graph, std::string_view key) {
  const std::string* const text = find_text(graph, kConfigKey);
  if (text == nullptr) return {};
  const auto json = small_json<nlohmann::json>(*text);
  return json.is_object() ? json.value(std::string(key), nlohmann::json()) : nlohmann::json();
}

}  // namespace

std::optional<std::string> config_text(const MetaGraph& graph, std::string_view key) {
  const nlohmann::json value = config_value(graph, key);
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

std::optional<bool> config_flag(const MetaGraph& graph, std::string_view key) {
  const nlohmann::json value = config_value(graph, key);
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

std::optional<std::string> model_family(const MetaGraph& graph) {
  if (auto type = config_text(graph, "model_type")) return type;
  const std::string* const text = find_text(graph, "general.architecture");
  return text == nullptr ? std::nullopt : std::optional(*text);
}

// --- Reads "quantization_config", MLX's "quantization", and the type of the weights.

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostGroup = 1 << 20;

std::optional<std::uint64_t> number_at(const Json& object, const char* key, std::uint64_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  return value >= 1 && value <= most ? std::optional(value) : std::nullopt;
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<CodeGroups> code_groups(const Json& object) {
  const auto bits = number_at(object, "bits", 8);
  const auto group = number_at(object, "group_size", kMostGroup);
  if (!bits || !group) return std::nullopt;
  return CodeGroups{static_cast<std::uint32_t>(*bits), *group};
}

// Models of text and images have the type in their text_config.
std::optional<DType> float_dtype(const Json& config) {
  for (const char* key : {"dtype", "torch_dtype"})
    if (const auto dtype = dtype_from(&DTypeInfo::torch, text_at(config, key));
        dtype && dtype_info(*dtype).kind == DTypeKind::floating)
      return dtype;
  const auto inner = config.find("text_config");
  return inner != config.end() && inner->is_object() ? float_dtype(*inner) : std::nullopt;
}

}  // namespace

const CodeGroups* QuantizationConfig::groups_of(std::string_view module) const {
  const auto found = modules.find(module);
  if (found != modules.end()) return &found->second;
  return groups ? &*groups : nullptr;
}

QuantizationConfig read_quantization_config(const MetaGraph& graph) {
  QuantizationConfig result;
  const std::string* const text = find_text(graph, kConfigKey);
  if (text == nullptr) return result;
  const Json config = small_json<Json>(*text);
  if (!config.is_object()) return result;
  result.dtype = float_dtype(config);
  if (const auto found = config.find("quantization_config"); found != config.end() && found->is_object()) {
    result.checkpoint_format = text_at(*found, "checkpoint_format");
    const auto block = found->find("weight_block_size");
    if (block != found->end() && block->is_array() && block->size() == 2) {
      const Json sides = {{"rows", (*block)[0]}, {"columns", (*block)[1]}};
      result.block_rows = number_at(sides, "rows", kMostGroup);
      result.block_columns = number_at(sides, "columns", kMostGroup);
    }
  }
  if (const auto found = config.find("quantization"); found != config.end() && found->is_object()) {
    result.groups = code_groups(*found);
    for (const auto& [module, value] : found->items())
      if (value.is_object())
        if (const auto groups = code_groups(value)) result.modules.emplace(module, *groups);
  }
  return result;
}

// --- Splits keys at dots and underscores.

namespace {

// "rotary" and "rope" are not among them: those turn activations in every file.
constexpr std::array<std::string_view, 6> kWords = {"hadamard", "rotated",   "rotation",
                                                    "quarot",   "spinquant", "transformed"};

bool declares(std::string_view key) {
  std::string words = lower_case(key);
  std::ranges::replace(words, '_', '.');
  return std::ranges::any_of(split(words, '.'), [](std::string_view word) {
    return std::ranges::find(kWords, word) != kWords.end();
  });
}

}  // namespace

const MetaEntry* declared_transform(const MetaGraph& graph) {
  if (graph.format != "gguf") return nullptr;
  const auto entry =
      std::ranges::find_if(graph.metadata, [](const MetaEntry& item) { return declares(item.key); });
  return entry == graph.metadata.end() ? nullptr : &*entry;
}

// --- Looks weights up by the tensor's name.

std::span<const float> column_importance(const ImportanceMatrix& matrix, std::string_view tensor,
                                         std::uint64_t columns, std::uint64_t expert, std::uint64_t experts) {
  assert(expert < experts);
  const auto found = std::ranges::lower_bound(matrix.tensors, tensor, {}, &TensorImportance::name);
  if (found == matrix.tensors.end() || found->name != tensor) return {};
  const std::span<const float> weights = found->weights;
  if (checked_mul(columns, experts) != weights.size())
    throw Error(ErrorCode::malformed, {.tensor = std::string(tensor)},
                "has {} columns in {} experts, the importance matrix has {} weights", columns, experts,
                weights.size());
  return weights.subspan(static_cast<std::size_t>(expert * columns), static_cast<std::size_t>(columns));
}

}  // namespace loadline::graph
