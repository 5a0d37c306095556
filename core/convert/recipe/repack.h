// Packed weights of 4-bit floats as blocks of ggml: the same codes and scales in another order.
#pragma once

#include "core/graph/meta_graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace loadline {

// The rows of a packed weight as ggml's MXFP4 or NVFP4.
struct Repacking {
  DType dtype = DType::opaque;
  Shape shape;  // of the rows that are stored: with MXFP4 of gpt-oss, outputs x inputs
  TensorId codes{}, scales{};
  std::uint32_t group = 0;  // numbers for each scale
  bool turned = false;      // the rows are columns of the weight: its last two dimensions have changed places
};

// Nothing for packings of other numbers, and where rows do not fill whole blocks. Scales of the whole weight
// are no part of the blocks: they stay tensors of their own.
std::optional<Repacking> ggml_repacking(const MetaGraph& graph, const LogicalTensor& weight);

// Whole blocks. `codes` has two numbers a byte, the first in its low half. Throws Error{unsupported} for
// scales that ggml would read as other numbers: not a number, or negative.
void repack(const Repacking& repacking, std::span<const std::byte> codes, std::span<const std::byte> scales,
            std::span<std::byte> blocks);

}  // namespace loadline
