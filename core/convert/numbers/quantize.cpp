// The plain quantizers of blocks of 16 to 64 numbers, and the choice of a quantizer.
#include "core/convert/numbers/quantize.h"

#include "core/convert/numbers/ggml_blocks.h"
#include "core/convert/numbers/quantize_scales.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <iterator>

namespace loadline::convert {

// --- Types whose blocks have one scale, or one for each sixteen numbers. Searches:
// core/convert/numbers/quantize_scales.h.

namespace {

using Byte = std::uint8_t;
constexpr std::size_t kSmall = 32;

// A block of a run.
struct Block {
  std::span<const float> x;
  std::span<const float> importance;  // empty: none
  float mean_square = 0;
  Byte* out = nullptr;
};

// The weights of a search among levels.
std::array<float, kSmall> weights_of(const Block& block, float square) {
  std::array<float, kSmall> weights{};
  for (std::size_t i = 0; i < kSmall; ++i)
    weights[i] = block.importance[i] * std::sqrt(square + block.x[i] * block.x[i]);
  return weights;
}

float inverse_of(float scale) { return scale != 0 ? 1 / scale : 0.0F; }

// As the reference's MAX: a NaN is forgotten with the next number.
float greatest_magnitude(std::span<const float> x) {
  float most = 0;
  for (const float value : x) most = most > std::abs(value) ? most : std::abs(value);
  return most;
}

void q8_0(const Block& block) {
  const float scale = greatest_magnitude(block.x) / 127, inverse = inverse_of(scale);
  put_half(block.out, scale);
  for (std::size_t i = 0; i < kSmall; ++i)
    block.out[2 + i] = static_cast<Byte>(truncated(std::round(block.x[i] * inverse)));
}

// The number of largest magnitude gets the lowest level.
void symmetric_levels(const Block& block, int most, Byte* levels) {
  float magnitude = 0, peak = 0;
  for (const float value : block.x)
    if (magnitude < std::abs(value)) {
      magnitude = std::abs(value);
      peak = value;
    }
  const float scale = peak / static_cast<float>(-most), inverse = inverse_of(scale);
  put_half(block.out, scale);
  for (std::size_t i = 0; i < kSmall; ++i) {
    const float level = block.x[i] * inverse + (static_cast<float>(most) + 0.5F);
    levels[i] = static_cast<Byte>(std::min<int>(2 * most - 1, static_cast<std::int8_t>(truncated(level))));
  }
}
void weighted_symmetric_levels(const Block& block, int most, Byte* levels) {
  put_half(block.out, fit_symmetric(block.x, weights_of(block, block.mean_square), most, {levels, kSmall}));
}

void q4_0(const Block& block) {
  Byte levels[kSmall];
  block.importance.empty() ? symmetric_levels(block, 8, levels) : weighted_symmetric_levels(block, 8, levels);
  put_nibbles(block.out + 2, levels);
}
void q5_0(const Block& block) {
  Byte levels[kSmall];
  block.importance.empty() ? symmetric_levels(block, 16, levels)
                           : weighted_symmetric_levels(block, 16, levels);
  put_fifth_bits(block.out + 2, levels);
  put_nibbles(block.out + 6, levels);
}

// From the least number up to the greatest.
void affine_levels(const Block& block, int most, Byte* levels) {
  float least = FLT_MAX, greatest = -FLT_MAX;
  for (const float value : block.x) {
    if (value < least) least = value;
    if (value > greatest) greatest = value;
  }
  const float scale = (greatest - least) / static_cast<float>(most), inverse = inverse_of(scale);
  put_half(block.out, scale);
  put_half(block.out + 2, least);
  for (std::size_t i = 0; i < kSmall; ++i) {
    const int level = truncated((block.x[i] - least) * inverse + 0.5F);
    // Q4_1 bounds its levels, Q5_1 does not
    levels[i] = static_cast<Byte>(most == 15 ? std::min<int>(15, static_cast<std::int8_t>(level)) : level);
  }
}
void weighted_affine_levels(const Block& block, int most, Byte* levels) {
  const AffineFit fit =
      fit_affine(block.x, weights_of(block, block.mean_square), most, {-0.9F, 0.05F, 36}, {levels, kSmall});
  put_half(block.out, fit.scale);
  put_half(block.out + 2, -fit.depth);
}

void q4_1(const Block& block) {
  Byte levels[kSmall];
  block.importance.empty() ? affine_levels(block, 15, levels) : weighted_affine_levels(block, 15, levels);
  // not bounded by four bits where the block holds infinities
  for (std::size_t j = 0; j < 16; ++j) block.out[4 + j] = static_cast<Byte>(levels[j] | levels[j + 16] << 4);
}
void q5_1(const Block& block) {
  Byte levels[kSmall];
  block.importance.empty() ? affine_levels(block, 31, levels) : weighted_affine_levels(block, 31, levels);
  put_fifth_bits(block.out + 4, levels);
  put_nibbles(block.out + 8, levels);
}

void iq4_nl(const Block& block) {
  float square = 0;
  for (const float value : block.x) square += value * value;
  square *= 2.0F / kSmall;
  std::array<float, kSmall> weights{};
  if (block.importance.empty())
    std::ranges::transform(block.x, weights.begin(), [](float value) { return value * value; });
  else
    weights = weights_of(block, square);
  const float scale = fit_four_bit(block.x, weights), inverse = inverse_of(scale);
  put_half(block.out, scale);
  Byte levels[kSmall];
  for (std::size_t i = 0; i < kSmall; ++i) levels[i] = nearest_four_bit(inverse * block.x[i]);
  put_nibbles(block.out + 2, levels);
}

// The first of the nearest ones: 0 is never -0.
Byte nearest_e2m1(float x, float scale) {
  Byte best = 0;
  float least = std::abs(static_cast<float>(kE2M1Doubled[0]) * scale - x);
  for (std::size_t i = 1; i < std::size(kE2M1Doubled); ++i) {
    const float distance = std::abs(static_cast<float>(kE2M1Doubled[i]) * scale - x);
    if (distance < least) {
      least = distance;
      best = static_cast<Byte>(i);
    }
  }
  return best;
}

void e2m1_levels(std::span<const float> x, float scale, Byte* out) {
  const std::size_t half = x.size() / 2;
  for (std::size_t j = 0; j < half; ++j)
    out[j] = static_cast<Byte>(nearest_e2m1(x[j], scale) | nearest_e2m1(x[j + half], scale) << 4);
}

// Ignores NaN.
float greatest_number(std::span<const float> x) {
  float most = 0;
  for (const float value : x)
    if (most < std::abs(value)) most = std::abs(value);
  return most;
}

void mxfp4(const Block& block) {
  block.out[0] = power_scale(greatest_number(block.x));
  e2m1_levels(block.x, half_power(block.out[0]), block.out + 1);
}

void nvfp4(const Block& block) {
  for (std::size_t part = 0; part < 4; ++part) {
    const auto x = block.x.subspan(16 * part, 16);
    block.out[part] = e4m3_scale(greatest_number(x) / 6);
    e2m1_levels(x, half_e4m3(block.out[part]), block.out + 4 + 8 * part);
  }
}

// -1, 0 and 1 as 0, 1 and 2; what is no number, or beyond 64 bits, is 0.
Byte ternary_level(float value) {
  const bool fits = std::abs(value) < 9223372036854775808.0F;
  return static_cast<Byte>(((fits ? static_cast<std::int64_t>(std::round(value)) : 0) + 1) & 3);
}

void tq2_0(const Block& block) {
  const float scale = greatest_magnitude(block.x), inverse = inverse_of(scale);
  Byte levels[256];
  for (std::size_t i = 0; i < 256; ++i) levels[i] = ternary_level(block.x[i] * inverse);
  put_two_bits(block.out, levels);
  put_half(block.out + 64, scale);
}

template <graph::DType kType, void (*kOne)(const Block&)>
void every(const BlockRun& run) {
  const std::size_t numbers = graph::dtype_info(kType).block_elements,
                    bytes = graph::dtype_info(kType).block_bytes;
  for (std::size_t i = 0; i < run.blocks; ++i) {
    Block block = {{run.x + i * numbers, numbers}, {}, run.mean_square, run.out + i * bytes};
    if (run.importance != nullptr) block.importance = {run.importance + i * numbers, numbers};
    kOne(block);
  }
}

struct Row {
  graph::DType dtype;
  QuantizeRun run;
};
constexpr Row kRows[] = {
    {graph::DType::q8_0, every<graph::DType::q8_0, q8_0>},
    {graph::DType::q4_0, every<graph::DType::q4_0, q4_0>},
    {graph::DType::q4_1, every<graph::DType::q4_1, q4_1>},
    {graph::DType::q5_0, every<graph::DType::q5_0, q5_0>},
    {graph::DType::q5_1, every<graph::DType::q5_1, q5_1>},
    {graph::DType::iq4_nl, every<graph::DType::iq4_nl, iq4_nl>},
    {graph::DType::mxfp4, every<graph::DType::mxfp4, mxfp4>},
    {graph::DType::nvfp4, every<graph::DType::nvfp4, nvfp4>},
    {graph::DType::tq2_0, every<graph::DType::tq2_0, tq2_0>},
};

}  // namespace

std::uint8_t power_scale(float most) {
  if (!(most > 0)) return 0;
  return static_cast<Byte>(truncated(std::floor(std::log2(most)) - 2 + 127));
}

std::uint8_t e4m3_scale(float value) {
  if (!(value > 0)) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(std::min(value, 448.0F));
  const int exponent = static_cast<int>(bits >> 23) - 127 + 7;
  if (exponent <= 0) return static_cast<Byte>(std::min(7, truncated(value * 512 + 0.5F)));
  // half away from zero; ggml takes the greatest factor, 448, for all from 256 on
  const auto rounded = ((static_cast<std::uint32_t>(exponent) << 4 | (bits >> 19 & 15)) + 1) >> 1;
  return rounded >= 15 << 3 ? 0x7E : static_cast<Byte>(rounded);
}

float half_e4m3(std::uint8_t scale) {
  if (scale == 0 || scale == 0x7F) return 0;
  const int exponent = scale >> 3 & 15, fraction = scale & 7;
  const float factor = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                     : std::ldexp(1.0F + static_cast<float>(fraction) / 8.0F, exponent - 7);
  return factor * 0.5F;
}

QuantizeRun plain_small_quantizer(graph::DType dtype) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.dtype == dtype; });
  return row == std::end(kRows) ? nullptr : row->run;
}

