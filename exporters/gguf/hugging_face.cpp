// Maps the model, then joins or cuts what the file has fused or split.
#include "exporters/gguf/hugging_face.h"

#include "core/base/error.h"
#include "core/convert/recipe/recipe.h"
#include "exporters/common.h"
#include "exporters/gguf/gguf.h"
#include "exporters/gguf/gguf_model.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace loadline {
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

using Shapes = std::unordered_map<std::string_view, const Shape*>;

class Fitter {
 public:
  Fitter(const MetaGraph& model, const MetaGraph& gguf, std::vector<Slot> slots)
      : model_(model), slots_(std::move(slots)) {
    for (const Tensor& tensor : gguf.tensors) in_file_.emplace(tensor.name.view(), &tensor.shape);
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
    Recipe joined;
    RecipeStep step{.kind = StepKind::concatenate, .axis = set.axis};
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
      const Shape& shape = *in_file_.find(name)->second;
      const std::uint64_t left = set.axis < slots_[at].shape.size() ? slots_[at].shape[set.axis] - first : 0;
      if (set.axis >= shape.size() || shape[set.axis] > left) return;
      first += shape[set.axis];
    }
    if (first != slots_[at].shape[set.axis]) return;
    first = 0;
    for (const std::string& name : names) {
      const Shape& shape = *in_file_.find(name)->second;
      Recipe part = slots_[at].recipe;
      part.then({.kind = StepKind::slice, .axis = set.axis, .first = first, .count = shape[set.axis]});
      first += shape[set.axis];
      add(name, std::move(part));
    }
    slots_[at].recipe.steps.clear();
  }

  void add(std::string name, Recipe recipe) {
    Form form = recipe_forms(model_, recipe).back();
    const Name stored(name);
    const std::uint64_t bytes = slot_bytes(stored, form.dtype, form.shape);
    more_.push_back({stored, form.dtype, std::move(form.shape), std::move(recipe), 0, bytes});
  }

  const MetaGraph& model_;
  std::vector<Slot> slots_, more_;
  Shapes in_file_;
  std::unordered_map<std::string, std::size_t> places_;
};

// Whether `gguf` is a file that uses llama.cpp's names, and `model` has a map to them.
bool are_counterparts(const MetaGraph& model, const MetaGraph& gguf) {
  if (gguf.format != "gguf" || !maps_names(model, {})) return false;
  std::unordered_set<std::string_view> names;
  for (const Tensor& tensor : model.tensors) names.insert(tensor.name.view());
  return std::ranges::none_of(gguf.tensors,
                              [&](const Tensor& tensor) { return names.contains(tensor.name.view()); });
}

}  // namespace

std::optional<std::vector<Slot>> counterparts(const MetaGraph& model, const MetaGraph& gguf) {
  if (!are_counterparts(model, gguf)) return std::nullopt;
  return Fitter(model, gguf, gguf_slots(model, {})).fit();
}

bool says_how_it_runs(std::string_view key) {
  if (key.starts_with("general.")) return key == "general.architecture";
  return !is_of_the_file(key) && !key.starts_with("loadline.");
}

std::optional<CounterpartKeys> counterpart_keys(const MetaGraph& model, const MetaGraph& gguf) {
  if (!are_counterparts(model, gguf)) return std::nullopt;
  constexpr const char* kFile = "a GGUF file of the model";
  const Exporter& exporter = find_exporter("gguf");
  Layout layout;
  std::string problem;
  try {
    layout = exporter.layout(model, {}, kFile);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed) throw;
    problem = error.what();
    ExportOptions options;
    options.tokenizer = false;
    layout = exporter.layout(model, options, kFile);
  }
  LayoutFile& file = layout.files.front();
  CounterpartKeys keys{{}, SourceFile::from_memory(file.path, std::move(file.header)), problem};
  keys.graph.format = layout.result.format;
  for (MetaEntry& entry : layout.result.metadata)
    if (says_how_it_runs(entry.key) && (problem.empty() || !entry.key.starts_with("tokenizer.")))
      keys.graph.metadata.push_back(std::move(entry));
  return keys;
}

}  // namespace loadline
