// The map to llama.cpp's names, read backwards: config.json from the file's keys, the tensors that it asks
// for, and for each the recipe that undoes what the map did.
#include "exporters/gguf/hugging_face_model.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/cast.h"
#include "core/convert/recipe/invert_recipe.h"
#include "core/forward/gguf/gguf_config.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/config_graph.h"
#include "core/graph/names/module_tree.h"
#include "exporters/cast_config.h"
#include "exporters/common.h"
#include "exporters/gguf/gguf.h"
#include "exporters/gguf/gguf_model.h"
#include "exporters/gguf/hugging_face.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline {
namespace {

constexpr std::size_t kMostNamed = 3;

// The type that most numbers of the file have, BF16 for quantised ones.
DType type_of(const MetaGraph& graph) {
  std::map<DType, std::uint64_t> numbers;
  for (const Tensor& tensor : graph.tensors) {
    const bool plain = tensor.dtype == DType::f32 || tensor.dtype == DType::f16;
    numbers[plain ? tensor.dtype : DType::bf16] += element_count(tensor.shape).value_or(0);
  }
  if (numbers.empty()) return DType::bf16;
  return std::ranges::max_element(numbers, {}, [](const auto& row) { return row.second; })->first;
}

// The tensors of the file, with the recipes over the model that make them.
std::vector<ConvertedTensor> converted_tensors(const MetaGraph& gguf, std::vector<Slot> slots,
                                               std::vector<bool>& used) {
  std::unordered_map<std::string_view, std::uint32_t> places;
  for (std::uint32_t i = 0; i < gguf.tensors.size(); ++i) places.emplace(gguf.tensors[i].name.view(), i);
  std::vector<ConvertedTensor> converted;
  for (Slot& slot : slots) {
    const auto found = places.find(slot.name.view());
    if (found == places.end()) continue;
    const Shape& shape = gguf.tensors[found->second].shape;
    if (shape != slot.shape)
      throw Error(ErrorCode::malformed, {.file = gguf.files.front().path, .tensor = slot.name.str()},
                  "has the shape [{}], the file's keys say [{}]", fmt::join(shape, ", "),
                  fmt::join(slot.shape, ", "));
    used[found->second] = true;
    converted.push_back({TensorId{found->second}, std::move(slot.recipe)});
  }
  return converted;
}

std::optional<std::uint64_t> whole_number(const MetaValue& value) {
  return std::visit(
      [](const auto& one) -> std::optional<std::uint64_t> {
        using Type = std::decay_t<decltype(one)>;
        if constexpr (std::is_integral_v<Type> && !std::is_same_v<Type, bool>)
          return one < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(one));
        else
          return std::nullopt;
      },
      value);
}

// A tensor of a layer that the keys do not count would be lost with all of its layer.
void check_layers(const MetaGraph& gguf, const std::vector<std::string>& unused) {
  const std::string* const architecture = find_text(gguf, "general.architecture");
  const MetaEntry* count = nullptr;
  for (const MetaEntry& entry : gguf.metadata)
    if (architecture != nullptr && entry.key == *architecture + ".block_count") count = &entry;
  if (count == nullptr) return;
  for (const std::string& name : unused) {
    const std::optional<std::uint64_t> layer = name.starts_with("blk.") ? layer_number(name) : std::nullopt;
    const auto layers = whole_number(count->value);
    if (layer && layers && *layer >= *layers)
      throw Error(ErrorCode::malformed, {.file = gguf.files.front().path, .tensor = name},
                  "is of layer {}, and the key '{}' says that there are {}", *layer, count->key, *layers);
  }
}

Slot restored_slot(const MetaGraph& model, TensorId id, const MetaGraph& gguf, Recipe recipe, DType outtype) {
  const Tensor& tensor = model.tensor(id);
  const Form form = recipe_forms(gguf, recipe).back();
  DType to = form.dtype;
  if (form.dtype != outtype && can_cast(form.dtype, outtype)) {
    recipe.then({.kind = StepKind::cast, .dtype = outtype});
    to = outtype;
  }
  const std::uint64_t bytes = slot_bytes(tensor.name, to, tensor.shape);
  return {tensor.name, to, tensor.shape, std::move(recipe), 0, bytes};
}

}  // namespace

std::optional<HuggingFaceModel> hugging_face_model(const MetaGraph& graph, const ExportOptions& options) {
  const auto found = options.keep_names.value_or(false) ? std::nullopt : gguf_config(graph);
  if (!found) return std::nullopt;
  const GgufConfig& config = *found;
  const DType type = options.outtype.value_or(type_of(graph));
  HuggingFaceModel result;
  result.config = cast_config(config.json, type, true);
  result.remarks = config.remarks;
  // the keys there are what may be wrong
  const std::string path = graph.files.empty() ? std::string(kConfigKey) : graph.files.front().path;
  const MetaGraph model = config_graph(result.config, path);
  auto forms = counterparts(model, graph);
  if (!forms) return std::nullopt;
  std::vector<bool> used(graph.tensors.size(), false);
  const RecipeInverter back(model, graph, converted_tensors(graph, std::move(*forms), used));
  const GgufMap forth = map_to_gguf(*config.family, ModelConfig(result.config, path), model);
  const std::vector<std::string>& dropped = forth.dropped;
  for (std::uint32_t i = 0; i < model.tensors.size(); ++i) {
    const TensorId id{i};
    auto recipe = back.recipe_for(id);
    if (!recipe && std::ranges::find(dropped, model.tensor(id).name.str()) != dropped.end()) continue;
    if (!recipe)
      throw Error(ErrorCode::unsupported,
                  {.file = graph.files.front().path, .tensor = model.tensor(id).name.str()},
                  "the file does not hold this tensor of the model that its keys describe");
    result.slots.push_back(restored_slot(model, id, graph, std::move(*recipe), type));
  }
  if (!dropped.empty())
    result.lost.push_back(fmt::format("{} of the model {} not in the file, llama.cpp has no use for {}: {}",
                                      counted(dropped.size(), "tensor"), dropped.size() == 1 ? "is" : "are",
                                      dropped.size() == 1 ? "it" : "them", join_names(dropped, kMostNamed)));
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i]) unused.push_back(graph.tensors[i].name.str());
  check_layers(graph, unused);
  if (!unused.empty())
    result.lost.push_back(fmt::format("{} {} not written, the model's own names have no place for {}: {}",
                                      counted(unused.size(), "tensor"), unused.size() == 1 ? "is" : "are",
                                      unused.size() == 1 ? "it" : "them", join_names(unused, kMostNamed)));
  HuggingFaceTokenizer tokenizer = hugging_face_tokenizer(graph);
  result.held_keys = config.keys;
  // the way forth makes the same of the configuration
  for (const MappedKey& key : forth.keys)
    if (const MetaValue* const value = find_metadata(graph, key.name); value && *value == key_value(key))
      result.held_keys.push_back(key.name);
  for (const MetaEntry& entry : graph.metadata)
    if (is_of_the_file(entry.key) || (!tokenizer.files.empty() && entry.key.starts_with("tokenizer.")))
      result.held_keys.push_back(entry.key);
  result.texts = std::move(tokenizer.files);
  std::ranges::move(tokenizer.lost, std::back_inserter(result.lost));
  check_total(result.slots);
  arrange(graph, options, result.slots);
  return result;
}

}  // namespace loadline
