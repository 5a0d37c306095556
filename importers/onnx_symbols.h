// Names of dimensions as polynomials: "past_sequence_length + 1" is P + 1.
#pragma once

#include "core/base/text_hash.h"
#include "core/graph/forward_graph.h"
#include "importers/onnx_model.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// Exporters name the batch, the sequence and the past in a few ways; those become B, S and P. Other names
// become symbols of their own.
class OnnxSymbols {
 public:
  // Appends to `symbols`, which must outlive it and holds B, S and P.
  explicit OnnxSymbols(std::vector<std::string>& symbols) : symbols_(symbols) {}

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

  std::vector<std::string>& symbols_;
  TextMap<SymbolId> own_;
};

}  // namespace loadline
