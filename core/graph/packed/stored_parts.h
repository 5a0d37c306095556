// The stored tensors that may make up packed weights, grouped by the module that they belong to.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "core/graph/packed/quantization.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::graph::packed {

// What a tensor is to its module, by the ending of its name.
enum class Slot : std::uint8_t {
  weight,
  qweight,
  weight_packed,
  blocks,
  scales,
  qzeros,
  g_idx,
  biases,
  absmax,
  quant_map,
  nested_absmax,
  nested_quant_map,
  quant_state,
  scb,
  weight_format,
  weight_scale,
  weight_scale_inv,
  weight_scale_2,
  weight_global_scale,
  weight_zero_point,
  weight_shape,
  weight_g_idx,
  input_scale,
  input_global_scale,
};
inline constexpr std::size_t kSlots = 24;
// No tensor.
inline constexpr std::uint32_t kNone = UINT32_MAX;

// What a part holds beside the codes; nothing for the codes themselves.
std::optional<Companion> companion_of(Slot slot);

// The tensors of one module.
struct Group {
  std::array<std::uint32_t, kSlots> tensors;
  Group() { tensors.fill(kNone); }
  std::uint32_t& at(Slot slot) { return tensors[static_cast<std::size_t>(slot)]; }
  bool has(Slot slot) const { return tensors[static_cast<std::size_t>(slot)] != kNone; }
  TensorId id(Slot slot) const { return TensorId{tensors[static_cast<std::size_t>(slot)]}; }
};

// The modules that have a companion, by name, each with its tensors. Names point into `graph`.
std::vector<std::pair<std::string_view, Group>> stored_parts(const MetaGraph& graph);

// What a packing makes of a group.
struct Fitted {
  Shape shape;
  std::uint32_t bits = 0;
  Shape block;
  std::optional<DType> dtype = {};
  std::string state = {};
};

// The first layout whose parts a group has, in the types that it asks for.
struct LayoutFit {
  WeightPacking packing{};
  Slot codes{};
  std::optional<Fitted> fitted = {};  // absent: the shapes do not match
};
// Nothing if no layout applies. `base` is the name of the module.
std::optional<LayoutFit> fit_layout(const MetaGraph& graph, const QuantizationConfig& config,
                                    const ReadSmallTensor& read, std::string_view base, const Group& group);

}  // namespace loadline::graph::packed
