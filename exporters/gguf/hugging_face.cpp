// What each tensor of a GGUF file holds of the Hugging Face model, and that model made of it.
#include "exporters/gguf/hugging_face.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/recipe/recipe.h"
#include "core/forward/family/settings.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/tensor_names.h"
#include "exporters/exporter.h"
#include "exporters/gguf/gguf.h"
#include "exporters/model_folder.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::exporters {

// --- Maps the model, then joins or cuts what the file has fused or split.

namespace {

// Tensors of a block that llama.cpp takes in either form; parts follow each other along a dimension.
struct FusedSet {
  std::string_view whole;
  std::array<std::string_view, 3> parts;  // the last may be empty
  std::uint64_t axis;
};
constexpr std::array<FusedSet, 4> kFusedSets = {{
    {".attn_qkv.weight", {".attn_q.weight", ".attn_k.weight", ".attn_v.weight"}, 0},
    {".attn_qkv.bias", {".attn_q.bias", ".attn_k.bias", ".attn_v.bias"}, 0},
    {".ffn_gate_up_exps.weight", {".ffn_gate_exps.weight", ".ffn_up_exps.weight", ""}, 1},
    {".ffn_gate_up_exps.bias", {".ffn_gate_exps.bias", ".ffn_up_exps.bias", ""}, 1},
}};

std::vector<std::string> part_names(const FusedSet& set, std::string_view block) {
  std::vector<std::string> names;
  for (const std::string_view part : set.parts)
    if (!part.empty()) names.push_back(std::string(block).append(part));
  return names;
}

using Shapes = std::unordered_map<std::string_view, const graph::Shape*>;

class Fitter {
 public:
  Fitter(const graph::MetaGraph& model, const graph::MetaGraph& gguf, std::vector<Slot> slots)
      : model_(model), slots_(std::move(slots)) {
    for (const graph::Tensor& tensor : gguf.tensors) in_file_.emplace(tensor.name.view(), &tensor.shape);
  }

  std::vector<Slot> fit() {
    for (std::size_t i = 0; i < slots_.size(); ++i) places_.emplace(slots_[i].name.str(), i);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (in_file_.contains(slots_[i].name.view())) continue;
      for (const FusedSet& set : kFusedSets) {
        join(i, set);
        cut(i, set);
      }
    }
    std::erase_if(slots_, [](const Slot& slot) { return slot.recipe.steps.empty(); });
    std::ranges::move(more_, std::back_inserter(slots_));
    return std::move(slots_);
  }

 private:
  // The part of the name before the ending; nothing if it has another ending.
  static std::optional<std::string> block_of(const Slot& slot, std::string_view ending) {
    const std::string_view name = slot.name.view();
    if (ending.empty() || !name.ends_with(ending)) return std::nullopt;
    return std::string(name.substr(0, name.size() - ending.size()));
  }

  // The first part becomes the whole, the others go.
  void join(std::size_t at, const FusedSet& set) {
    const auto block = block_of(slots_[at], set.parts.front());
    if (!block || !in_file_.contains(*block + std::string(set.whole))) return;
    std::vector<std::size_t> parts;
    for (const std::string& name : part_names(set, *block)) {
      const auto found = places_.find(name);
      if (found == places_.end()) return;
      parts.push_back(found->second);
    }
    convert::Recipe joined;
    convert::RecipeStep step{.kind = convert::StepKind::concatenate, .axis = set.axis};
    for (const std::size_t part : parts) {
      step.inputs.push_back(joined.append(slots_[part].recipe));
      slots_[part].recipe.steps.clear();
    }
    joined.steps.push_back(std::move(step));
    add(*block + std::string(set.whole), std::move(joined));
  }

  void cut(std::size_t at, const FusedSet& set) {
    const auto block = block_of(slots_[at], set.whole);
    if (!block) return;
    const std::vector<std::string> names = part_names(set, *block);
    if (!std::ranges::all_of(names, [&](const std::string& name) { return in_file_.contains(name); })) return;
    std::uint64_t first = 0;
    for (const std::string& name : names) {
      const graph::Shape& shape = *in_file_.find(name)->second;
      const std::uint64_t left = set.axis < slots_[at].shape.size() ? slots_[at].shape[set.axis] - first : 0;
      if (set.axis >= shape.size() || shape[set.axis] > left) return;
      first += shape[set.axis];
    }
    if (first != slots_[at].shape[set.axis]) return;
    first = 0;
    for (const std::string& name : names) {
      const graph::Shape& shape = *in_file_.find(name)->second;
      convert::Recipe part = slots_[at].recipe;
      part.then(
          {.kind = convert::StepKind::slice, .axis = set.axis, .first = first, .count = shape[set.axis]});
      first += shape[set.axis];
      add(name, std::move(part));
    }
    slots_[at].recipe.steps.clear();
  }

