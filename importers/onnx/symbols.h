// Names of dimensions as polynomials: "past_sequence_length + 1" is P + 1.
#pragma once

#include "core/base/text_hash.h"
#include "core/graph/forward_graph.h"
#include "importers/onnx/model.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// Exporters name the batch, the sequence and the past in a few ways; those become B, S and P. Other names
// become symbols of their own. What each name became is in ForwardGraph::sizes.
class OnnxSymbols {
 public:
  // Appends to `graph`, which must outlive it.
  explicit OnnxSymbols(ForwardGraph& graph) : graph_(graph) {}

  // Takes names that say nothing ("s77" of torch, "T") as batch or sequence by where they stand, if no other
  // name of the graph's inputs says which that is: the two sizes of token numbers (by the input's name, or
  // because there is no other) and masks, and the first of an input of floating-point numbers. To be called
  // before all else.
  void guess(std::span<const OnnxValue* const> inputs);

  // Sums, differences and products of whole numbers and names; any other text is one name. Nothing for
  // an empty text, and when there is no room for another symbol.
  std::optional<SizePoly> parse(std::string_view text);
  // Nothing for a dimension that is unknown or negative.
  std::optional<SizePoly> size(const OnnxDim& dim);
  // Nothing unless every dimension is known.
  std::optional<std::vector<SizePoly>> shape(const OnnxType& type);

  static constexpr std::size_t kMostSymbols = 4096;

 private:
  std::optional<SizePoly> symbol(std::string_view name);

  void take(std::string_view name, const SizePoly& as, bool guessed);

  ForwardGraph& graph_;
  TextMap<SizePoly> known_;
};

}  // namespace loadline
