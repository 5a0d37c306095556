// Types of at most eight bits. An element is one of 256 codes, and a table gives the value of each code.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loadline {

// Whether the dtype is bool, or an integer or float of 2 to 8 bits.
bool is_code_type(DType dtype);

// The value of each code, NaN and infinities included. For types below eight bits the values repeat. Floats:
// OCP 8-bit Floating Point 1.0 (F8_E4M3, F8_E5M2), OCP Microscaling Formats 1.0 (F8_E8M0, F4, F6), and the
// FNUZ variants of ONNX. A bool is true for every byte but 0.
std::array<double, 256> code_values(DType dtype);

// The same as floats, which hold every one of these values exactly.
std::array<float, 256> float_code_values(DType dtype);

// Unpacks out.size() elements to one code per byte; padding at the end of the last block is skipped. Narrow
// elements lie lowest bits first, as in ONNX, LiteRT and torch. Four six-bit elements form one little-endian
// 24-bit number.
void unpack_codes(DType dtype, std::span<const std::byte> packed, std::span<std::uint8_t> out);

}  // namespace loadline
