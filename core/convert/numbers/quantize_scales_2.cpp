// Rounds scales to codes, in the order of operations of ggml's reference.
#include "core/convert/numbers/quantize_scales_2.h"

#include "core/convert/numbers/ggml_blocks.h"
#include "core/convert/numbers/quantize_scales.h"

#include <algorithm>
#include <cmath>

namespace loadline {
namespace {

using Byte = std::uint8_t;

// Q4_K, Q5_K: 8 scales and 8 minima of six bits in twelve bytes.
void put_scales_and_minima(std::uint8_t* to, const std::uint8_t* scales, const std::uint8_t* minima) {
  for (std::size_t j = 0; j < 4; ++j) {
    to[j] = static_cast<std::uint8_t>(scales[j] | (scales[j + 4] >> 4) << 6);
    to[4 + j] = static_cast<std::uint8_t>(minima[j] | (minima[j + 4] >> 4) << 6);
    to[8 + j] = static_cast<std::uint8_t>((scales[j + 4] & 15) | (minima[j + 4] & 15) << 4);
  }
}
// Q3_K: 16 scales of six bits in twelve bytes.
void put_six_bit_scales(std::uint8_t* to, const std::uint8_t* scales) {
  for (std::size_t j = 0; j < 8; ++j)
    to[j] = static_cast<std::uint8_t>((scales[j] & 15) | (scales[j + 8] & 15) << 4);
  for (std::size_t j = 0; j < 4; ++j)
    to[8 + j] = static_cast<std::uint8_t>(scales[j] >> 4 | (scales[j + 4] >> 4) << 2 |
                                          (scales[j + 8] >> 4) << 4 | (scales[j + 12] >> 4) << 6);
}

// Numbers that are not negative as levels up to `most` of the returned factor.
float fit_factors(std::span<const float> numbers, std::span<const float> weights, int most, Levels levels) {
  if (!weights.empty()) return fit_positive(numbers, weights, most, levels);
  float peak = 0;
  for (const float number : numbers)
    if (number > peak) peak = number;
  const auto whole = static_cast<float>(most);
  const float inverse = peak > 0 ? whole / peak : 0.0F;
  std::ranges::transform(numbers, levels.begin(),
                         [&](float number) { return static_cast<Byte>(nearest(inverse * number)); });
  return peak / whole;
}

}  // namespace

PartFactors put_q2_k_scales(const PartScales& parts, std::uint8_t* out) {
  Byte scales[16], depths[16];
  put_half(out + 80, fit_factors(parts.scales, parts.weights, 15, scales));
  put_half(out + 82, fit_factors(parts.depths, parts.weights, 15, depths));
  PartFactors factors;
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = static_cast<Byte>(scales[i] | depths[i] << 4);
    factors.scales[i] = half_at(out + 80) * static_cast<float>(out[i] & 15);
    factors.depths[i] = half_at(out + 82) * static_cast<float>(out[i] >> 4);
  }
  return factors;
}

PartFactors put_q3_k_scales(const PartScales& parts, std::uint8_t* out) {
  Byte codes[16];
  if (!parts.weights.empty()) {
    put_half(out + 108, fit_symmetric(parts.scales, parts.weights, 32, codes));
  } else {
    const float peak = extreme(parts.scales), inverse = -32.0F / peak;
    for (std::size_t i = 0; i < 16; ++i) {
      const int code = peak != 0 ? static_cast<std::int8_t>(nearest(inverse * parts.scales[i])) : -32;
      codes[i] = static_cast<Byte>(std::clamp(code, -32, 31) + 32);
    }
    put_half(out + 108, peak != 0 ? 1 / inverse : 0.0F);
  }
  put_six_bit_scales(out + 96, codes);
  PartFactors factors;
  for (std::size_t i = 0; i < 16; ++i)
    factors.scales[i] = half_at(out + 108) * static_cast<float>(codes[i] - 32);
  return factors;
}

PartFactors put_q4_k_scales(const PartScales& parts, bool bounded, std::uint8_t* out) {
  Byte scales[8], depths[8];
  put_half(out, fit_factors(parts.scales, parts.weights, 63, scales));
  put_half(out + 2, fit_factors(parts.depths, parts.weights, 63, depths));
  if (bounded)
    for (std::size_t i = 0; i < 8; ++i) {
      scales[i] = std::min<Byte>(scales[i], 63);
      depths[i] = std::min<Byte>(depths[i], 63);
    }
  put_scales_and_minima(out + 4, scales, depths);
  // as they are read: a code beyond six bits has spoilt that of another part
  PartFactors factors;
  for (std::size_t i = 0; i < 4; ++i) {
    const Byte* const codes = out + 4 + i;
    factors.scales[i] = half_at(out) * static_cast<float>(codes[0] & 63);
    factors.depths[i] = half_at(out + 2) * static_cast<float>(codes[4] & 63);
    factors.scales[i + 4] = half_at(out) * static_cast<float>((codes[8] & 15) | codes[0] >> 6 << 4);
    factors.depths[i + 4] = half_at(out + 2) * static_cast<float>(codes[8] >> 4 | codes[4] >> 6 << 4);
  }
  return factors;
}

std::optional<PartFactors> put_q6_k_scales(const PartScales& parts, std::uint8_t* out) {
  const float peak = extreme(parts.scales);
  if (std::abs(peak) < kLeastMagnitude) {
    std::fill_n(out, 210, Byte{0});
    return std::nullopt;
  }
  const float inverse = -128.0F / peak;
  put_half(out + 208, 1 / inverse);
  PartFactors factors;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto code = static_cast<std::int8_t>(std::min(127, nearest(inverse * parts.scales[i])));
    out[192 + i] = static_cast<Byte>(code);
    factors.scales[i] = half_at(out + 208) * static_cast<float>(code);
  }
  return factors;
}

PartFactors put_iq4_xs_scales(const PartScales& parts, std::uint8_t* out) {
  const float scale = -extreme(parts.scales) / 32;
  const float inverse = scale != 0 ? 1 / scale : 0.0F;
  put_half(out, scale);
  std::fill_n(out + 2, 6, Byte{0});
  PartFactors factors;
  for (std::size_t i = 0; i < 8; ++i) {
    const int code = std::clamp(nearest(inverse * parts.scales[i]), -32, 31);
    const float own = scale * static_cast<float>(code);
    factors.scales[i] = own != 0 ? 1 / own : 0.0F;
    const auto bits = static_cast<unsigned>(code + 32);
    Byte &low = out[4 + i / 2], &high = out[2 + i / 4];
    low = static_cast<Byte>(low | (bits & 15) << (i % 2 * 4));
    high = static_cast<Byte>(high | (bits >> 4) << (i % 4 * 2));
  }
  return factors;
}

}  // namespace loadline
