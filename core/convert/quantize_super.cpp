// Types of super-blocks: 256 numbers in parts of 16 or 32, each with a scale of its own in a few bits.
// Searches: core/convert/quantize_fit.h.
#include "core/convert/quantize_blocks.h"
#include "core/convert/quantize_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace loadline {
namespace {

using Byte = std::uint8_t;
constexpr std::size_t kSuper = 256;

// A super-block. `importance` is null where there is none.
struct Block {
  const float* x;
  const float* importance;
  Byte* out;

  std::span<const float> part(std::size_t i, std::size_t size) const { return {x + i * size, size}; }
};

float square_sum(std::span<const float> x) {
  float sum = 0;
  for (const float value : x) sum += value * value;
  return sum;
}
float sum_of(std::span<const float> numbers) {
  float sum = 0;
  for (const float number : numbers) sum += number;
  return sum;
}

// The importance of each number of a part, times about its magnitude.
template <std::size_t kSize>
std::array<float, kSize> weights_of(const Block& block, std::size_t part, float square) {
  std::array<float, kSize> weights{};
  const float *const x = block.x + part * kSize, *const importance = block.importance + part * kSize;
  for (std::size_t i = 0; i < kSize; ++i) weights[i] = importance[i] * std::sqrt(square + x[i] * x[i]);
  return weights;
}

// The levels again, for the scale as it is stored; those of a zero scale stay.
void affine_levels(std::span<const float> x, float scale, float depth, int most, Byte* levels) {
  if (scale == 0) return;
  for (std::size_t i = 0; i < x.size(); ++i)
    levels[i] = static_cast<Byte>(std::clamp(nearest((x[i] + depth) / scale), 0, most));
}
void symmetric_levels(std::span<const float> x, float scale, int most, Byte* levels) {
  if (scale == 0) return;
  for (std::size_t i = 0; i < x.size(); ++i)
    levels[i] = static_cast<Byte>(std::clamp(nearest(x[i] / scale), -most, most - 1) + most);
}

// One fit for each part of a super-block.
template <std::size_t kParts>
struct AffineParts {
  std::array<float, kParts> scales{}, depths{};
  std::array<float, kParts> weights{};  // sums, with importance
  Byte levels[kSuper];

