// Stored elements of any type with numbers, as doubles.
#pragma once

#include "core/convert/numbers/statistics.h"
#include "core/graph/dtype_and_shape.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loadline {

// Reads the numbers of one type, which must satisfy can_measure(). A complex element has two numbers.
class Numbers {
 public:
  explicit Numbers(DType dtype);

  std::uint32_t per_element() const { return per_element_; }
  // The first out.size() numbers of `bytes`, which holds whole elements or blocks and need not be aligned.
  // Integers beyond 2^53 are rounded.
  void read(std::span<const std::byte> bytes, std::span<double> out) const;
  // Number `i`, integers exactly.
  Number at(std::span<const std::byte> bytes, std::size_t i) const;

 private:
  DType dtype_;
  std::uint32_t per_element_ = 1;
  std::array<double, 256> codes_ = {};  // by code, for types of at most eight bits
};

}  // namespace loadline
