// Vector loops with Google Highway, compiled for every instruction set it knows and chosen at run time.
#include "core/convert/numbers/kernels.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/convert/numbers/statistics_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace loadline::convert {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The bits of a mask of at most 64 lanes, lane 0 lowest.
template <class D, class M>
HWY_INLINE std::uint64_t bits_of(D d, M mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, (hn::MaxLanes(d) + 7) / 8);
  return word;
}

#if HWY_TARGET != HWY_SCALAR  // scalar vectors have no halves
// The two halves of a vector of floats, converted to double.
template <class DD, class V>
HWY_INLINE hn::Vec<DD> lower(DD dd, V v) {
  const hn::Half<hn::Repartition<float, DD>> dh;
  return hn::PromoteTo(dd, hn::LowerHalf(dh, v));
}
template <class DD, class V>
HWY_INLINE hn::Vec<DD> upper(DD dd, V v) {
  const hn::Half<hn::Repartition<float, DD>> dh;
  return hn::PromoteTo(dd, hn::UpperHalf(dh, v));
}

// The sum of the squared distances from the mean; `special`: some values are infinite or no numbers, and do
// not count.
template <class DD>
HWY_INLINE double squares_about(DD dd, double mean_value, const float* HWY_RESTRICT values, std::size_t count,
                                bool special) {
  const hn::Repartition<float, DD> df;
  const std::size_t lanes = hn::Lanes(df);
  const auto mean = hn::Set(dd, mean_value);
  auto squares0 = hn::Zero(dd), squares1 = hn::Zero(dd);
  if (!special) {
    for (std::size_t at = 0; at < count; at += lanes) {
      const auto v = hn::LoadU(df, values + at);
      const auto a = hn::Sub(lower(dd, v), mean), b = hn::Sub(upper(dd, v), mean);
      squares0 = hn::MulAdd(a, a, squares0);
      squares1 = hn::MulAdd(b, b, squares1);
    }
  } else {
    for (std::size_t at = 0; at < count; at += lanes) {
      const auto v = hn::LoadU(df, values + at);
      const auto a = lower(dd, v), b = upper(dd, v);
      const auto da = hn::IfThenElseZero(hn::IsFinite(a), hn::Sub(a, mean));
      const auto db = hn::IfThenElseZero(hn::IsFinite(b), hn::Sub(b, mean));
      squares0 = hn::MulAdd(da, da, squares0);
      squares1 = hn::MulAdd(db, db, squares1);
    }
  }
  return hn::GetLane(hn::SumOfLanes(dd, hn::Add(squares0, squares1)));
}

// `count` is a multiple of 64. The result has no zero bits for the elements past it.
HWY_INLINE FloatChunk measure(const float* HWY_RESTRICT values, std::size_t count) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Repartition<double, decltype(df)> dd;
  const std::size_t lanes = hn::Lanes(df);
  const auto infinity = hn::Set(di, 0x7F800000);
  const auto least_normal = hn::Set(di, 0x00800000);
  const auto magnitude_mask = hn::Set(di, 0x7FFFFFFF);

  FloatChunk out;
  auto least = hn::Set(df, std::numeric_limits<float>::infinity());
  auto most = hn::Set(df, -std::numeric_limits<float>::infinity());
  auto sum0 = hn::Zero(dd), sum1 = hn::Zero(dd);
  auto any_tiny = hn::Zero(di);
  std::uint64_t special = 0;
  for (std::size_t at = 0; at < count; at += 64) {
    std::uint64_t zeros = 0;
    for (std::size_t i = 0; i < 64; i += lanes) {
      const auto v = hn::LoadU(df, values + at + i);
      const auto magnitude = hn::And(hn::BitCast(di, v), magnitude_mask);
      const auto zero = hn::Eq(magnitude, hn::Zero(di));
      const auto finite = hn::Lt(magnitude, infinity);
      zeros |= bits_of(di, zero) << i;
      special += lanes - hn::CountTrue(di, finite);
      any_tiny = hn::Or(any_tiny, hn::VecFromMask(di, hn::AndNot(zero, hn::Lt(magnitude, least_normal))));
      const auto known = hn::RebindMask(df, finite);
      least = hn::Min(least, hn::IfThenElse(known, v, least));
      most = hn::Max(most, hn::IfThenElse(known, v, most));
      const auto addend = hn::IfThenElseZero(known, v);
      sum0 = hn::Add(sum0, lower(dd, addend));
      sum1 = hn::Add(sum1, upper(dd, addend));
    }
    out.zeros[at / 64] = zeros;
  }
  out.has_special = special != 0;
  out.has_tiny = !hn::AllFalse(di, hn::Ne(any_tiny, hn::Zero(di)));
  Moments& moments = out.moments;
  moments.finite = count - special;
  if (moments.finite == 0) return out;
  moments.min = static_cast<double>(hn::GetLane(hn::MinOfLanes(df, least)));
  moments.max = static_cast<double>(hn::GetLane(hn::MaxOfLanes(df, most)));
  moments.mean = hn::GetLane(hn::SumOfLanes(dd, hn::Add(sum0, sum1))) / static_cast<double>(moments.finite);
  moments.squares = squares_about(dd, moments.mean, values, count, out.has_special);
  return out;
}
#else
FloatChunk measure(const float* values, std::size_t count) {
  return measure_floats_plain(std::span(values, count));
}
#endif

}  // namespace

