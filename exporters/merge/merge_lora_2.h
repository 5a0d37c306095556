// A LoRA adapter and its base as one conversion: W + scale * B x A, computed while the weights are copied.
#pragma once

#include "exporters/exporter.h"
#include "exporters/merge/merge_lora.h"

#include <cstdint>
#include <optional>
#include <string>

namespace loadline {

struct LoraMerge {
  // The base with the adapter's tensors behind its own. Metadata, logical tensors and notes are the base's.
  MetaGraphPtr graph;
  std::shared_ptr<const TensorRecipes> recipes;
  std::uint64_t merged = 0;    // weights that get a product added
  std::uint64_t replaced = 0;  // other weights that the adapter holds whole
};

// Pairs the adapter's tensors, named as PEFT saves them, with weights of the base. `outtype` is that of the
// conversion: weights of the base that are quantised or packed need one. Throws Error{malformed} for tensors
// whose parts or shapes do not fit, and Error{unsupported} with the reason for what cannot be merged: a
// weight that the base does not have, tied weights, convolutions, tensors that are no LoRA.
LoraMerge merge_lora(const MetaGraph& base, const MetaGraph& adapter, const LoraConfig& config,
                     std::optional<DType> outtype);

}  // namespace loadline
