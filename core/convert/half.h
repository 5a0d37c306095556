// Converts IEEE 16-bit floats to float.
#pragma once

#include <bit>
#include <cstdint>

namespace loadline {

// Exact for every pattern; a NaN keeps its sign and payload. Without branches, so that loops over it
// vectorise.
inline float half_to_float(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFu;
  const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;  // exact
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t special = 0x7F800000u | (magnitude << 13);
  const std::uint32_t finite = magnitude >= 0x400u ? normal : std::bit_cast<std::uint32_t>(small);
  return std::bit_cast<float>(sign | (magnitude >= 0x7C00u ? special : finite));
}

}  // namespace loadline
