// Pairs the adapter's tensors with weights of the base, and makes recipes.
#include "exporters/merge/merge_lora.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/graph/packed/quantization.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::exporters {

// --- Finds what each tensor of the adapter is for, then writes the recipes.
//
//   base_model.model.MODULE.lora_A.weight          [r, in]      lora_B.weight [out, r]
//   base_model.model.MODULE.lora_embedding_A       [r, rows]    lora_embedding_B [width, r]
//   base_model.model.MODULE.weight                 in place of the base's weight
//   base_model.model.MODULE.base_layer.weight      the same, of a module that also has factors

namespace {

constexpr std::string_view kPrefix = "base_model.model.";

struct Ending {
  std::string_view text;
  bool second = false;  // B
  bool embedding = false;
};
constexpr std::array kEndings = {
    Ending{".lora_A.weight", false, false}, Ending{".lora_B.weight", true, false},
    Ending{".lora_embedding_A", false, true}, Ending{".lora_embedding_B", true, true}};

// The factors of one module: positions in the adapter.
struct Factors {
  std::optional<graph::TensorId> a, b;
  bool embedding = false;
};

bool is_embedding(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"embed_tokens.weight", "wte.weight",
                                                      "word_embeddings.weight", "embed_in.weight"};
  return std::ranges::any_of(kNames, [&](std::string_view end) { return name.ends_with(end); });
}

// A weight of the base, under the tensor that recipes are kept for.
struct Target {
  graph::TensorId tensor{};
  std::optional<std::uint32_t> packed;
  graph::DType dtype{};
  graph::Shape shape;
};

class Merger {
 public:
  Merger(const graph::MetaGraph& base, const graph::MetaGraph& adapter, const LoraConfig& config,
         std::optional<graph::DType> outtype)
      : base_(base), adapter_(adapter), config_(config), outtype_(outtype) {
    for (std::uint32_t i = 0; i < base.tensors.size(); ++i)
      targets_.emplace(base.tensors[i].name.view(),
                       Target{graph::TensorId{i}, {}, base.tensors[i].dtype, base.tensors[i].shape});
    for (std::uint32_t i = 0; i < base.logical.size(); ++i) {
      const graph::LogicalTensor& weight = base.logical[i];
      targets_.insert_or_assign(weight.name.view(), Target{weight.codes, i, weight.dtype, weight.shape});
    }
    for (const auto& group : graph::tied_groups(base))
      for (const graph::TensorId id : group)
        tied_.emplace(graph::index(id), group.front() == id ? group[1] : group.front());
    recipes_.written = base.tensors.size();
  }

  LoraMerge merge() {
    std::map<std::string, Factors> modules;
    for (std::uint32_t i = 0; i < adapter_.tensors.size(); ++i) sort_in(graph::TensorId{i}, modules);
    for (const auto& [module, factors] : modules) add_factors(module, factors);
    result_.merged = merged_.size();
    result_.replaced = recipes_.instead.size() - merged_.size();
    if (recipes_.instead.empty())
      throw Error(ErrorCode::malformed, {.file = adapter_.files.front().path}, "has no LoRA tensors");
    result_.graph = both();
    result_.recipes = std::make_shared<const TensorRecipes>(std::move(recipes_));
    return std::move(result_);
  }

 private:
  template <typename... Values>
  [[noreturn]] void fail(ErrorCode code, const graph::Name& tensor, fmt::format_string<Values...> detail,
                         const Values&... values) const {
    throw Error(code, {.file = adapter_.files.front().path, .tensor = tensor.str()}, detail, values...);
  }

  [[noreturn]] void fail_twice(graph::TensorId asking) const {
    fail(ErrorCode::malformed, adapter_.tensor(asking).name, "two tensors are for the same weight");
  }

  void sort_in(graph::TensorId id, std::map<std::string, Factors>& modules) {
    const graph::Name& stored = adapter_.tensor(id).name;
    std::string_view name = stored.view();
    if (!name.starts_with(kPrefix))
      fail(ErrorCode::unsupported, stored, "is not named as PEFT names tensors: {}...", kPrefix);
    name.remove_prefix(kPrefix.size());
    for (const Ending& ending : kEndings) {
      if (!name.ends_with(ending.text)) continue;
      Factors& factors = modules[std::string(name.substr(0, name.size() - ending.text.size()))];
      if ((factors.a || factors.b) && factors.embedding != ending.embedding)
        fail(ErrorCode::malformed, stored, "the module has factors of two kinds");
      factors.embedding = ending.embedding;
      (ending.second ? factors.b : factors.a) = id;
      return;
    }
    if (name.find(".lora_magnitude_vector") != std::string_view::npos)
      fail(ErrorCode::unsupported, stored, "belongs to DoRA, which is not a sum of weights");
    if (name.find(".lora_") != std::string_view::npos ||
        name.find(".modules_to_save.") != std::string_view::npos)
      fail(ErrorCode::unsupported, stored, "is not a LoRA A or B matrix");
    replace(id, std::string(name));
  }

