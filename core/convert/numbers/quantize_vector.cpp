// Types of small blocks that need no search, with Google Highway: compiled for every instruction set it knows
// and chosen at run time. Where a result could depend on the order of work (NaN, infinities, signs of zero)
// or leave the range of the fast conversions, a block goes to the plain quantizer.
#include "core/convert/numbers/ggml_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/convert/numbers/quantize_vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace loadline::convert {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Byte = std::uint8_t;

constexpr std::size_t kSmall = 32;
// Magnitudes for which no quotient, product or inverse below overflows or loses digits.
constexpr float kLeast = 0x1p-100F, kMost = 0x1p100F;

const hn::CappedTag<float, 16> kFloats;
using Floats = hn::Vec<decltype(kFloats)>;
const hn::RebindToSigned<decltype(kFloats)> kInts;
const hn::Rebind<std::uint8_t, decltype(kFloats)> kBytes;

// The largest of `count` magnitudes, a multiple of sixteen. Not finite where any number is not: bits of
// magnitudes order like the magnitudes, NaN above all.
HWY_INLINE float greatest_magnitude(const float* x, std::size_t count) {
  const auto mask = hn::Set(kInts, 0x7FFFFFFF);
  auto most = hn::Zero(kInts);
  for (std::size_t i = 0; i < count; i += hn::Lanes(kFloats))
    most = hn::Max(most, hn::And(hn::BitCast(kInts, hn::LoadU(kFloats, x + i)), mask));
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(kInts, most)));
}

// False for NaN too.
bool is_ordinary(float magnitude) { return magnitude >= kLeast && magnitude <= kMost; }

// Whole numbers from 0 to 255, rounded toward zero.
HWY_INLINE void store_levels(Floats values, Byte* to) {
  hn::StoreU(hn::DemoteTo(kBytes, hn::ConvertTo(kInts, values)), kBytes, to);
}

HWY_INLINE bool q8_0(const float* x, Byte* out) {
  const float most = greatest_magnitude(x, kSmall);
  if (!is_ordinary(most)) return false;
  const float scale = most / 127;
  put_half(out, scale);
  const auto inverse = hn::Set(kFloats, 1 / scale);
  // the largest float below one half: added to a number, it carries exactly those past the next whole number
  // whose fraction is a half or more
  const auto half = hn::Set(kFloats, 0x1.fffffep-2F);
  const hn::Rebind<std::int8_t, decltype(kFloats)> bytes;
  for (std::size_t i = 0; i < kSmall; i += hn::Lanes(kFloats)) {
    const auto level = hn::Mul(hn::LoadU(kFloats, x + i), inverse);
    const auto rounded = hn::ConvertTo(kInts, hn::Add(level, hn::CopySign(half, level)));
    hn::StoreU(hn::DemoteTo(bytes, rounded), bytes, reinterpret_cast<std::int8_t*>(out + 2 + i));
  }
  return true;
}

// The first number of that magnitude.
HWY_INLINE float first_of_magnitude(const float* x, float magnitude) {
  const auto wanted = hn::Set(kFloats, magnitude);
  for (std::size_t i = 0;; i += hn::Lanes(kFloats)) {
    const auto found = hn::FindFirstTrue(kFloats, hn::Eq(hn::Abs(hn::LoadU(kFloats, x + i)), wanted));
    if (found >= 0) return x[i + static_cast<std::size_t>(found)];
  }
}

HWY_INLINE bool symmetric_levels(const float* x, int most, Byte* out, Byte* levels) {
  const float magnitude = greatest_magnitude(x, kSmall);
  if (!is_ordinary(magnitude)) return false;
  const float scale = first_of_magnitude(x, magnitude) / static_cast<float>(-most);
  put_half(out, scale);
  const auto inverse = hn::Set(kFloats, 1 / scale);
  const auto middle = hn::Set(kFloats, static_cast<float>(most) + 0.5F);
  const auto highest = hn::Set(kFloats, static_cast<float>(2 * most - 1));
  for (std::size_t i = 0; i < kSmall; i += hn::Lanes(kFloats)) {
    const auto level = hn::Add(hn::Mul(hn::LoadU(kFloats, x + i), inverse), middle);
    store_levels(hn::Min(level, highest), levels + i);
  }
  return true;
}

