// The 16-bit and 32-bit floating-point types: their bits from a float and back, each narrowing rounded once.
#pragma once

#include "core/convert/numbers/float_bits.h"

#include <bit>
#include <cstdint>

namespace loadline {

inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

struct F32 {
  using Bits = std::uint32_t;
  static float widen(Bits bits) { return float_of(bits); }
  static Bits narrow(float value) { return bits_of(value); }
};

struct BF16 {
  using Bits = std::uint16_t;
  static float widen(Bits bits) { return float_of(static_cast<std::uint32_t>(bits) << 16); }
  // round to nearest even by adding just under half; NaN would round into infinity, so it is quieted
  static Bits narrow(float value) {
    const std::uint32_t bits = bits_of(value);
    if (value != value) return static_cast<Bits>((bits >> 16) | 0x40u);
    return static_cast<Bits>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
  }
};

struct F16 {
  using Bits = std::uint16_t;
  static float widen(Bits bits) { return half_to_float(bits); }
  static Bits narrow(float value) { return float_to_half(value); }
};

}  // namespace loadline
