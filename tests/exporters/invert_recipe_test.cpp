// Recipes read backwards: random chains give their numbers back, and every published model of a mapped family
// can be restored from its GGUF tensors.
#include "core/convert/recipe/recipe.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/known_models.h"
#include "exporters/gguf/gguf.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace loadline {
namespace {

TensorId add(MetaGraph& graph, const std::string& name, DType dtype, const Shape& shape) {
  const StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
  graph.storages.push_back(shapes_only_storage(*byte_size(dtype, *element_count(shape))));
  graph.tensors.push_back({name, dtype, shape, {}, storage, 0});
  return TensorId{static_cast<std::uint32_t>(graph.tensors.size() - 1)};
}

using Bytes = std::vector<std::vector<std::byte>>;  // by tensor

std::vector<std::byte> run(const MetaGraph& graph, const Bytes& bytes, const Recipe& recipe) {
  const ReadTensor read = [&](TensorId id, std::uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), bytes[index(id)].data() + offset, out.size());
  };
  RecipeReader reader(graph, read, recipe, RecipeReader::kLeastMemory);
  std::vector<std::byte> result(static_cast<std::size_t>(reader.bytes()));
  reader.read(0, result);
  return result;
}

// A chain of moves of a tensor [4 x 6, 8], cut or joined on the way.
class Chain {
 public:
  explicit Chain(std::mt19937& random) : random_(random) {}

  RecipeStep move(const Form& form) {
    switch (random_() % 4) {
      case 0:
        return {.kind = StepKind::permute_rows, .a = 2, .b = 3};
      case 1:
        return {.kind = StepKind::add_constant, .value = 1};
      case 2:
        if (form.shape.size() > 1 && form.shape[form.shape.size() - 2] % 6 == 0)
          return {.kind = StepKind::transpose};
        [[fallthrough]];
      default:
        return {.kind = StepKind::reshape, .shape = {6, *element_count(form.shape) / 6}};
    }
  }

 private:
  std::mt19937& random_;
};

TEST(InvertRecipe, RandomChainsGiveTheirNumbersBack) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 200; ++turn) {
    MetaGraph model;
    const TensorId weight = add(model, "w", DType::f32, {24, 8}),
                   other = add(model, "o", DType::f32, {24, 8});
    Bytes bytes(2, std::vector<std::byte>(24 * 8 * 4));
    for (auto& tensor : bytes)
      for (std::size_t i = 0; i < tensor.size(); i += 4) {
        const auto value = static_cast<float>(random() % 1000);
        std::memcpy(&tensor[i], &value, 4);
      }
    // `w` is cut in three along its rows, each part goes a way of its own, and the first is joined with `o`
    std::vector<Recipe> recipes;
    std::uint64_t first = 0;
    for (const std::uint64_t rows : {6u, 12u, 6u}) {
      Recipe recipe = take(weight);
      recipe.then({.kind = StepKind::slice, .axis = 0, .first = first, .count = rows});
      first += rows;
      Chain chain(random);
      for (int i = 0; i < 3; ++i) {
        Recipe longer = recipe;
        longer.then(chain.move(recipe_forms(model, recipe).back()));
        try {
          (void)recipe_forms(model, longer);
          recipe = std::move(longer);
        } catch (const Error&) {  // a move that does not fit this shape
        }
      }
      recipes.push_back(std::move(recipe));
    }
    Recipe joined = recipes[0];
    const auto left = static_cast<std::uint32_t>(joined.steps.size() - 1);
    const std::uint32_t right = joined.append(take(other));
    joined.steps.push_back({.kind = StepKind::reshape, .inputs = {left}, .shape = {48}});
    joined.steps.push_back({.kind = StepKind::reshape, .inputs = {right}, .shape = {192}});
    joined.steps.push_back({.kind = StepKind::concatenate, .inputs = {right + 2, right + 1}, .axis = 0});
    recipes[0] = std::move(joined);

    MetaGraph converted;
    Bytes made;
    std::vector<ConvertedTensor> tensors;
    for (const Recipe& recipe : recipes) {
      const Form form = recipe_forms(model, recipe).back();
      tensors.push_back({add(converted, "c" + std::to_string(made.size()), form.dtype, form.shape), recipe});
      made.push_back(run(model, bytes, recipe));
    }
    const RecipeInverter back(model, converted, tensors);
    for (const TensorId id : {weight, other}) {
      const auto recipe = back.recipe_for(id);
      ASSERT_TRUE(recipe) << turn;
      EXPECT_EQ(recipe_forms(converted, *recipe).back().shape, model.tensor(id).shape);
      EXPECT_EQ(run(converted, made, *recipe), bytes[index(id)]) << turn;
    }
    tensors.pop_back();
    EXPECT_FALSE(RecipeInverter(model, converted, tensors).recipe_for(weight)) << "a third is missing";
  }
}

TEST(InvertRecipe, PublishedModelsCanBeRestored) {
  std::size_t families = 0;
  for (const Preset& preset : presets()) {
    const ModelConfig config(preset.config_json, std::string(preset.id));
    const GgufFamily* const family = find_gguf_family(config);
    if (family == nullptr) continue;
    ++families;
    const MetaGraph model = config_graph(preset.config_json, std::string(preset.id));
    const std::vector<std::string> dropped = map_to_gguf(*family, config, model).dropped;
    MetaGraph gguf;
    std::vector<ConvertedTensor> tensors;
    for (const Slot& slot : gguf_slots(model, {.outtype = DType::f16}))
      tensors.push_back({add(gguf, slot.name.str(), slot.dtype, slot.shape), slot.recipe});
    const RecipeInverter back(model, gguf, std::move(tensors));
    for (std::uint32_t i = 0; i < model.tensors.size(); ++i) {
      const auto recipe = back.recipe_for(TensorId{i});
      const std::string name = model.tensors[i].name.str();
      const bool written = std::ranges::find(dropped, name) == dropped.end();
      if (model.logical.empty() && written) ASSERT_TRUE(recipe) << preset.id << ' ' << name;
      if (recipe) EXPECT_EQ(recipe_forms(gguf, *recipe).back().shape, model.tensors[i].shape) << preset.id;
    }
  }
  EXPECT_GE(families, 10u);
}

}  // namespace
}  // namespace loadline