HWY_INLINE bool q4_0(const float* x, Byte* out) {
  Byte levels[kSmall];
  if (!symmetric_levels(x, 8, out, levels)) return false;
  put_nibbles(out + 2, levels);
  return true;
}
HWY_INLINE bool q5_0(const float* x, Byte* out) {
  Byte levels[kSmall];
  if (!symmetric_levels(x, 16, out, levels)) return false;
  put_fifth_bits(out + 2, levels);
  put_nibbles(out + 6, levels);
  return true;
}

HWY_INLINE bool affine_levels(const float* x, int most, Byte* out, Byte* levels) {
  if (!(greatest_magnitude(x, kSmall) <= kMost)) return false;
  auto least_lanes = hn::LoadU(kFloats, x), greatest_lanes = least_lanes;
  for (std::size_t i = hn::Lanes(kFloats); i < kSmall; i += hn::Lanes(kFloats)) {
    const auto v = hn::LoadU(kFloats, x + i);
    least_lanes = hn::Min(least_lanes, v);
    greatest_lanes = hn::Max(greatest_lanes, v);
  }
  const float least = hn::GetLane(hn::MinOfLanes(kFloats, least_lanes));
  const float greatest = hn::GetLane(hn::MaxOfLanes(kFloats, greatest_lanes));
  // of several zeros the first one's sign would count
  if (least == 0 || !(greatest - least >= kLeast)) return false;
  const float scale = (greatest - least) / static_cast<float>(most);
  put_half(out, scale);
  put_half(out + 2, least);
  const auto lowest = hn::Set(kFloats, least), inverse = hn::Set(kFloats, 1 / scale);
  const auto half = hn::Set(kFloats, 0.5F), highest = hn::Set(kFloats, static_cast<float>(most));
  for (std::size_t i = 0; i < kSmall; i += hn::Lanes(kFloats)) {
    const auto level = hn::Mul(hn::Sub(hn::LoadU(kFloats, x + i), lowest), inverse);
    store_levels(hn::Min(hn::Add(level, half), highest), levels + i);
  }
  return true;
}

HWY_INLINE bool q4_1(const float* x, Byte* out) {
  Byte levels[kSmall];
  if (!affine_levels(x, 15, out, levels)) return false;
  put_nibbles(out + 4, levels);
  return true;
}
HWY_INLINE bool q5_1(const float* x, Byte* out) {
  Byte levels[kSmall];
  if (!affine_levels(x, 31, out, levels)) return false;
  put_fifth_bits(out + 4, levels);
  put_nibbles(out + 8, levels);
  return true;
}

// Midpoints of 0, 1, 2, 3, 4, 6, 8 and 12. A number at a midpoint goes to the level nearer to zero.
HWY_INLINE void e2m1_levels(const float* x, std::size_t count, float scale, Byte* levels) {
  constexpr float kMidpoints[] = {0.5F, 1.5F, 2.5F, 3.5F, 5, 7, 10};
  const auto one = hn::Set(kInts, 1), sign = hn::Set(kInts, 8);
  for (std::size_t i = 0; i < count; i += hn::Lanes(kFloats)) {
    const auto v = hn::LoadU(kFloats, x + i);
    const auto magnitude = hn::Abs(v);
    auto level = hn::Zero(kInts);
    for (const float midpoint : kMidpoints) {
      const auto above = hn::Gt(magnitude, hn::Set(kFloats, midpoint * scale));
      level = hn::Add(level, hn::IfThenElseZero(hn::RebindMask(kInts, above), one));
    }
    const auto negative =
        hn::And(hn::Gt(level, hn::Zero(kInts)), hn::RebindMask(kInts, hn::Lt(v, hn::Zero(kFloats))));
    level = hn::Add(level, hn::IfThenElseZero(negative, sign));
    hn::StoreU(hn::DemoteTo(kBytes, level), kBytes, levels + i);
  }
}

