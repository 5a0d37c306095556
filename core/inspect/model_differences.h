// Pairs the weights of two models by name.
#pragma once

#include "core/convert/recipe/recipe.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// One weight as models are compared: a stored tensor, several stored tensors that make up a packed weight, or
// what a conversion would make of stored tensors.
struct Weight {
  Name name;
  DType dtype = DType::opaque;  // as stored; of a packed weight, the type that its numbers had
  Shape shape;
  TensorId tensor{};                         // of a packed weight, its codes
  std::optional<std::uint32_t> packed = {};  // a position in MetaGraph::logical
  std::shared_ptr<const Recipe> recipe =
      {};  // of a weight that is computed; then `tensor` is one that it reads
};
// In the order of their first tensor in the graph.
std::vector<Weight> model_weights(const MetaGraph& graph);
// A weight with that name, computed by `recipe`. Throws as recipe_forms() does.
Weight computed_weight(const MetaGraph& graph, Name name, Recipe recipe);
// Bytes in the files: of a packed weight, of all its parts; of a computed weight, bytes of the result.
std::uint64_t weight_bytes(const MetaGraph& graph, const Weight& weight);
// "BF16", "Q4_K", "GPTQ 4-bit".
std::string weight_type(const MetaGraph& graph, const Weight& weight);

struct WeightPair {
  std::uint32_t a = 0, b = 0;  // positions in Matching::a and Matching::b
};

struct Matching {
  std::vector<Weight> a, b;
  std::vector<WeightPair> pairs;              // in the order of `a`
  std::vector<std::uint32_t> only_a, only_b;  // positions
  // Pairs whose names differ, because one model stores tied weights once.
  std::uint64_t tied = 0;
};

// A weight pairs with the weight of the same name. Without one, it pairs with any weight of the other model
// whose name it shares bytes with in its own model: a converted file stores tied weights once.
Matching match_weights(const MetaGraph& a, const MetaGraph& b);
// With the weights to compare: those of the models under other names, or computed ones.
Matching match_weights(const MetaGraph& a, std::vector<Weight> of_a, const MetaGraph& b,
                       std::vector<Weight> of_b);

// Whether two weights are packed in the same way: same packing, width and parts, of the same types and
// shapes. Names of parts do not count.
bool packed_alike(const MetaGraph& a, const Weight& of_a, const MetaGraph& b, const Weight& of_b);

// Equal, but a single number may have rank 0 in one model and one dimension in the other, as in GGUF files.
bool same_shape(const Shape& a, const Shape& b);

}  // namespace loadline
