// Types of at most eight bits: an element is one of 256 codes, so a table says what each stands for.
#pragma once

#include "core/graph/dtype.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loadline {

// Bool, the integers and floats of 2 to 8 bits.
bool is_code_type(DType dtype);

// What each code stands for; NaN and infinities included. Codes that the type has not the bits for repeat.
// Floats: OCP 8-bit Floating Point 1.0 (F8_E4M3, F8_E5M2), OCP Microscaling Formats 1.0 (F8_E8M0, F4, F6),
// and the FNUZ variants of ONNX. A bool is true for every byte but 0.
std::array<double, 256> code_values(DType dtype);

// One code per byte, without what fills up the last block: `out` says how many. Narrow elements lie lowest
// bits first, as in ONNX, LiteRT and torch; those of six bits as one little-endian number of 24.
void unpack_codes(DType dtype, std::span<const std::byte> packed, std::span<std::uint8_t> out);

}  // namespace loadline
