// Two models without their values: weights paired by name, types in groups, ties, metadata.
#pragma once

#include "core/base/progress.h"
#include "core/convert/recipe/recipe.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::inspect {

// --- Pairs the weights of two models by name.

// One weight as models are compared: a stored tensor, several stored tensors that make up a packed weight, or
// what a conversion would make of stored tensors.
struct Weight {
  graph::Name name;
  graph::DType dtype = graph::DType::opaque;  // as stored; of a packed weight, the type that its numbers had
  graph::Shape shape;
  graph::TensorId tensor{};                  // of a packed weight, its codes
  std::optional<std::uint32_t> packed = {};  // a position in MetaGraph::logical
  std::shared_ptr<const convert::Recipe> recipe =
      {};  // of a weight that is computed; then `tensor` is one that it reads
};
// In the order of their first tensor in the graph.
std::vector<Weight> model_weights(const graph::MetaGraph& graph);
// A weight with that name, computed by `recipe`. Throws as recipe_forms() does.
Weight computed_weight(const graph::MetaGraph& graph, graph::Name name, convert::Recipe recipe);
// Bytes in the files: of a packed weight, of all its parts; of a computed weight, bytes of the result.
std::uint64_t weight_bytes(const graph::MetaGraph& graph, const Weight& weight);
// "BF16", "Q4_K", "GPTQ 4-bit".
std::string weight_type(const graph::MetaGraph& graph, const Weight& weight);

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
Matching match_weights(const graph::MetaGraph& a, const graph::MetaGraph& b);
// With the weights to compare: those of the models under other names, or computed ones.
Matching match_weights(const graph::MetaGraph& a, std::vector<Weight> of_a, const graph::MetaGraph& b,
                       std::vector<Weight> of_b);

// Whether two weights are packed in the same way: same packing, width and parts, of the same types and
// shapes. Names of parts do not count.
bool packed_alike(const graph::MetaGraph& a, const Weight& of_a, const graph::MetaGraph& b,
                  const Weight& of_b);

// Equal, but a single number may have rank 0 in one model and one dimension in the other, as in GGUF files.
bool same_shape(const graph::Shape& a, const graph::Shape& b);

// --- Which weights of two models have which type, and what that costs.

// Weights whose names differ only in numbers, and whose types are the same in each model.
struct TypeGroup {
  std::string pattern;  // numbers are "N": "blk.N.ffn_down.weight"
  std::string a, b;     // weight_type()
  std::uint64_t count = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes_a = 0, bytes_b = 0;
  std::vector<std::uint64_t> layers;  // the first number in each name, without repeats, in increasing order
  bool all_layers = true;             // no other group has the same pattern
};

// Pairs of equal shape, in the order of their first weight in A.
std::vector<TypeGroup> type_groups(const graph::MetaGraph& a, const graph::MetaGraph& b,
                                   const Matching& match);

// "0-3, 8, 10"
std::string ranges_text(const std::vector<std::uint64_t>& numbers);

// Tensors of one model that are one range of bytes there, and that are not so in the other model: names, in
// groups. `other` may lack some of them; then it stores the weight once.
std::vector<std::vector<std::string>> ties_missing(const graph::MetaGraph& graph,
                                                   const graph::MetaGraph& other);

// --- What differs between the metadata of two models.

// One key that is in one model only, or whose values differ. Values are as a person writes them, not escaped:
// 42, "text", an array by its length and the first element that differs.
struct MetadataDifference {
  std::string key;  // for a setting of config.json: "config.json: rope_scaling.factor"
  std::optional<std::string> a, b;
};

// A model's metadata, and the file that its arrays lie in if that is none of the model's.
struct MetadataSource {
  MetadataSource(const graph::MetaGraph& model, const io::SourceFile* header_file = nullptr)
      : graph(model), header(header_file) {}
  const graph::MetaGraph& graph;
  const io::SourceFile* header;
};

// In A's order, then what only B has. config.json is compared setting by setting if it is JSON with at most
// 64 levels, else as a text. Arrays that stayed in their files are read and compared element by
// element. Throws Error{io | malformed | canceled}.
std::vector<MetadataDifference> diff_metadata(const MetadataSource& a, const MetadataSource& b,
                                              Progress& progress);

}  // namespace loadline::inspect
