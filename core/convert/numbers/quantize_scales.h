// Searches for the scale of a few numbers; the scales of a super-block in a few bits.
#pragma once

#include "core/convert/numbers/ggml_blocks.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace loadline::convert {

// --- Searches for the scale with which few levels stand for a few numbers at the least weighted error. They
// follow ggml's (ggml-quants.c of 2026-08) addition by addition: another order would give other bits.

// Groups whose numbers are all smaller become zero.
inline constexpr float kLeastMagnitude = 1e-15F;

// Half to even, and 0 for NaN. Beyond 4194303 the result is that of adding 1.5 * 2^23 and taking the lowest
// 23 bits, as in ggml.
int nearest(float value);

// Toward zero; INT_MIN for NaN and for values beyond 32 bits, as on x86.
int truncated(float value);

// The number of largest magnitude, the first of equal ones, with its sign; 0 where no number compares.
float extreme(std::span<const float> x);

using Levels = std::span<std::uint8_t>;

// x = scale * (level - most), levels from 0 to 2 * most - 1. Returns the scale.
float fit_symmetric(std::span<const float> x, std::span<const float> weights, int most, Levels levels);

// The same, where each level in turn is moved as long as that helps; a number's weight is its square.
float refine_symmetric(std::span<const float> x, int most, Levels levels);

// x = scale * level, levels from 0 to `most`, for numbers that are not negative.
float fit_positive(std::span<const float> x, std::span<const float> weights, int most, Levels levels);

// Scales to try: (most + first + step * i) / range, for i from 0 to `last`.
struct ScaleSearch {
  float first;
  float step;
  int last;
  bool absolute = false;  // the error is the distance, not its square
};

struct AffineFit {
  float scale;
  float depth;  // of the least number below zero: x = scale * level - depth
};

AffineFit fit_affine(std::span<const float> x, std::span<const float> weights, int most,
                     const ScaleSearch& search, Levels levels);

// The level nearest to `x`, the greater one where two are as near. The last one for NaN, where versions of
// ggml differ.
std::uint8_t nearest_four_bit(float x);

// x = scale * kFourBitLevels[...]. Returns the scale.
float fit_four_bit(std::span<const float> x, std::span<const float> weights);

// --- Scales of the parts of a super-block in a few bits each.

// What a search found for each part.
struct PartScales {
  std::span<const float> scales;
  std::span<const float> depths = {};   // of the types that have them
  std::span<const float> weights = {};  // sums; empty without importance
};

// What the stored scales stand for.
struct PartFactors {
  std::array<float, 16> scales{}, depths{};
};

// Each writes a block's scales, in their place in the block at `out`.
PartFactors put_q2_k_scales(const PartScales& parts, std::uint8_t* out);
PartFactors put_q3_k_scales(const PartScales& parts, std::uint8_t* out);
// Q4_K and Q5_K. Without `bounded`, a negative scale spoils others too, as in ggml's Q4_K with importance.
PartFactors put_q4_k_scales(const PartScales& parts, bool bounded, std::uint8_t* out);
// Nothing, and a block of zeros, where all scales are next to nothing.
std::optional<PartFactors> put_q6_k_scales(const PartScales& parts, std::uint8_t* out);
// The factors are inverse: 0 for a scale of 0.
PartFactors put_iq4_xs_scales(const PartScales& parts, std::uint8_t* out);

}  // namespace loadline::convert
