// Elements of tensors: casts among floats, the values of codes of at most eight bits, any number as a double.
#pragma once

#include "core/convert/numbers/statistics.h"
#include "core/graph/dtype_and_shape.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loadline::convert {

// --- Conversions between floating-point types, element by element, with correct rounding.

// F32, F16 or BF16.
bool is_cast_target(graph::DType dtype);
// Whether cast() handles the pair: any two of F32, F16, BF16, F64 (F64 only as a source), or equal.
bool can_cast(graph::DType from, graph::DType to);

// Converts whole elements; both spans hold the same number of them and need not be aligned. Narrowing rounds
// to nearest, ties to even. Too large values become infinity. NaN stays NaN and keeps its sign. The pair must
// satisfy can_cast. Returns whether any result is infinite or NaN; a copy is not looked at.
bool cast(graph::DType from, std::span<const std::byte> source, graph::DType to, std::span<std::byte> out);

// --- Types of at most eight bits. An element is one of 256 codes, and a table gives the value of each code.

// Whether the dtype is bool, or an integer or float of 2 to 8 bits.
bool is_code_type(graph::DType dtype);

// The value of each code, NaN and infinities included. For types below eight bits the values repeat. Floats:
// OCP 8-bit Floating Point 1.0 (F8_E4M3, F8_E5M2), OCP Microscaling Formats 1.0 (F8_E8M0, F4, F6), and the
// FNUZ variants of ONNX. A bool is true for every byte but 0.
std::array<double, 256> code_values(graph::DType dtype);

// The same as floats, which hold every one of these values exactly.
std::array<float, 256> float_code_values(graph::DType dtype);

// Unpacks out.size() elements to one code per byte; padding at the end of the last block is skipped. Narrow
// elements lie lowest bits first, as in ONNX, LiteRT and torch. Four six-bit elements form one little-endian
// 24-bit number.
void unpack_codes(graph::DType dtype, std::span<const std::byte> packed, std::span<std::uint8_t> out);

// --- Stored elements of any type with numbers, as doubles.

// Reads the numbers of one type, which must satisfy can_measure(). A complex element has two numbers.
class Numbers {
 public:
  explicit Numbers(graph::DType dtype);

  std::uint32_t per_element() const { return per_element_; }
  // The first out.size() numbers of `bytes`, which holds whole elements or blocks and need not be aligned.
  // Integers beyond 2^53 are rounded.
  void read(std::span<const std::byte> bytes, std::span<double> out) const;
  // Number `i`, integers exactly.
  Number at(std::span<const std::byte> bytes, std::size_t i) const;

 private:
  graph::DType dtype_;
  std::uint32_t per_element_ = 1;
  std::array<double, 256> codes_ = {};  // by code, for types of at most eight bits
};

}  // namespace loadline::convert
