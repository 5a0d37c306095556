// The same, one number after another, addition by addition as ggml.
#include "core/convert/numbers/quantize_scales.h"

#include "core/convert/numbers/ggml_blocks.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>

namespace loadline::convert {

// --- Plain loops, one number after another.

namespace {

constexpr float kRoundingBias = 12582912.0F;  // 1.5 * 2^23: at this size the spacing of floats is 1
constexpr int kMostSweeps = 5;

int signed_level(float value, int most) { return std::clamp(nearest(value), -most, most - 1); }

// Sums of w x l and w l l.
struct Products {
  float xl = 0, ll = 0;
};

Products products(std::span<const float> x, std::span<const float> weights, float inverse, int most) {
  Products sums;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto level = static_cast<float>(signed_level(inverse * x[i], most));
    sums.xl += weights[i] * x[i] * level;
    sums.ll += weights[i] * level * level;
  }
  return sums;
}

std::uint8_t byte_of(int value) { return static_cast<std::uint8_t>(value); }

}  // namespace

int nearest(float value) {
  const float moved = value + kRoundingBias;
  if (moved != moved) return 0;
  return static_cast<int>(std::bit_cast<std::uint32_t>(moved) & 0x7FFFFFU) - 0x400000;
}

int truncated(float value) { return std::abs(value) < 2147483648.0F ? static_cast<int>(value) : INT_MIN; }

float extreme(std::span<const float> x) {
  float most = 0, found = 0;
  for (const float value : x)
    if (std::abs(value) > most) {
      most = std::abs(value);
      found = value;
    }
  return found;
}

float fit_symmetric(std::span<const float> x, std::span<const float> weights, int most, Levels levels) {
  const float peak = extreme(x);
  if (std::abs(peak) < kLeastMagnitude) {
    std::ranges::fill(levels, std::uint8_t{0});
    return 0;
  }
  float inverse = static_cast<float>(-most) / peak;
  Products sums = products(x, weights, inverse, most);
  float scale = sums.ll != 0 ? sums.xl / sums.ll : 0.0F;
  float best = scale * sums.xl;
  for (int i = -9; i <= 9; ++i) {
    if (i == 0) continue;
    const float candidate = -(static_cast<float>(most) + 0.1F * static_cast<float>(i)) / peak;
    sums = products(x, weights, candidate, most);
    if (sums.ll > 0 && sums.xl * sums.xl > best * sums.ll) {
      inverse = candidate;
      scale = sums.xl / sums.ll;
      best = scale * sums.xl;
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) levels[i] = byte_of(most + signed_level(inverse * x[i], most));
  return scale;
}

float refine_symmetric(std::span<const float> x, int most, Levels levels) {
  const float peak = extreme(x);
  if (std::abs(peak) < kLeastMagnitude) {
    std::ranges::fill(levels, std::uint8_t{0});
    return 0;
  }
  const float inverse = static_cast<float>(-most) / peak;
  const auto level_at = [&](std::size_t i) { return static_cast<float>(levels[i] - most); };
  Products sums;
  for (std::size_t i = 0; i < x.size(); ++i) {
    levels[i] = byte_of(most + signed_level(inverse * x[i], most));
    const float weight = x[i] * x[i];
    sums.xl += weight * x[i] * level_at(i);
    sums.ll += weight * level_at(i) * level_at(i);
  }
  bool changed = true;
  for (int sweep = 0; sweep < kMostSweeps && changed; ++sweep) {
    changed = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float weight = x[i] * x[i];
      Products other = {sums.xl - weight * x[i] * level_at(i), 0};
      if (!(other.xl > 0)) continue;
      other.ll = sums.ll - weight * level_at(i) * level_at(i);
      const int level = signed_level(x[i] * other.ll / other.xl, most);
      if (level + most == levels[i]) continue;
      const auto moved = static_cast<float>(level);
      other.xl += weight * x[i] * moved;
      other.ll += weight * moved * moved;
      if (!(other.ll > 0 && other.xl * other.xl * sums.ll > sums.xl * sums.xl * other.ll)) continue;
      levels[i] = byte_of(level + most);
      sums = other;
      changed = true;
    }
  }
  return sums.ll > 0 ? sums.xl / sums.ll : 0.0F;
}