  void fit(const Block& block, std::size_t part, std::span<const float> w, int most,
           const ScaleSearch& search) {
    constexpr std::size_t kSize = kSuper / kParts;
    const AffineFit found =
        fit_affine(block.part(part, kSize), w, most, search, {levels + part * kSize, kSize});
    scales[part] = found.scale;
    depths[part] = found.depth;
  }
};

// The greatest of positive numbers, or 0.
float greatest(std::span<const float> numbers) {
  float most = 0;
  for (const float number : numbers)
    if (number > most) most = number;
  return most;
}
// The number of largest magnitude, the first of equal ones, or 0.
float extreme(std::span<const float> numbers) {
  float most = 0, found = 0;
  for (const float number : numbers)
    if (std::abs(number) > most) {
      most = std::abs(number);
      found = number;
    }
  return found;
}

// Numbers that are not negative in `most` steps of a common factor, which is returned.
template <std::size_t kParts>
float quantize_factors(const std::array<float, kParts>& numbers, int most, Byte* levels) {
  const float peak = greatest(numbers), whole = static_cast<float>(most);
  const float inverse = peak > 0 ? whole / peak : 0.0F;
  for (std::size_t i = 0; i < kParts; ++i) levels[i] = static_cast<Byte>(nearest(inverse * numbers[i]));
  return peak / whole;
}

void q2_k(const Block& block) {
  AffineParts<16> parts;
  Byte scales[16], depths[16];
  if (block.importance == nullptr) {
    for (std::size_t part = 0; part < 16; ++part) {
      std::array<float, 16> weights{};
      std::ranges::transform(block.part(part, 16), weights.begin(), [](float x) { return std::abs(x); });
      parts.fit(block, part, weights, 3, {-0.5F, 0.1F, 15, true});
    }
    put_half(block.out + 80, quantize_factors(parts.scales, 15, scales));
    put_half(block.out + 82, quantize_factors(parts.depths, 15, depths));
  } else {
    const float square = square_sum({block.x, kSuper}) / kSuper;
    for (std::size_t part = 0; part < 16; ++part) {
      const auto weights = weights_of<16>(block, part, square);
      parts.weights[part] = sum_of(weights);
      parts.fit(block, part, weights, 3, {-0.9F, 0.05F, 36});
    }
    put_half(block.out + 80, fit_positive(parts.scales, parts.weights, 15, scales));
    put_half(block.out + 82, fit_positive(parts.depths, parts.weights, 15, depths));
  }
  const float scale = half_at(block.out + 80), depth = half_at(block.out + 82);
  for (std::size_t part = 0; part < 16; ++part) {
    block.out[part] = static_cast<Byte>(scales[part] | depths[part] << 4);
    affine_levels(block.part(part, 16), scale * static_cast<float>(block.out[part] & 15),
                  depth * static_cast<float>(block.out[part] >> 4), 3, parts.levels + part * 16);
  }
  put_two_bits(block.out + 16, parts.levels);
}

void q3_k(const Block& block) {
  Byte levels[kSuper], codes[16];
  std::array<float, 16> scales{};
  if (block.importance == nullptr) {
    for (std::size_t part = 0; part < 16; ++part)
      scales[part] = refine_symmetric(block.part(part, 16), 4, {levels + part * 16, 16});
    const float peak = extreme(scales);
    const float inverse = -32.0F / peak;
    for (std::size_t part = 0; part < 16; ++part) {
      const int code = peak != 0 ? static_cast<std::int8_t>(nearest(inverse * scales[part])) : -32;
      codes[part] = static_cast<Byte>(std::clamp(code, -32, 31) + 32);
    }
    put_half(block.out + 108, peak != 0 ? 1 / inverse : 0.0F);
  } else {
    std::array<float, 16> sums{};
    const float square = 2 * square_sum({block.x, kSuper}) / kSuper;
    for (std::size_t part = 0; part < 16; ++part) {
      const auto weights = weights_of<16>(block, part, square);
      sums[part] = sum_of(weights);
      scales[part] = fit_symmetric(block.part(part, 16), weights, 4, {levels + part * 16, 16});
    }
    put_half(block.out + 108, fit_symmetric(scales, sums, 32, codes));
  }
  put_six_bit_scales(block.out + 96, codes);
  const float scale = half_at(block.out + 108);
  for (std::size_t part = 0; part < 16; ++part)
    symmetric_levels(block.part(part, 16), scale * static_cast<float>(codes[part] - 32), 4,
                     levels + part * 16);
  put_high_bits(block.out, levels, 2);
  put_two_bits(block.out + 32, levels);
}

// Q4_K and Q5_K but for their levels' bytes. Returns the levels.
AffineParts<8> affine_super(const Block& block, int most, const ScaleSearch& search) {
  AffineParts<8> parts;
  Byte scales[8], depths[8];
  if (block.importance == nullptr) {
    for (std::size_t part = 0; part < 8; ++part) {
      const auto x = block.part(part, 32);
      const float mean = std::sqrt(square_sum(x) / 32);
      std::array<float, 32> weights{};
      std::ranges::transform(x, weights.begin(), [&](float value) { return mean + std::abs(value); });
      parts.fit(block, part, weights, most, search);
    }
    put_half(block.out, quantize_factors(parts.scales, 63, scales));
    put_half(block.out + 2, quantize_factors(parts.depths, 63, depths));
  } else {
    const float square = 2 * square_sum({block.x, kSuper}) / kSuper;
    for (std::size_t part = 0; part < 8; ++part) {
      const auto weights = weights_of<32>(block, part, square);
      parts.weights[part] = sum_of(weights);
      parts.fit(block, part, weights, most, {-0.9F, 0.05F, 36});
    }
    put_half(block.out, fit_positive(parts.scales, parts.weights, 63, scales));
    put_half(block.out + 2, fit_positive(parts.depths, parts.weights, 63, depths));
  }
  for (std::size_t part = 0; part < 8; ++part) {
    scales[part] = std::min<Byte>(scales[part], 63);
    depths[part] = std::min<Byte>(depths[part], 63);
  }
  put_scales_and_minima(block.out + 4, scales, depths);
  const float scale = half_at(block.out), depth = half_at(block.out + 2);
  for (std::size_t part = 0; part < 8; ++part)
    affine_levels(block.part(part, 32), scale * static_cast<float>(scales[part]),
                  depth * static_cast<float>(depths[part]), most, parts.levels + part * 32);
  return parts;
}

void q4_k(const Block& block) {
  put_wide_nibbles(block.out + 16, affine_super(block, 15, {-1.0F, 0.1F, 20}).levels);
}
void q5_k(const Block& block) {
  const AffineParts<8> parts = affine_super(block, 31, {-0.5F, 0.1F, 15});
  put_high_bits(block.out + 16, parts.levels, 4);
  put_wide_nibbles(block.out + 48, parts.levels);
}

void q6_k(const Block& block) {
  Byte levels[kSuper];
  std::array<float, 16> scales{};
  for (std::size_t part = 0; part < 16; ++part) {
    const auto x = block.part(part, 16);
    std::array<float, 16> weights{};
    if (block.importance == nullptr)
      std::ranges::transform(x, weights.begin(), [](float value) { return value * value; });
    else
      std::copy_n(block.importance + part * 16, 16, weights.begin());
    scales[part] = fit_symmetric(x, weights, 32, {levels + part * 16, 16});
  }
  const float peak = extreme(scales);
  if (std::abs(peak) < kLeastMagnitude) {
    std::fill_n(block.out, 210, Byte{0});
    return;
  }
  const float inverse = -128.0F / peak;
  put_half(block.out + 208, 1 / inverse);
  const float scale = half_at(block.out + 208);
  for (std::size_t part = 0; part < 16; ++part) {
    const auto code = static_cast<std::int8_t>(std::min(127, nearest(inverse * scales[part])));
    block.out[192 + part] = static_cast<Byte>(code);
    symmetric_levels(block.part(part, 16), scale * static_cast<float>(code), 32, levels + part * 16);
  }
  put_six_bits(block.out, levels);
}

void iq4_xs(const Block& block) {
  const float square = square_sum({block.x, kSuper}) * (2.0F / kSuper);
  std::array<float, 8> scales{};
  for (std::size_t part = 0; part < 8; ++part) {
    const auto x = block.part(part, 32);
    std::array<float, 32> weights{};
    if (block.importance == nullptr)
      std::ranges::transform(x, weights.begin(), [](float value) { return value * value; });
    else
      weights = weights_of<32>(block, part, square);
    scales[part] = fit_four_bit(x, weights);
  }
  const float scale = -extreme(scales) / 32;
  const float inverse = scale != 0 ? 1 / scale : 0.0F;
  put_half(block.out, scale);
  std::fill_n(block.out + 2, 6, Byte{0});
  for (std::size_t part = 0; part < 8; ++part) {
    const int code = std::clamp(nearest(inverse * scales[part]), -32, 31);
    const float own = scale * static_cast<float>(code);
    const float own_inverse = own != 0 ? 1 / own : 0.0F;
    Byte levels[32];
    for (std::size_t i = 0; i < 32; ++i) levels[i] = nearest_four_bit(own_inverse * block.x[part * 32 + i]);
    put_nibbles(block.out + 8 + part * 16, levels);
    const auto bits = static_cast<unsigned>(code + 32);
    Byte &low = block.out[4 + part / 2], &high = block.out[2 + part / 4];
    low = static_cast<Byte>(low | (bits & 15) << (part % 2 * 4));
    high = static_cast<Byte>(high | (bits >> 4) << (part % 4 * 2));
  }
}

template <std::size_t kBytes, void (*kOne)(const Block&)>
void every(const BlockRun& run) {
  for (std::size_t i = 0; i < run.blocks; ++i)
    kOne({run.x + i * kSuper, run.importance == nullptr ? nullptr : run.importance + i * kSuper,
          run.out + i * kBytes});
}

struct Row {
  DType dtype;
  QuantizeRun run;
};
constexpr Row kRows[] = {{DType::q2_k, every<84, q2_k>},  {DType::q3_k, every<110, q3_k>},
                         {DType::q4_k, every<144, q4_k>}, {DType::q5_k, every<176, q5_k>},
                         {DType::q6_k, every<210, q6_k>}, {DType::iq4_xs, every<136, iq4_xs>}};

}  // namespace

QuantizeRun plain_super_quantizer(DType dtype) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.dtype == dtype; });
  return row == std::end(kRows) ? nullptr : row->run;
}

}  // namespace loadline