void measure_float_words(const float* values, std::size_t count, FloatChunk* out) {
  *out = measure(values, count);
}

// `count` is a multiple of 64.
void zero_code_words(const std::uint8_t* codes, std::size_t count, std::uint8_t mask, std::uint64_t* out) {
  const hn::CappedTag<std::uint8_t, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto bits = hn::Set(d, mask);
  for (std::size_t at = 0; at < count; at += 64) {
    std::uint64_t zeros = 0;
    for (std::size_t i = 0; i < 64; i += lanes)
      zeros |= bits_of(d, hn::Eq(hn::And(hn::LoadU(d, codes + at + i), bits), hn::Zero(d))) << i;
    out[at / 64] = zeros;
  }
}

std::uint64_t count_ones_all(const std::uint64_t* words, std::size_t count) {
  std::uint64_t ones = 0;
  for (std::size_t i = 0; i < count; ++i) ones += hwy::PopCount(words[i]);
  return ones;
}

}  // namespace HWY_NAMESPACE
}  // namespace loadline::convert
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace loadline::convert {

HWY_EXPORT(measure_float_words);
HWY_EXPORT(zero_code_words);
HWY_EXPORT(count_ones_all);

Moments joined(const Moments& a, const Moments& b) {
  if (a.finite == 0) return b;
  if (b.finite == 0) return a;
  const auto na = static_cast<double>(a.finite), nb = static_cast<double>(b.finite);
  const double distance = b.mean - a.mean, share = nb / (na + nb);
  return {a.finite + b.finite, std::min(a.min, b.min), std::max(a.max, b.max), a.mean + distance * share,
          a.squares + b.squares + distance * distance * na * share};
}

FloatChunk measure_floats_plain(std::span<const float> values) {
  assert(values.size() <= kChunk);
  FloatChunk out = {};
  Moments& moments = out.moments;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = values[i];
    if (value == 0) out.zeros[i / 64] |= std::uint64_t{1} << (i % 64);
    if (!std::isfinite(value)) {
      out.has_special = true;
      continue;
    }
    if (value != 0 && std::abs(value) < std::numeric_limits<float>::min()) out.has_tiny = true;
    ++moments.finite;
    moments.min = std::min(moments.min, static_cast<double>(value));
    moments.max = std::max(moments.max, static_cast<double>(value));
    sum += static_cast<double>(value);
  }
  if (moments.finite == 0) return out;
  moments.mean = sum / static_cast<double>(moments.finite);
  for (const float value : values)
    if (std::isfinite(value)) {
      const double distance = static_cast<double>(value) - moments.mean;
      moments.squares += distance * distance;
    }
  return out;
}

FloatChunk measure_floats(std::span<const float> values) {
  assert(values.size() <= kChunk);
  const std::size_t whole = values.size() / 64 * 64;
  FloatChunk out;
  HWY_DYNAMIC_DISPATCH(measure_float_words)(values.data(), whole, &out);
  std::fill(out.zeros.begin() + static_cast<std::ptrdiff_t>(whole / 64), out.zeros.end(), 0);
  if (whole == values.size()) return out;
  const FloatChunk rest = measure_floats_plain(values.subspan(whole));
  out.zeros[whole / 64] = rest.zeros[0];
  out.has_special = out.has_special || rest.has_special;
  out.has_tiny = out.has_tiny || rest.has_tiny;
  out.moments = joined(out.moments, rest.moments);
  return out;
}

ZeroBits zero_codes_plain(std::span<const std::uint8_t> codes, std::uint8_t mask) {
  assert(codes.size() <= kChunk);
  ZeroBits out = {};
  for (std::size_t i = 0; i < codes.size(); ++i)
    if ((codes[i] & mask) == 0) out[i / 64] |= std::uint64_t{1} << (i % 64);
  return out;
}

ZeroBits zero_codes(std::span<const std::uint8_t> codes, std::uint8_t mask) {
  assert(codes.size() <= kChunk);
  const std::size_t whole = codes.size() / 64 * 64;
  ZeroBits out;
  HWY_DYNAMIC_DISPATCH(zero_code_words)(codes.data(), whole, mask, out.data());
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(whole / 64), out.end(), 0);
  if (whole < codes.size()) out[whole / 64] = zero_codes_plain(codes.subspan(whole), mask)[0];
  return out;
}

std::uint64_t count_ones(std::span<const std::uint64_t> words) {
  return HWY_DYNAMIC_DISPATCH(count_ones_all)(words.data(), words.size());
}

}  // namespace loadline::convert
#endif  // HWY_ONCE
