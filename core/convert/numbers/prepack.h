// Weights as kernels want them: of another number type, transposed, or with four rows interleaved.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace loadline::convert {

// Where the element of row r and column c of a matrix lies, counted in elements:
//   rows        r * columns + c, as stored
//   transposed  c * rows + r
//   four_rows   ((r / 4) * columns + c) * 4 + r % 4; the rows that are missing in the last four are zeros.
//               ExecuTorch's Vulkan backend calls such a matrix height-packed.
enum class PrepackLayout : std::uint8_t { rows, transposed, four_rows };

struct Prepack {
  graph::DType from = graph::DType::opaque;
  graph::DType to = graph::DType::opaque;
  PrepackLayout layout = PrepackLayout::rows;
  std::uint64_t rows = 1;
  std::uint64_t columns = 0;
  bool operator==(const Prepack&) const = default;

  std::uint64_t elements() const { return rows * columns; }
};

// The limit for the numbers of a packed weight, with the zeros that fill it up: shaders count them in 32
// bits.
inline constexpr std::uint64_t kMostPrepacked = std::uint64_t{1} << 31;

// Whether prepack() converts the types: F32, F16 and BF16 to one another or to themselves; Q8_0, Q4_0 and
// Q4_K to F16.
bool can_prepack(graph::DType from, graph::DType to);

// Sizes before and after. The numbers must be whole blocks, and their bytes must fit in 63 bits.
std::uint64_t stored_bytes(const Prepack& prepack);
std::uint64_t prepacked_bytes(const Prepack& prepack);

// Converts whole blocks of elements that begin with element `first` of the stored order, and puts each number
// in its place in `out`, which is the whole packed weight. Numbers equal those of cast() and dequantize() bit
// for bit, but NaNs of quantized weights are 0x7E00: their sign depends on the processor. What is stored once
// all elements were given does not depend on how they were divided.
void prepack(const Prepack& prepack, std::uint64_t first, std::span<const std::byte> source,
             std::span<std::byte> out);

}  // namespace loadline::convert