  void add(std::string name, convert::Recipe recipe) {
    more_.push_back(slot_of(model_, graph::Name(name), std::move(recipe)));
  }

  const graph::MetaGraph& model_;
  std::vector<Slot> slots_, more_;
  Shapes in_file_;
  std::unordered_map<std::string, std::size_t> places_;
};

// Whether `gguf` is a file that uses llama.cpp's names, and `model` has a map to them.
bool are_counterparts(const graph::MetaGraph& model, const graph::MetaGraph& gguf) {
  if (gguf.format != "gguf" || !maps_names(model, {})) return false;
  std::unordered_set<std::string_view> names;
  for (const graph::Tensor& tensor : model.tensors) names.insert(tensor.name.view());
  return std::ranges::none_of(
      gguf.tensors, [&](const graph::Tensor& tensor) { return names.contains(tensor.name.view()); });
}

}  // namespace

std::optional<std::vector<Slot>> counterparts(const graph::MetaGraph& model, const graph::MetaGraph& gguf) {
  if (!are_counterparts(model, gguf)) return std::nullopt;
  return Fitter(model, gguf, gguf_slots(model, {})).fit();
}

bool says_how_it_runs(std::string_view key) {
  if (key.starts_with("general.")) return key == "general.architecture";
  return !is_of_the_file(key) && !key.starts_with("loadline.");
}

std::optional<CounterpartKeys> counterpart_keys(const graph::MetaGraph& model, const graph::MetaGraph& gguf) {
  if (!are_counterparts(model, gguf)) return std::nullopt;
  constexpr const char* kFile = "a GGUF file of the model";
  const Exporter& exporter = find_exporter("gguf");
  ExportOptions options;
  options.ignored_settings = {"*"};  // the keys are compared, and nothing runs
  Layout layout;
  std::string problem;
  try {
    layout = exporter.layout(model, options, kFile);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed) throw;
    problem = error.what();
    options.tokenizer = false;
    layout = exporter.layout(model, options, kFile);
  }
  LayoutFile& file = layout.files.front();
  CounterpartKeys keys{{}, io::SourceFile::from_memory(file.path, std::move(file.header)), problem};
  keys.graph.format = layout.result.format;
  for (graph::MetaEntry& entry : layout.result.metadata)
    if (says_how_it_runs(entry.key) && (problem.empty() || !entry.key.starts_with("tokenizer.")))
      keys.graph.metadata.push_back(std::move(entry));
  return keys;
}

// --- The map to llama.cpp's names, read backwards: config.json from the file's keys, the tensors that it
// asks for, and for each the recipe that undoes what the map did.

