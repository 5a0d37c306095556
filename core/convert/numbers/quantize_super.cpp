// Types of super-blocks: 256 numbers in parts of 16 or 32, each with a scale of its own in a few bits.
// Searches: core/convert/numbers/quantize_scales.h.
#include "core/convert/numbers/ggml_blocks.h"
#include "core/convert/numbers/quantize_scales.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace loadline::convert {
namespace {

using Byte = std::uint8_t;
constexpr std::size_t kSuper = 256;
constexpr ScaleSearch kWeightedSearch = {-0.9F, 0.05F, 36};

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
  std::array<float, kParts> scales{}, depths{}, weights{};  // sums of weights
  Byte levels[kSuper];

  void fit(const Block& block, std::size_t part, std::span<const float> w, int most,
           const ScaleSearch& search) {
    constexpr std::size_t kSize = kSuper / kParts;
    const AffineFit best =
        fit_affine(block.part(part, kSize), w, most, search, {levels + part * kSize, kSize});
    scales[part] = best.scale;
    depths[part] = best.depth;
    weights[part] = sum_of(w);
  }
  PartScales found(const Block& block) const {
    PartScales all = {scales, depths};
    if (block.importance != nullptr) all.weights = weights;
    return all;
  }
};

void q2_k(const Block& block) {
  AffineParts<16> parts;
  const float square = square_sum({block.x, kSuper}) / kSuper;
  for (std::size_t part = 0; part < 16; ++part) {
    if (block.importance != nullptr) {
      parts.fit(block, part, weights_of<16>(block, part, square), 3, kWeightedSearch);
      continue;
    }
    std::array<float, 16> weights{};
    std::ranges::transform(block.part(part, 16), weights.begin(), [](float x) { return std::abs(x); });
    parts.fit(block, part, weights, 3, {-0.5F, 0.1F, 15, true});
  }
  const PartFactors factors = put_q2_k_scales(parts.found(block), block.out);
  for (std::size_t part = 0; part < 16; ++part)
    affine_levels(block.part(part, 16), factors.scales[part], factors.depths[part], 3,
                  parts.levels + part * 16);
  put_two_bits(block.out + 16, parts.levels);
}

void q3_k(const Block& block) {
  Byte levels[kSuper];
  std::array<float, 16> scales{}, sums{};
  const float square = 2 * square_sum({block.x, kSuper}) / kSuper;
  for (std::size_t part = 0; part < 16; ++part) {
    const auto x = block.part(part, 16);
    const Levels own = {levels + part * 16, 16};
    if (block.importance == nullptr) {
      scales[part] = refine_symmetric(x, 4, own);
      continue;
    }
    const auto weights = weights_of<16>(block, part, square);
    sums[part] = sum_of(weights);
    scales[part] = fit_symmetric(x, weights, 4, own);
  }
  PartScales found = {scales};
  if (block.importance != nullptr) found.weights = sums;
  const PartFactors factors = put_q3_k_scales(found, block.out);
  for (std::size_t part = 0; part < 16; ++part)
    symmetric_levels(block.part(part, 16), factors.scales[part], 4, levels + part * 16);
  put_high_bits(block.out, levels, 2);
  put_two_bits(block.out + 32, levels);
}

// Q4_K and Q5_K but for their levels' bytes.
AffineParts<8> affine_super(const Block& block, int most, const ScaleSearch& search) {
  AffineParts<8> parts;
  const float square = 2 * square_sum({block.x, kSuper}) / kSuper;
  for (std::size_t part = 0; part < 8; ++part) {
    if (block.importance != nullptr) {
      parts.fit(block, part, weights_of<32>(block, part, square), most, kWeightedSearch);
      continue;
    }
    const auto x = block.part(part, 32);
    const float mean = std::sqrt(square_sum(x) / 32);
    std::array<float, 32> weights{};
    std::ranges::transform(x, weights.begin(), [&](float value) { return mean + std::abs(value); });
    parts.fit(block, part, weights, most, search);
  }
  const PartFactors factors =
      put_q4_k_scales(parts.found(block), block.importance == nullptr || most == 31, block.out);
  for (std::size_t part = 0; part < 8; ++part)
    affine_levels(block.part(part, 32), factors.scales[part], factors.depths[part], most,
                  parts.levels + part * 32);
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
  const auto factors = put_q6_k_scales({scales}, block.out);
  if (!factors) return;
  for (std::size_t part = 0; part < 16; ++part)
    symmetric_levels(block.part(part, 16), factors->scales[part], 32, levels + part * 16);
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
  const PartFactors inverses = put_iq4_xs_scales({scales}, block.out);
  for (std::size_t part = 0; part < 8; ++part) {
    Byte levels[32];
    for (std::size_t i = 0; i < 32; ++i)
      levels[i] = nearest_four_bit(inverses.scales[part] * block.x[part * 32 + i]);
    put_nibbles(block.out + 8 + part * 16, levels);
  }
}

template <std::size_t kBytes, void (*kOne)(const Block&)>
void every(const BlockRun& run) {
  for (std::size_t i = 0; i < run.blocks; ++i)
    kOne({run.x + i * kSuper, run.importance == nullptr ? nullptr : run.importance + i * kSuper,
          run.out + i * kBytes});
}

struct Row {
  graph::DType dtype;
  QuantizeRun run;
};
constexpr Row kRows[] = {{graph::DType::q2_k, every<84, q2_k>},  {graph::DType::q3_k, every<110, q3_k>},
                         {graph::DType::q4_k, every<144, q4_k>}, {graph::DType::q5_k, every<176, q5_k>},
                         {graph::DType::q6_k, every<210, q6_k>}, {graph::DType::iq4_xs, every<136, iq4_xs>}};

}  // namespace

QuantizeRun plain_super_quantizer(graph::DType dtype) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.dtype == dtype; });
  return row == std::end(kRows) ? nullptr : row->run;
}

}  // namespace loadline::convert