// --- Chooses the quantizer of a type.

namespace {

QuantizeRun plain_quantizer(graph::DType dtype) {
  const QuantizeRun small = plain_small_quantizer(dtype);
  return small != nullptr ? small : plain_super_quantizer(dtype);
}

// Whether quantizing without importance searches for scales.
bool is_searched(graph::DType dtype) {
  return plain_super_quantizer(dtype) != nullptr || dtype == graph::DType::iq4_nl;
}

BlockRun run_of(graph::DType dtype, std::span<const float> numbers, const RowImportance& importance,
                std::span<std::byte> blocks) {
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  assert(can_quantize(dtype) && numbers.size() % info.block_elements == 0);
  assert(blocks.size() / info.block_bytes == numbers.size() / info.block_elements);
  assert(importance.columns.empty() || importance.columns.size() == numbers.size());
  const bool heeded = heeds_importance(dtype) && !importance.columns.empty();
  return {numbers.data(), heeded ? importance.columns.data() : nullptr, importance.mean_square,
          blocks.size() / info.block_bytes, reinterpret_cast<std::uint8_t*>(blocks.data())};
}

}  // namespace

bool can_quantize(graph::DType dtype) { return plain_quantizer(dtype) != nullptr; }

bool heeds_importance(graph::DType dtype) {
  switch (dtype) {
    case graph::DType::q8_0:
    case graph::DType::mxfp4:
    case graph::DType::nvfp4:
    case graph::DType::tq2_0:
      return false;
    default:
      return can_quantize(dtype);
  }
}