namespace {

constexpr std::size_t kMostNamed = 3;

// The type that most numbers of the file have, BF16 for quantized ones.
graph::DType type_of(const graph::MetaGraph& graph) {
  std::map<graph::DType, std::uint64_t> numbers;
  for (const graph::Tensor& tensor : graph.tensors) {
    const bool plain = tensor.dtype == graph::DType::f32 || tensor.dtype == graph::DType::f16;
    numbers[plain ? tensor.dtype : graph::DType::bf16] += graph::element_count(tensor.shape).value_or(0);
  }
  if (numbers.empty()) return graph::DType::bf16;
  return std::ranges::max_element(numbers, {}, [](const auto& row) { return row.second; })->first;
}

// The tensors of the file, with the recipes over the model that make them.
std::vector<convert::ConvertedTensor> converted_tensors(const graph::MetaGraph& gguf, std::vector<Slot> slots,
                                                        std::vector<bool>& used) {
  std::unordered_map<std::string_view, std::uint32_t> places;
  for (std::uint32_t i = 0; i < gguf.tensors.size(); ++i) places.emplace(gguf.tensors[i].name.view(), i);
  std::vector<convert::ConvertedTensor> converted;
  for (Slot& slot : slots) {
    const auto found = places.find(slot.name.view());
    if (found == places.end()) continue;
    const graph::Shape& shape = gguf.tensors[found->second].shape;
    if (shape != slot.shape)
      throw Error(ErrorCode::malformed, {.file = gguf.files.front().path, .tensor = slot.name.str()},
                  "has the shape [{}], the file's keys say [{}]", fmt::join(shape, ", "),
                  fmt::join(slot.shape, ", "));
    used[found->second] = true;
    converted.push_back({graph::TensorId{found->second}, std::move(slot.recipe)});
  }
  return converted;
}

std::optional<std::uint64_t> whole_number(const graph::MetaValue& value) {
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
void check_layers(const graph::MetaGraph& gguf, const std::vector<std::string>& unused) {
  const std::string* const architecture = graph::find_text(gguf, "general.architecture");
  const graph::MetaEntry* count = nullptr;
  for (const graph::MetaEntry& entry : gguf.metadata)
    if (architecture != nullptr && entry.key == *architecture + ".block_count") count = &entry;
  if (count == nullptr) return;
  for (const std::string& name : unused) {
    const std::optional<std::uint64_t> layer =
        name.starts_with("blk.") ? graph::layer_number(name) : std::nullopt;
    const auto layers = whole_number(count->value);
    if (layer && layers && *layer >= *layers)
      throw Error(ErrorCode::malformed, {.file = gguf.files.front().path, .tensor = name},
                  "is of layer {}, and the key '{}' says that there are {}", *layer, count->key, *layers);
  }
}

// The keys of the architecture that the Hugging Face model would lose, and that are seen neither in its
// embedding nor stand outside of config.json.
std::vector<forward::Setting> unsaid_keys(const graph::MetaGraph& gguf,
                                          const std::vector<std::string>& held) {
  constexpr std::array<std::string_view, 2> kElsewhere = {".vocab_size", ".pooling_type"};
  std::vector<forward::Setting> unsaid;
  const std::string* const architecture = graph::find_text(gguf, "general.architecture");
  for (const graph::MetaEntry& entry : gguf.metadata)
    if (architecture != nullptr && entry.key.starts_with(*architecture + ".") &&
        std::ranges::find(held, entry.key) == held.end() &&
        std::ranges::none_of(kElsewhere, [&](std::string_view end) { return entry.key.ends_with(end); }))
      unsaid.push_back({entry.key, graph::meta_text(entry.value)});
  return unsaid;
}

// The keys whose value the written files hold too: what the configuration was read from, what the
// way forth would make of it again, what speaks of the file alone, and the tokenizer's where it is
// written.
std::vector<std::string> held_keys(const graph::MetaGraph& gguf, const forward::GgufConfig& config,
                                   const forward::GgufMap& forth, bool with_tokenizer) {
  std::vector<std::string> held = config.keys;
  for (const forward::MappedKey& key : forth.keys)
    if (const graph::MetaValue* const value = graph::find_metadata(gguf, key.name);
        value && *value == key_value(key))
      held.push_back(key.name);
  for (const graph::MetaEntry& entry : gguf.metadata)
    if (is_of_the_file(entry.key) || (with_tokenizer && entry.key.starts_with("tokenizer.")))
      held.push_back(entry.key);
  return held;
}

}  // namespace

std::optional<HuggingFaceModel> hugging_face_model(const graph::MetaGraph& graph,
                                                   const ExportOptions& options) {
  const auto found = options.keep_names.value_or(false) ? std::nullopt : forward::gguf_config(graph);
  if (!found) return std::nullopt;
  const forward::GgufConfig& config = *found;
  const graph::DType type = options.outtype.value_or(type_of(graph));
  HuggingFaceModel result;
  result.config = cast_config(config.json, type, true);
  result.remarks = config.remarks;
  // the keys there are what may be wrong
  const std::string path = graph.files.empty() ? std::string(graph::kConfigKey) : graph.files.front().path;
  const graph::MetaGraph model = forward::config_graph(result.config, path);
  auto forms = counterparts(model, graph);
  if (!forms) return std::nullopt;
  std::vector<bool> used(graph.tensors.size(), false);
  const convert::RecipeInverter back(model, graph, converted_tensors(graph, std::move(*forms), used));
  const forward::GgufMap forth =
      forward::map_to_gguf(*config.family, forward::ModelConfig(result.config, path), model);
  const std::vector<std::string>& dropped = forth.dropped;
  std::vector<SlotDraft> drafts;
  for (std::uint32_t i = 0; i < model.tensors.size(); ++i) {
    const graph::TensorId id{i};
    auto recipe = back.recipe_for(id);
    if (!recipe && std::ranges::find(dropped, model.tensor(id).name.str()) != dropped.end()) continue;
    if (!recipe)
      throw Error(ErrorCode::unsupported,
                  {.file = graph.files.front().path, .tensor = model.tensor(id).name.str()},
                  "the file does not hold this tensor of the model that its keys describe");
    drafts.push_back({slot_of(graph, model.tensor(id).name, std::move(*recipe))});
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
  tokenizer::HuggingFaceTokenizer tokenizer = tokenizer::hugging_face_tokenizer(graph);
  result.held_keys = held_keys(graph, config, forth, !tokenizer.files.empty());
  const std::vector<forward::Setting> unsaid = unsaid_keys(graph, result.held_keys);
  check_ignored(unsaid, options);
  (void)ignored_settings(unsaid, options, path, "config.json has no setting that says this");
  result.texts = std::move(tokenizer.files);
  std::ranges::move(tokenizer.lost, std::back_inserter(result.lost));
  arrange(graph, options, drafts);
  result.slots = plain_slots(std::move(drafts), type);
  return result;
}

}  // namespace loadline::exporters