// As power_scale(). Only near a power of two does the rounding of a logarithm matter.
HWY_INLINE Byte power_scale_of(float most) {
  const auto bits = std::bit_cast<std::uint32_t>(most);
  const std::uint32_t fraction = bits & 0x7FFFFF;
  if (fraction < 0x1000 || fraction > 0x7FF000) return power_scale(most);
  return static_cast<Byte>((bits >> 23) - 2);
}

HWY_INLINE bool mxfp4(const float* x, Byte* out) {
  const float most = greatest_magnitude(x, kSmall);
  if (!is_ordinary(most)) return false;
  Byte levels[kSmall];
  out[0] = power_scale_of(most);
  e2m1_levels(x, kSmall, half_power(out[0]), levels);
  put_nibbles(out + 1, levels);
  return true;
}

HWY_INLINE bool nvfp4(const float* x, Byte* out) {
  Byte levels[64];
  for (std::size_t part = 0; part < 4; ++part) {
    const float most = greatest_magnitude(x + 16 * part, 16) / 6;
    // beyond the range of scales, distances to all levels may be equal
    if (!(most >= 0x1p-9F && most <= 448)) return false;
    out[part] = e4m3_scale(most);
    e2m1_levels(x + 16 * part, 16, half_e4m3(out[part]), levels + 16 * part);
  }
  for (std::size_t i = 0; i < 32; ++i) {
    const Byte* const q = levels + i / 8 * 16 + i % 8;
    out[4 + i] = static_cast<Byte>(q[0] | q[8] << 4);
  }
  return true;
}

HWY_INLINE bool tq2_0(const float* x, Byte* out) {
  const float scale = greatest_magnitude(x, 256);
  if (!is_ordinary(scale)) return false;
  Byte levels[256];
  const auto inverse = hn::Set(kFloats, 1 / scale), half = hn::Set(kFloats, 0.5F);
  const auto one = hn::Set(kInts, 1);
  for (std::size_t i = 0; i < 256; i += hn::Lanes(kFloats)) {
    const auto v = hn::Mul(hn::LoadU(kFloats, x + i), inverse);
    const auto up = hn::IfThenElseZero(hn::RebindMask(kInts, hn::Ge(v, half)), one);
    const auto down = hn::IfThenElseZero(hn::RebindMask(kInts, hn::Le(v, hn::Neg(half))), one);
    hn::StoreU(hn::DemoteTo(kBytes, hn::Sub(hn::Add(one, up), down)), kBytes, levels + i);
  }
  put_two_bits(out, levels);
  put_half(out + 64, scale);
  return true;
}

template <bool (*kOne)(const float*, Byte*), int kNumbers, int kBlockBytes>
void every(const BlockRun& run, QuantizeRun plain) {
  for (std::size_t i = 0; i < run.blocks; ++i) {
    const float* const x = run.x + i * kNumbers;
    Byte* const out = run.out + i * kBlockBytes;
    if (!kOne(x, out)) plain({x, nullptr, 0, 1, out});
  }
}

}  // namespace

void quantize_small_blocks(graph::DType dtype, const BlockRun& run, QuantizeRun plain) {
  switch (dtype) {
    case graph::DType::q8_0:
      return every<q8_0, 32, 34>(run, plain);
    case graph::DType::q4_0:
      return every<q4_0, 32, 18>(run, plain);
    case graph::DType::q4_1:
      return every<q4_1, 32, 20>(run, plain);
    case graph::DType::q5_0:
      return every<q5_0, 32, 22>(run, plain);
    case graph::DType::q5_1:
      return every<q5_1, 32, 24>(run, plain);
    case graph::DType::mxfp4:
      return every<mxfp4, 32, 17>(run, plain);
    case graph::DType::nvfp4:
      return every<nvfp4, 64, 36>(run, plain);
    case graph::DType::tq2_0:
      return every<tq2_0, 256, 66>(run, plain);
    default:
      return plain(run);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace loadline::convert
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace loadline::convert {

HWY_EXPORT(quantize_small_blocks);

void quantize_small(graph::DType dtype, const BlockRun& run, QuantizeRun plain) {
  HWY_DYNAMIC_DISPATCH(quantize_small_blocks)(dtype, run, plain);
}

}  // namespace loadline::convert
#endif  // HWY_ONCE