bool needs_row_square(graph::DType dtype) {
  return dtype == graph::DType::q4_0 || dtype == graph::DType::q4_1 || dtype == graph::DType::q5_0 ||
         dtype == graph::DType::q5_1;
}

float sum_squares(std::span<const float> numbers, float sum) {
  for (const float number : numbers) sum += number * number;
  return sum;
}

void quantize_plain(graph::DType dtype, std::span<const float> numbers, const RowImportance& importance,
                    std::span<std::byte> blocks) {
  plain_quantizer(dtype)(run_of(dtype, numbers, importance, blocks));
}

void quantize(graph::DType dtype, std::span<const float> numbers, const RowImportance& importance,
              std::span<std::byte> blocks) {
  const BlockRun run = run_of(dtype, numbers, importance, blocks);
  const bool searched = run.importance != nullptr || is_searched(dtype);
  (searched ? quantize_searched : quantize_small)(dtype, run, plain_quantizer(dtype));
}

void quantize(graph::DType dtype, std::span<const float> numbers, std::span<std::byte> blocks) {
  quantize(dtype, numbers, RowImportance{}, blocks);
}

void quantize_rows(graph::DType dtype, std::span<const float> rows, std::span<const float> importance,
                   std::span<std::byte> blocks) {
  if (importance.empty() || !heeds_importance(dtype)) return quantize(dtype, rows, blocks);
  const std::size_t columns = importance.size();
  assert(rows.size() % columns == 0);
  const std::size_t count = rows.size() / columns, bytes = count == 0 ? 0 : blocks.size() / count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = rows.subspan(i * columns, columns);
    const float square = needs_row_square(dtype) ? sum_squares(row) / static_cast<float>(columns) : 0.0F;
    quantize(dtype, row, RowImportance{importance, square}, blocks.subspan(i * bytes, bytes));
  }
}

}  // namespace loadline::convert
