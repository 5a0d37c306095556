// Turns quantised blocks into floats.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <cstddef>
#include <span>

namespace loadline {

// Whether the dtype consists of blocks. dequantize() knows the layouts of all of them.
bool can_dequantize(DType dtype);

// Dequantises whole blocks. `out` has block_elements floats for each block. `blocks` need not be aligned. The
// values equal those of gguf-py 0.19 bit for bit (f32 arithmetic, no fused multiply-add); for types that
// gguf-py does not read they equal ggml's. NaN stays NaN. The dtype must satisfy can_dequantize.
void dequantize(DType dtype, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace loadline
