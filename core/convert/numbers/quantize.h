// ggml blocks to floats and floats to ggml blocks.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <cstddef>
#include <span>

namespace loadline::convert {

// --- Turns quantized blocks into floats.

// Whether the dtype consists of blocks. dequantize() knows the layouts of all of them.
bool can_dequantize(graph::DType dtype);

// Dequantizes whole blocks. `out` has block_elements floats for each block. `blocks` need not be aligned. The
// values equal those of gguf-py 0.19 bit for bit (f32 arithmetic, no fused multiply-add); for types that
// gguf-py does not read they equal ggml's. NaN stays NaN. The dtype must satisfy can_dequantize.
void dequantize(graph::DType dtype, std::span<const std::byte> blocks, std::span<float> out);

// --- Turns floats into quantized blocks of ggml.

// Whether quantize() writes this type: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4,
// NVFP4 and TQ2_0.
bool can_quantize(graph::DType dtype);

// Whether the importance of columns changes the blocks of this type. Q8_0, MXFP4, NVFP4 and TQ2_0 ignore it.
bool heeds_importance(graph::DType dtype);

// Whether importance makes each block depend on its whole row: Q4_0, Q4_1, Q5_0, Q5_1.
bool needs_row_square(graph::DType dtype);

// What an importance matrix says about a part of a row.
struct RowImportance {
  std::span<const float> columns;  // one weight for each number of the part
  float mean_square = 0;           // of the whole row, for types of needs_row_square()
};

// Quantizes whole blocks: `blocks` has block_bytes bytes for each block_elements numbers. The dtype must
// satisfy can_quantize.
//
// The blocks equal those of ggml's reference (ggml-quants.c of 2026-08: quantize_row_*_ref without
// importance, the functions behind ggml_quantize_chunk with it) bit for bit, with any vector instructions:
// f32 arithmetic from left to right, no fused multiply-add, ties of the searches as there. Infinities are
// taken as there on x86. Newer versions of ggml differ in two corners: an outlier with hardly any importance,
// millions of times as large as the rest of its block, and a level of IQ4 that is not a number. Blocks of NaN
// have no meaning, here as there; a NaN is rounded to 0.
void quantize(graph::DType dtype, std::span<const float> numbers, std::span<std::byte> blocks);

// The same for a part of one row. `importance.columns` must be empty, which stands for no importance, or as
// long as `numbers`.
void quantize(graph::DType dtype, std::span<const float> numbers, const RowImportance& importance,
              std::span<std::byte> blocks);

// Whole rows of `importance.size()` numbers, or any blocks where it is empty.
void quantize_rows(graph::DType dtype, std::span<const float> rows, std::span<const float> importance,
                   std::span<std::byte> blocks);

// The sum of squares from left to right, beginning with `sum`. RowImportance::mean_square is the sum of a
// whole row divided by its length.
float sum_squares(std::span<const float> numbers, float sum = 0);

// The definition of the above without vector instructions. Same results, for tests.
void quantize_plain(graph::DType dtype, std::span<const float> numbers, const RowImportance& importance,
                    std::span<std::byte> blocks);

}  // namespace loadline::convert
