// Reads "quantization_config", MLX's "quantization", and the type of the weights.
#include "core/graph/packed/quantization.h"

#include <nlohmann/json.hpp>

namespace loadline {
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
  // only the levels that are read are built: a deeply nested file cannot make anything recurse
  const auto keep = [](int depth, Json::parse_event_t, Json&) { return depth <= 4; };
  const Json config = Json::parse(*text, keep, false);
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

}  // namespace loadline
