// From a converted model back to its original: the recipes of a conversion, read backwards.
#pragma once

#include "core/convert/recipe/recipe.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace loadline {

// A tensor of the converted model, and the recipe over the original that made it.
struct ConvertedTensor {
  TensorId tensor{};
  Recipe recipe;
};

// Inverts moves of numbers (slice, concatenate, permute_rows, transpose, reshape) and add_constant. Casts and
// quantisation count as nothing: what they rounded away stays lost. Neither graph needs bytes, and both must
// outlive it.
class RecipeInverter {
 public:
  // Throws as recipe_forms() does.
  RecipeInverter(const MetaGraph& original, const MetaGraph& converted, std::vector<ConvertedTensor> tensors);

  // A recipe over the converted model for the numbers of a tensor of the original, in the type that they have
  // there, F32 for blocks. Nothing if the converted model does not hold all of them.
  std::optional<Recipe> recipe_for(TensorId original) const;

 private:
  // The number `step` of the recipe of converted tensor `tensor`.
  struct Place {
    std::uint32_t tensor = 0, step = 0;
  };
  // A later step that has the number as its input `input`.
  struct Use {
    Place place;
    std::uint32_t input = 0;
  };
  class Backwards;

  const MetaGraph& original_;
  const MetaGraph& converted_;
  std::vector<ConvertedTensor> tensors_;
  std::vector<std::vector<Form>> forms_;             // by converted tensor and step
  std::vector<std::vector<std::vector<Use>>> uses_;  // by converted tensor and step
  std::vector<std::vector<Place>> taken_;            // by tensor of the original
};

}  // namespace loadline
