// Names of packings and companions.
#include "core/graph/logical_tensor.h"

#include <algorithm>
#include <array>

namespace loadline {

std::string_view packing_name(WeightPacking packing) {
  constexpr std::array<std::string_view, 15> kNames = {"GPTQ",
                                                       "GPTQ v2",
                                                       "AWQ",
                                                       "bitsandbytes",
                                                       "bitsandbytes",
                                                       "scaled",
                                                       "compressed-tensors integers",
                                                       "compressed-tensors NVFP4",
                                                       "compressed-tensors MXFP4",
                                                       "NVFP4",
                                                       "MXFP4",
                                                       "MLX affine",
                                                       "MLX MXFP4",
                                                       "MLX NVFP4",
                                                       "MLX MXFP8"};
  return kNames[static_cast<std::size_t>(packing)];
}

std::string_view companion_name(Companion companion) {
  constexpr std::array<std::string_view, kCompanions> kNames = {
      "scales", "zeros",         "biases",          "groups", "global_scale",     "codebook",
      "state",  "nested_scales", "nested_codebook", "shape",  "activation_scale", "format"};
  return kNames[static_cast<std::size_t>(companion)];
}

std::optional<TensorId> LogicalTensor::companion(Companion kind) const {
  const auto found = std::ranges::find(companions, kind, &CompanionTensor::kind);
  return found == companions.end() ? std::nullopt : std::optional(found->tensor);
}

}  // namespace loadline
