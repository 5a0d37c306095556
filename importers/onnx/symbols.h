// Turns names of dimensions into polynomials: "past_sequence_length + 1" becomes P + 1.
#pragma once

#include "core/graph/forward_graph.h"
#include "core/graph/text_hash.h"
#include "importers/onnx/model.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// The usual names of the batch, the sequence and the past become the symbols B, S and P. Every other name
// becomes its own symbol. ForwardGraph::sizes records the meaning of each name.
class OnnxSymbols {
 public:
  // Appends to `graph`, which must outlive it.
  explicit OnnxSymbols(ForwardGraph& graph) : graph_(graph) {}

  // Guesses which meaningless names ("s77" of torch, "T") are the batch and the sequence, if no other name of
  // the inputs' dimensions says so. It takes the two dimensions of token numbers (an input with such a name,
  // or the only input) and of masks, and the first dimension of floating-point inputs. Call it before all
  // else.
  void guess(std::span<const OnnxValue* const> inputs);

  // Parses sums, differences and products of whole numbers and names; any other text is one name. Nothing for
  // an empty text, or when kMostSymbols is reached.
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
