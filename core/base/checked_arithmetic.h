// Overflow-checked arithmetic for numbers that a file gave.
#pragma once

#include <cstdint>
#include <optional>

namespace loadline {

// Each returns nothing when the exact result does not fit in 64 bits.
constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The sum, or UINT64_MAX where 64 bits do not hold it: for sums that are only compared.
constexpr std::uint64_t capped_add(std::uint64_t a, std::uint64_t b) {
  return checked_add(a, b).value_or(UINT64_MAX);
}

// The smallest multiple of `alignment` (> 0) that is not below `value`.
constexpr std::optional<std::uint64_t> checked_align_up(std::uint64_t value, std::uint64_t alignment) {
  const std::uint64_t rest = value % alignment;
  return rest == 0 ? std::optional(value) : checked_add(value, alignment - rest);
}

// For numbers already known to be small: sizes this program chose itself.
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Whether [offset, offset + bytes) lies inside [0, size), without computing a sum that could wrap.
constexpr bool range_fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

}  // namespace loadline