float fit_positive(std::span<const float> x, std::span<const float> weights, int most, Levels levels) {
  float peak = 0;
  for (const float value : x) peak = peak > value ? peak : value;
  if (peak < kLeastMagnitude) {
    std::ranges::fill(levels, std::uint8_t{0});
    return 0;
  }
  const auto whole = static_cast<float>(most);
  const auto level_of = [&](float value) { return std::min(most, nearest(value)); };
  float inverse = whole / peak;
  float best = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {  // the first levels are bytes before they are bounded
    const float distance = x[i] - 1 / inverse * static_cast<float>(byte_of(nearest(inverse * x[i])));
    best += weights[i] * distance * distance;
  }
  for (int t = -4; t <= 4; ++t) {
    if (t == 0) continue;
    const float candidate = (0.1F * static_cast<float>(t) + whole) / peak;
    const float scale = 1 / candidate;
    float error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float distance = x[i] - scale * static_cast<float>(level_of(candidate * x[i]));
      error += weights[i] * distance * distance;
    }
    if (error < best) {
      best = error;
      inverse = candidate;
    }
  }
  Products sums;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int level = level_of(inverse * x[i]);
    levels[i] = byte_of(level);
    sums.xl += weights[i] * x[i] * static_cast<float>(level);
    sums.ll += weights[i] * static_cast<float>(level) * static_cast<float>(level);
  }
  bool changed = true;
  for (int sweep = 0; sweep < kMostSweeps && changed; ++sweep) {
    changed = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto old = static_cast<float>(levels[i]);
      Products other = {sums.xl - weights[i] * x[i] * old, sums.ll - weights[i] * old * old};
      if (!(other.xl > 0 && other.ll > 0)) continue;
      const int level = level_of(x[i] * other.ll / other.xl);
      if (level == levels[i]) continue;
      const auto moved = static_cast<float>(level);
      other.xl += weights[i] * x[i] * moved;
      other.ll += weights[i] * moved * moved;
      if (!(other.xl * other.xl * sums.ll > sums.xl * sums.xl * other.ll)) continue;
      levels[i] = byte_of(level);
      sums = other;
      changed = true;
    }
  }
  return sums.ll > 0 ? sums.xl / sums.ll : 0.0F;
}

AffineFit fit_affine(std::span<const float> x, std::span<const float> weights, int most,
                     const ScaleSearch& search, Levels levels) {
  float least = x[0], greatest = x[0];
  float sum_w = weights[0], sum_x = sum_w * x[0];
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (x[i] < least) least = x[i];
    if (x[i] > greatest) greatest = x[i];
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
  }
  if (least > 0) least = 0;
  if (greatest <= least) {
    std::ranges::fill(levels, std::uint8_t{0});
    return {0, -least};
  }
  const auto error_of = [&](float scale, float minimum, const std::uint8_t* q) {
    float error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float distance = scale * static_cast<float>(q[i]) + minimum - x[i];
      error += weights[i] * (search.absolute ? std::abs(distance) : distance * distance);
    }
    return error;
  };
  const auto level_of = [&](float value) { return std::clamp(nearest(value), 0, most); };

  const float inverse = static_cast<float>(most) / (greatest - least);
  for (std::size_t i = 0; i < x.size(); ++i) levels[i] = byte_of(level_of(inverse * (x[i] - least)));
  float scale = 1 / inverse;
  float best = error_of(scale, least, levels.data());
  for (int t = 0; t <= search.last; ++t) {
    // the distance counts from the best minimum so far, not from the least number
    const float candidate =
        (search.first + search.step * static_cast<float>(t) + static_cast<float>(most)) / (greatest - least);
    std::uint8_t tried[32];
    float sum_l = 0, sum_ll = 0, sum_xl = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      tried[i] = byte_of(level_of(candidate * (x[i] - least)));
      const auto level = static_cast<float>(tried[i]);
      sum_l += weights[i] * level;
      sum_ll += weights[i] * level * level;
      sum_xl += weights[i] * level * x[i];
    }
    const float determinant = sum_w * sum_ll - sum_l * sum_l;
    if (!(determinant > 0)) continue;
    float new_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    float new_least = (sum_ll * sum_x - sum_l * sum_xl) / determinant;
    if (new_least > 0) {
      new_least = 0;
      new_scale = sum_xl / sum_ll;
    }
    const float error = error_of(new_scale, new_least, tried);
    if (!(error < best)) continue;
    std::copy_n(tried, x.size(), levels.begin());
    best = error;
    scale = new_scale;
    least = new_least;
  }
  return {scale, -least};
}

std::uint8_t nearest_four_bit(float x) {
  const float doubled = x + x;
  unsigned level = 0;  // the steps of a binary search; twice the midpoints are whole numbers
  for (unsigned step = 8; step > 0; step /= 2) {
    const unsigned above = level + step;
    if (!(doubled < static_cast<float>(kFourBitLevels[above - 1] + kFourBitLevels[above]))) level = above;
  }
  return static_cast<std::uint8_t>(level);
}

float fit_four_bit(std::span<const float> x, std::span<const float> weights) {
  constexpr int kTries = 7;
  constexpr auto kLowest = static_cast<float>(kFourBitLevels[0]);
  const float peak = extreme(x);
  if (std::abs(peak) < kLeastMagnitude) return 0;
  const auto products_of = [&](float inverse) {
    Products sums;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto level = static_cast<float>(kFourBitLevels[nearest_four_bit(inverse * x[i])]);
      sums.xl += weights[i] * level * x[i];
      sums.ll += weights[i] * level * level;
    }
    return sums;
  };
  Products sums = products_of(1 / (-peak / kLowest));
  float scale = sums.ll > 0 ? sums.xl / sums.ll : 0.0F;
  float best = scale * sums.xl;
  for (int t = -kTries; t <= kTries; ++t) {
    sums = products_of((static_cast<float>(t) + kLowest) / peak);
    if (sums.ll > 0 && sums.xl * sums.xl > best * sums.ll) {
      scale = sums.xl / sums.ll;
      best = scale * sums.xl;
    }
  }
  return scale;
}

// --- Rounds scales to codes, in the order of operations of ggml's reference.

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

}  // namespace loadline::convert
