// Floats of 16 and 32 bits: their bits from a float and back, each narrowing rounded once.
#pragma once

#include <bit>
#include <cstdint>

namespace loadline::convert {

// --- Converts between IEEE 16-bit floats and float.

// Exact for every pattern; a NaN keeps its sign and payload. Without branches, so that loops over it
// vectorize.
inline float half_to_float(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFu;
  const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;  // exact
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t special = 0x7F800000u | (magnitude << 13);
  const std::uint32_t finite = magnitude >= 0x400u ? normal : std::bit_cast<std::uint32_t>(small);
  return std::bit_cast<float>(sign | (magnitude >= 0x7C00u ? special : finite));
}

// Rounds to nearest, ties to even. 65520 and above become infinity, NaN becomes 0x7E00 with its sign.
inline std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint32_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  std::uint32_t result = 0;
  if (magnitude > 0x7F800000u)
    result = 0x7E00u;
  else if (magnitude >= 0x477FF000u)
    result = 0x7C00u;
  else if (magnitude >= 0x38800000u)
    result = (magnitude - (112u << 23) + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  else  // subnormal: adding 0.5 lets the hardware round to nearest even at 2^-24
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
             std::bit_cast<std::uint32_t>(0.5f);
  return static_cast<std::uint16_t>(sign | result);
}

// --- The 16-bit and 32-bit floating-point types: their bits from a float and back, each narrowing rounded
// once.

inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// Bits without a sign from kInfinity on are no finite number.
struct F32 {
  using Bits = std::uint32_t;
  static constexpr Bits kInfinity = 0x7F800000u;
  static float widen(Bits bits) { return float_of(bits); }
  static Bits narrow(float value) { return bits_of(value); }
};

struct BF16 {
  using Bits = std::uint16_t;
  static constexpr Bits kInfinity = 0x7F80u;
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
  static constexpr Bits kInfinity = 0x7C00u;
  static float widen(Bits bits) { return half_to_float(bits); }
  static Bits narrow(float value) { return float_to_half(value); }
};

}  // namespace loadline::convert