  // The base's weight of that name. The path of a module may begin with the name of the inner model, which
  // checkpoints of the inner model alone leave out, or the other way round.
  const Target& target(graph::TensorId asking, const std::string& name) const {
    std::vector<std::string> names = {name};
    if (const std::size_t dot = name.find('.'); dot != std::string::npos)
      names.push_back(name.substr(dot + 1));
    names.push_back("model." + name);
    names.push_back("transformer." + name);
    for (const std::string& candidate : names)
      if (const auto found = targets_.find(candidate); found != targets_.end()) {
        refuse_tied(asking, found->second);
        return found->second;
      }
    fail(ErrorCode::unsupported, adapter_.tensor(asking).name, "the base has no weight '{}'",
         safe_display(name, 100));
  }

  void refuse_tied(graph::TensorId asking, const Target& target) const {
    const auto tie = tied_.find(graph::index(target.tensor));
    if (tie != tied_.end())
      fail(ErrorCode::unsupported, adapter_.tensor(asking).name,
           "the base ties '{}' to '{}': changing one would change both",
           safe_display(base_.tensor(target.tensor).name, 100),
           safe_display(base_.tensor(tie->second).name, 100));
  }

  // In the combined graph the adapter's tensors follow the base's.
  graph::TensorId moved(graph::TensorId id) const {
    return graph::TensorId{static_cast<std::uint32_t>(base_.tensors.size() + graph::index(id))};
  }

  void replace(graph::TensorId id, std::string name) {
    constexpr std::string_view kBaseLayer = ".base_layer.";
    const std::size_t inside = name.find(kBaseLayer);
    if (inside != std::string::npos) name.replace(inside, kBaseLayer.size(), ".");
    const graph::Tensor& tensor = adapter_.tensor(id);
    const Target& of = target(id, name);
    if (tensor.shape != of.shape)
      fail(ErrorCode::unsupported, tensor.name, "is {}, the base's weight {}: config.json would not fit",
           graph::shape_words(tensor.shape), graph::shape_words(of.shape));
    if (inside == std::string::npos && is_embedding(name) &&
        graph::config_flag(base_, "tie_word_embeddings").value_or(false))
      fail(ErrorCode::unsupported, tensor.name,
           "the base's output head is tied to this embedding: replacing one would change both");
    if (of.packed) require_outtype(id, of);
    convert::Recipe recipe = convert::take(moved(id));
    if (tensor.dtype != of.dtype) {
      const graph::DType to = convert::is_cast_target(of.dtype) ? of.dtype : outtype_.value_or(tensor.dtype);
      if (!convert::can_cast(tensor.dtype, to))
        fail(ErrorCode::unsupported, tensor.name, "is {}, which cannot become the base's {}",
             graph::dtype_info(tensor.dtype).name, graph::dtype_info(to).name);
      if (tensor.dtype != to) recipe.then({.kind = convert::StepKind::cast, .dtype = to});
    }
    if (!recipes_.instead.emplace(graph::index(of.tensor), std::move(recipe)).second) fail_twice(id);
  }

  void add_factors(const std::string& module, const Factors& factors) {
    const graph::TensorId known = factors.a ? *factors.a : *factors.b;
    if (!factors.a || !factors.b)
      fail(ErrorCode::malformed, adapter_.tensor(known).name, "its other factor, lora_{}, is missing",
           factors.a ? "B" : "A");
    const graph::Tensor &a = adapter_.tensor(*factors.a), &b = adapter_.tensor(*factors.b);
    for (const graph::Tensor* const factor : {&a, &b}) {
      if (factor->shape.size() != 2)
        fail(ErrorCode::unsupported, factor->name, "is {}: only matrices can be merged",
             graph::shape_words(factor->shape));
      if (!convert::is_cast_target(factor->dtype))
        fail(ErrorCode::unsupported, factor->name, "is {}, not F32, F16 or BF16",
             graph::dtype_info(factor->dtype).name);
    }
    if (const std::uint64_t rank = config_.rank_of(module); a.shape[0] != rank || b.shape[1] != rank)
      fail(ErrorCode::malformed, a.name, "has rank {}, lora_B {}, the configuration says {}", a.shape[0],
           b.shape[1], rank);
    if (const std::string_view setting = config_.kept_out_by(module); !setting.empty())
      fail(ErrorCode::unsupported, a.name, "the configuration's {} keeps this module out", setting);
    const Target& of = target(known, module + ".weight");
    const graph::Shape plain = {b.shape[0], a.shape[1]}, turned = {a.shape[1], b.shape[0]};
    // embeddings always are
    const bool transposed = factors.embedding || (plain == turned ? square_is_turned() : of.shape == turned);
    if (of.shape != (transposed ? turned : plain))
      fail(ErrorCode::malformed, a.name, "gives {}, the base's weight is {}", graph::shape_words(plain),
           graph::shape_words(of.shape));
    if (!merged_.insert(graph::index(of.tensor)).second) fail_twice(known);
    convert::Recipe& recipe = recipes_.instead[graph::index(of.tensor)];
    if (recipe.steps.empty()) recipe = base_numbers(*factors.a, of);  // else the adapter holds the weight too
    const auto add = [&](convert::RecipeStep step) {
      recipe.steps.push_back(std::move(step));
      return static_cast<std::uint32_t>(recipe.steps.size() - 1);
    };
    const std::uint32_t weight = static_cast<std::uint32_t>(recipe.steps.size() - 1);
    std::uint32_t left =
        add({.kind = convert::StepKind::take, .tensor = moved(transposed ? *factors.a : *factors.b)});
    if (transposed) left = add({.kind = convert::StepKind::transpose, .inputs = {left}});
    std::uint32_t right =
        add({.kind = convert::StepKind::take, .tensor = moved(transposed ? *factors.b : *factors.a)});
    if (transposed) right = add({.kind = convert::StepKind::transpose, .inputs = {right}});
    add({.kind = convert::StepKind::add_product,
         .inputs = {weight, left, right},
         .value = config_.scale_of(module)});
  }

