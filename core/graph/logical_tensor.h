// What several stored tensors mean together: codes, scales and their other companions are one weight.
#pragma once

#include "core/graph/dimensions.h"
#include "core/graph/dtype_and_shape.h"
#include "core/graph/forward_graph.h"
#include "core/graph/name.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// How a weight is stored as several tensors. find_logical.cpp has the layouts.
enum class WeightPacking : std::uint8_t {
  gptq,
  gptq_v2,
  awq,
  bitsandbytes_4bit,
  bitsandbytes_8bit,
  scaled,  // numbers of 8 bits with scales of a tensor, a row or a block
  compressed_integers,
  compressed_nvfp4,
  compressed_mxfp4,
  nvfp4,
  mxfp4,
  mlx_affine,
  mlx_mxfp4,
  mlx_nvfp4,
  mlx_mxfp8,
};
// For a person, beside the bits of a code: "GPTQ".
std::string_view packing_name(WeightPacking packing);

// What a tensor beside the codes holds.
enum class Companion : std::uint8_t {
  scales,
  zeros,             // the codes that stand for 0
  biases,            // numbers that are added to the scaled codes
  groups,            // by input, the group whose scale it uses
  global_scale,      // of all scales
  codebook,          // by code, the number that it stands for
  state,             // bitsandbytes' description, JSON text
  nested_scales,     // of the scales
  nested_codebook,   // of the scales
  shape,             // of the weight
  activation_scale,  // of the inputs, no part of the weight
  format,            // of bitsandbytes' 8-bit rows
};
inline constexpr std::size_t kCompanions = 12;
std::string_view companion_name(Companion companion);

struct CompanionTensor {
  Companion kind{};
  TensorId tensor{};
  bool operator==(const CompanionTensor&) const = default;
};

// A weight as the model uses it.
struct LogicalTensor {
  Name name;  // of the weight where it is not packed
  WeightPacking packing{};
  DType dtype = DType::f32;  // that its numbers had before they were packed
  Shape shape;               // outermost first, as in torch
  std::uint32_t bits = 0;    // of a code
  Shape block;               // numbers along each dimension that share a scale; the last block may be cut
  TensorId codes{};
  std::vector<CompanionTensor> companions;  // in the order of Companion, each at most once
  std::string state;                        // the text in Companion::state
  bool operator==(const LogicalTensor&) const = default;

  // The tensor of that kind, if there is one.
  std::optional<TensorId> companion(Companion kind) const;
};

}  // namespace loadline
