// How one output tensor is computed: steps over streamed parts; and a conversion read backwards.
#pragma once

#include "core/convert/recipe/packed_weights.h"
#include "core/graph/meta_graph.h"
#include "core/graph/packed/quantization.h"
#include "core/io/graph_reader.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::convert {

// --- How the numbers of one tensor of an output come to be: a short list of steps over streamed parts.

enum class StepKind : std::uint8_t {
  take,          // a tensor as it is stored
  unpack,        // a packed weight of the graph, as F32
  slice,         // `count` positions of dimension `axis`, from `first` on
  concatenate,   // all inputs, one after another along dimension `axis`
  permute_rows,  // rows of the first dimension in groups of a x b become groups of b x a
  transpose,     // the last two dimensions change places
  reshape,       // another shape for the same numbers in the same order
  add_constant,  // the number `value`, rounded to the type, to each
  add,           // a second input of the same shape and type
  add_product,   // `value` * (second input [O, r] x third input [r, I]) to a first input [O, I]
  dequantize,    // blocks, and floats of 8 bits, become F32
  cast,          // another type of floating point numbers
  repack,        // the rows of a packed weight as blocks of ggml (core/convert/recipe/packed_weights.h)
  constants,     // the vector `constants`, as F32
  quantize,      // floating point numbers as blocks of the type `dtype` (core/convert/numbers/quantize.h)
};
// For messages and tests: "permute_rows".
std::string_view step_name(StepKind kind);

// Inputs are positions of earlier steps.
struct RecipeStep {
  StepKind kind{};
  std::vector<std::uint32_t> inputs = {};
  graph::TensorId tensor{};                   // take
  std::uint32_t packed = 0;                   // unpack, repack: a position in MetaGraph::logical
  std::uint64_t axis = 0;                     // slice, concatenate
  std::uint64_t first = 0, count = 0;         // slice
  std::uint64_t a = 1, b = 1;                 // permute_rows
  double value = 0;                           // add_constant, add_product
  graph::Shape shape = {};                    // reshape
  graph::DType dtype = graph::DType::opaque;  // cast, quantize
  std::vector<float> constants = {};          // constants
  // quantize: of the columns, or null; one row for all, or for each position of the first dimension
  std::shared_ptr<const graph::TensorImportance> importance = {};
  bool operator==(const RecipeStep&) const = default;
};

// The last step gives the result.
struct Recipe {
  std::vector<RecipeStep> steps;
  bool operator==(const Recipe&) const = default;

  // Adds a step with one input, the last step.
  Recipe& then(RecipeStep step);
  // Adds the steps of another recipe; the position of the step that gives its result.
  std::uint32_t append(const Recipe& other);
};
Recipe take(graph::TensorId tensor);
Recipe unpack(std::uint32_t packed);
// The one tensor that a recipe copies unchanged; nothing for any other recipe.
std::optional<graph::TensorId> copied_tensor(const Recipe& recipe);

// Whether the step `dequantize` takes this type.
bool can_become_f32(graph::DType dtype);

// The type and shape that a step gives.
struct Form {
  graph::DType dtype = graph::DType::opaque;
  graph::Shape shape;
  bool operator==(const Form&) const = default;
};
// By step. Throws Error{unsupported} naming the step and both shapes or types where they do not fit, and
// Error{limit} for sizes beyond 62 bits.
std::vector<Form> recipe_forms(const graph::MetaGraph& graph, const Recipe& recipe);

// The tensors that are read for a result.
std::vector<graph::TensorId> recipe_tensors(const graph::MetaGraph& graph, const Recipe& recipe);
// Bytes that are read from the source for the whole result.
std::uint64_t recipe_source_bytes(const graph::MetaGraph& graph, const Recipe& recipe);

// Numbers of a result that are not what the source holds, or hold nothing.
struct NumberFaults {
  std::uint64_t overflowed = 0;  // finite before, and infinite or NaN in the type of the result
  std::uint64_t special = 0;     // infinite or NaN before
  bool any() const { return overflowed + special > 0; }
};

// Computes a recipe's result, any part of it at any time; for one thread. Sums and products are computed in
// F32 and rounded once to the type of their first input; an add_product adds up its products in F64.
class RecipeReader {
 public:
  // `memory`: bytes that buffers may take, at least kLeastMemory. The graph must outlive it.
  RecipeReader(const graph::MetaGraph& graph, const io::ReadTensor& read, const Recipe& recipe,
               std::uint64_t memory);
  ~RecipeReader();
  RecipeReader(RecipeReader&&) noexcept;

  static constexpr std::uint64_t kLeastMemory = 256 << 10;

  const Form& form() const;
  std::uint64_t bytes() const;
  // Bytes [offset, offset + out.size()) of the result, in C order. The range must begin and end at whole
  // elements, or blocks.
  void read(std::uint64_t offset, std::span<std::byte> out);
  // Among the numbers that the last step has computed since the last call. A copy is not looked at.
  NumberFaults take_faults();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// --- From a converted model back to its original: the recipes of a conversion, read backwards.

// A tensor of the converted model, and the recipe over the original that made it.
struct ConvertedTensor {
  graph::TensorId tensor{};
  Recipe recipe;
};

// Inverts moves of numbers (slice, concatenate, permute_rows, transpose, reshape) and add_constant. Casts and
// quantization count as nothing: what they rounded away stays lost. Neither graph needs bytes, and both must
// outlive it.
class RecipeInverter {
 public:
  // Throws as recipe_forms() does.
  RecipeInverter(const graph::MetaGraph& original, const graph::MetaGraph& converted,
                 std::vector<ConvertedTensor> tensors);

  // A recipe over the converted model for the numbers of a tensor of the original, in the type that they have
  // there, F32 for blocks. Nothing if the converted model does not hold all of them.
  std::optional<Recipe> recipe_for(graph::TensorId original) const;

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

  const graph::MetaGraph& original_;
  const graph::MetaGraph& converted_;
  std::vector<ConvertedTensor> tensors_;
  std::vector<std::vector<Form>> forms_;             // by converted tensor and step
  std::vector<std::vector<std::vector<Use>>> uses_;  // by converted tensor and step
  std::vector<std::vector<Place>> taken_;            // by tensor of the original
};

}  // namespace loadline::convert