  // PEFT goes by the class of the module, whatever the configuration says: Conv1D, in models of these types.
  bool square_is_turned() const {
    const auto type = graph::model_family(base_);
    if (!type) return config_.fan_in_fan_out;
    constexpr std::array<std::string_view, 4> kTypes = {"gpt2", "openai-gpt", "decision_transformer",
                                                        "imagegpt"};
    return std::ranges::find(kTypes, *type) != kTypes.end();
  }

  void require_outtype(graph::TensorId asking, const Target& of) const {
    if (!outtype_)
      throw Error(ErrorCode::usage, {.tensor = adapter_.tensor(asking).name.str()},
                  "the base's weight is {}: the merged weight needs a type to be written in",
                  of.packed ? "packed" : graph::dtype_info(of.dtype).name)
          .with({"outtype", "bf16"});
  }

  // The base's weight as numbers to which a product can be added.
  convert::Recipe base_numbers(graph::TensorId asking, const Target& of) const {
    if (!of.packed && convert::is_cast_target(of.dtype)) return convert::take(of.tensor);
    const bool float64 = of.dtype == graph::DType::f64;
    if (!of.packed && !float64 && !convert::can_become_f32(of.dtype))
      fail(ErrorCode::unsupported, adapter_.tensor(asking).name, "the base's weight is {}, not floats",
           graph::dtype_info(of.dtype).name);
    require_outtype(asking, of);
    if (of.packed) return convert::unpack(*of.packed);
    convert::Recipe recipe = convert::take(of.tensor);
    if (float64)
      recipe.then({.kind = convert::StepKind::cast, .dtype = graph::DType::f32});
    else
      recipe.then({.kind = convert::StepKind::dequantize});
    return recipe;
  }

  graph::MetaGraphPtr both() const {
    graph::MetaGraph graph = base_;
    const auto files = static_cast<std::uint32_t>(graph.files.size());
    const auto storages = static_cast<std::uint32_t>(graph.storages.size());
    graph.files.insert(graph.files.end(), adapter_.files.begin(), adapter_.files.end());
    for (graph::Storage storage : adapter_.storages) {
      if (storage.file != graph::kNoFile)
        storage.file = graph::FileId{static_cast<std::uint32_t>(graph::index(storage.file)) + files};
      graph.storages.push_back(storage);
    }
    for (graph::Tensor tensor : adapter_.tensors) {
      tensor.storage = graph::StorageId{static_cast<std::uint32_t>(graph::index(tensor.storage)) + storages};
      graph.tensors.push_back(std::move(tensor));
    }
    return std::make_shared<const graph::MetaGraph>(std::move(graph));
  }

  const graph::MetaGraph &base_, &adapter_;
  const LoraConfig& config_;
  std::optional<graph::DType> outtype_;
  std::unordered_map<std::string_view, Target> targets_;
  std::unordered_map<std::size_t, graph::TensorId> tied_;  // another tensor on the same bytes
  TensorRecipes recipes_;
  std::set<std::size_t> merged_;  // positions of weights that get a product
  LoraMerge result_;
};

}  // namespace

LoraMerge merge_lora(const graph::MetaGraph& base, const graph::MetaGraph& adapter, const LoraConfig& config,
                     std::optional<graph::DType> outtype) {
  return Merger(base, adapter, config, outtype).merge();
}

}  // namespace loadline::exporters
