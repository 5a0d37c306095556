// The searches of core/convert/numbers/quantize_scales.h for sixteen groups of numbers at once. Each lane
// does what the plain loop does for its group, in the same order, so that it gets the same bits. Included
// once for each instruction set.

#if defined(LOADLINE_QUANTIZE_SEARCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOADLINE_QUANTIZE_SEARCH_INL_H_
#undef LOADLINE_QUANTIZE_SEARCH_INL_H_
#else
#define LOADLINE_QUANTIZE_SEARCH_INL_H_
#endif

#include "core/convert/numbers/quantize_scales.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace loadline::convert {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kGroups = 16;
inline constexpr std::size_t kMostNumbers = 32;  // of a group

const hn::CappedTag<float, kGroups> kFloats;
using Floats = hn::Vec<decltype(kFloats)>;
using Mask = hn::Mask<decltype(kFloats)>;
const hn::RebindToSigned<decltype(kFloats)> kInts;

// Number i of group g at [i * kGroups + g].
using Turned = float[kMostNumbers * kGroups];

struct Lanes {
  HWY_ALIGN Turned x;
  HWY_ALIGN Turned weights;
  HWY_ALIGN Turned importance;
  std::size_t size = 0;  // numbers of a group
};

// What a search finds, by group. The levels of a group follow from `inverse` and `base`: they are the rounded
// inverse * (x - base), or all 0 where `inverse` is 0.
struct Found {
  HWY_ALIGN float scales[kGroups];
  HWY_ALIGN float depths[kGroups];
  HWY_ALIGN float inverses[kGroups];
  HWY_ALIGN float bases[kGroups];
  HWY_ALIGN float weights[kGroups];  // sums
};

HWY_INLINE void turn(const float* HWY_RESTRICT from, std::size_t size, std::size_t groups,
                     float* HWY_RESTRICT to) {
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t i = 0; i < size; ++i) to[i * kGroups + g] = from[g * size + i];
  for (std::size_t g = groups; g < kGroups; ++g)
    for (std::size_t i = 0; i < size; ++i) to[i * kGroups + g] = 0;
}

// Whole numbers of at most 22 bits, half to even.
HWY_INLINE Floats rounded(Floats v) {
  const auto bias = hn::Set(kFloats, 12582912.0F);
  return hn::Sub(hn::Add(v, bias), bias);
}
// As nearest(): for any numbers but NaN that were in the input.
HWY_INLINE auto nearest_ints(Floats v) {
  const auto bits = hn::BitCast(kInts, hn::Add(v, hn::Set(kFloats, 12582912.0F)));
  return hn::Sub(hn::And(bits, hn::Set(kInts, 0x7FFFFF)), hn::Set(kInts, 0x400000));
}
// nearest() of values bounded to whole numbers; kExact also where nearest() differs from rounding.
template <bool kExact>
HWY_INLINE Floats bounded(Floats v, Floats least, Floats most) {
  if constexpr (kExact) v = hn::ConvertTo(kFloats, nearest_ints(v));
  const auto within = hn::Min(hn::Max(v, least), most);
  return kExact ? within : rounded(within);
}
HWY_INLINE bool all_rounded(Floats a, Floats b) {
  const auto most = hn::Set(kFloats, 4194303.0F);
  return hn::AllTrue(kFloats, hn::And(hn::Le(hn::Abs(a), most), hn::Le(hn::Abs(b), most)));
}

// One vector of groups of the affine search.
template <bool kAbsolute>
struct AffineLanes {
  const float* x;
  const float* w;
  std::size_t size;
  Floats most;
  HWY_ALIGN Turned levels;  // only the first lanes of each row are used
  Floats lowest, greatest;  // numbers
  Floats sum_w, sum_x;      // of the weights, and of the weighted numbers

  HWY_INLINE AffineLanes(const Lanes& lanes, std::size_t first, float whole)
      : x(lanes.x + first), w(lanes.weights + first), size(lanes.size), most(hn::Set(kFloats, whole)) {
    lowest = greatest = hn::Load(kFloats, x);
    sum_w = hn::Load(kFloats, w);
    sum_x = hn::Mul(sum_w, lowest);
    for (std::size_t i = 1; i < size; ++i) {
      const auto number = hn::Load(kFloats, x + i * kGroups);
      const auto weight = hn::Load(kFloats, w + i * kGroups);
      lowest = hn::IfThenElse(hn::Lt(number, lowest), number, lowest);  // keeps the first zero's sign
      greatest = hn::Max(greatest, number);
      sum_w = hn::Add(sum_w, weight);
      sum_x = hn::Add(sum_x, hn::Mul(weight, number));
    }
  }

  template <bool kExact>
  HWY_INLINE void make_levels(Floats inverse, Floats base, Floats& sum_l, Floats& sum_ll, Floats& sum_xl) {
    const auto zero = hn::Zero(kFloats);
    sum_l = sum_ll = sum_xl = zero;
    for (std::size_t i = 0; i < size; ++i) {
      const auto number = hn::Load(kFloats, x + i * kGroups);
      const auto level = bounded<kExact>(hn::Mul(inverse, hn::Sub(number, base)), zero, most);
      hn::Store(level, kFloats, levels + i * kGroups);
      const auto weighted = hn::Mul(hn::Load(kFloats, w + i * kGroups), level);
      sum_l = hn::Add(sum_l, weighted);
      sum_ll = hn::Add(sum_ll, hn::Mul(weighted, level));
      sum_xl = hn::Add(sum_xl, hn::Mul(weighted, number));
    }
  }

  HWY_INLINE Floats error(Floats scale, Floats minimum) const {
    auto sum = hn::Zero(kFloats);
    for (std::size_t i = 0; i < size; ++i) {
      const auto level = hn::Load(kFloats, levels + i * kGroups);
      const auto distance =
          hn::Sub(hn::Add(hn::Mul(scale, level), minimum), hn::Load(kFloats, x + i * kGroups));
      const auto loss = kAbsolute ? hn::Abs(distance) : hn::Mul(distance, distance);
      sum = hn::Add(sum, hn::Mul(hn::Load(kFloats, w + i * kGroups), loss));
    }
    return sum;
  }
};

// fit_affine() of all groups.
template <bool kAbsolute>
HWY_INLINE void fit_affine_lanes(const Lanes& lanes, int most, const ScaleSearch& search, Found& found) {
  const auto zero = hn::Zero(kFloats);
  const auto whole = static_cast<float>(most);
  for (std::size_t v = 0; v < kGroups; v += hn::Lanes(kFloats)) {
    AffineLanes<kAbsolute> fit(lanes, v, whole);
    const auto lowest = fit.lowest, greatest = fit.greatest, sum_w = fit.sum_w, sum_x = fit.sum_x;
    auto least = hn::IfThenElse(hn::Gt(lowest, zero), zero, lowest);
    const Mask spread = hn::Gt(greatest, least);
    hn::Store(sum_w, kFloats, found.weights + v);

    auto inverse = hn::IfThenElseZero(spread, hn::Div(fit.most, hn::Sub(greatest, least)));
    auto base = least;
    auto scale = hn::IfThenElseZero(spread, hn::Div(hn::Set(kFloats, 1), inverse));
    Floats sum_l, sum_ll, sum_xl;
    const auto make_levels = [&](Floats candidate) HWY_ATTR {
      // values grow with the numbers, so that the ends stand for all
      if (HWY_LIKELY(all_rounded(hn::Mul(candidate, hn::Sub(lowest, least)),
                                 hn::Mul(candidate, hn::Sub(greatest, least)))))
        fit.template make_levels<false>(candidate, least, sum_l, sum_ll, sum_xl);
      else
        fit.template make_levels<true>(candidate, least, sum_l, sum_ll, sum_xl);
    };
    make_levels(inverse);
    auto best = fit.error(scale, least);
    for (int t = 0; t <= search.last; ++t) {
      const float factor = search.first + search.step * static_cast<float>(t) + whole;
      const auto candidate =
          hn::IfThenElseZero(spread, hn::Div(hn::Set(kFloats, factor), hn::Sub(greatest, least)));
      make_levels(candidate);
      const auto determinant = hn::Sub(hn::Mul(sum_w, sum_ll), hn::Mul(sum_l, sum_l));
      auto new_scale = hn::Div(hn::Sub(hn::Mul(sum_w, sum_xl), hn::Mul(sum_x, sum_l)), determinant);
      auto new_least = hn::Div(hn::Sub(hn::Mul(sum_ll, sum_x), hn::Mul(sum_l, sum_xl)), determinant);
      const Mask above = hn::Gt(new_least, zero);
      new_least = hn::IfThenElse(above, zero, new_least);
      new_scale = hn::IfThenElse(above, hn::Div(sum_xl, sum_ll), new_scale);
      const auto error = fit.error(new_scale, new_least);
      const Mask better = hn::And(hn::Gt(determinant, zero), hn::And(spread, hn::Lt(error, best)));
      best = hn::IfThenElse(better, error, best);
      scale = hn::IfThenElse(better, new_scale, scale);
      inverse = hn::IfThenElse(better, candidate, inverse);
      base = hn::IfThenElse(better, least, base);
      least = hn::IfThenElse(better, new_least, least);
    }
    hn::Store(scale, kFloats, found.scales + v);
    hn::Store(hn::Neg(least), kFloats, found.depths + v);
    hn::Store(inverse, kFloats, found.inverses + v);
    hn::Store(base, kFloats, found.bases + v);
  }
}

// The number of largest magnitude of each group, the first of equal ones, with its sign.
HWY_INLINE Floats extreme_lanes(const float* x, std::size_t size) {
  auto magnitude = hn::Zero(kFloats), peak = magnitude;
  for (std::size_t i = 0; i < size; ++i) {
    const auto number = hn::Load(kFloats, x + i * kGroups);
    const Mask greater = hn::Gt(hn::Abs(number), magnitude);
    magnitude = hn::IfThenElse(greater, hn::Abs(number), magnitude);
    peak = hn::IfThenElse(greater, number, peak);
  }
  return peak;
}
HWY_INLINE Mask is_large(Floats peak) { return hn::Ge(hn::Abs(peak), hn::Set(kFloats, kLeastMagnitude)); }

struct ProductLanes {
  Floats xl, ll;
};
struct ProductPair {
  ProductLanes a, b;
};

// One vector of groups of the symmetric search.
struct SymmetricLanes {
  const float* x;
  const float* w;
  std::size_t size;
  Floats least, highest;      // levels
  HWY_ALIGN Turned weighted;  // numbers; only the first lanes of each row are used

  // Of two candidates at a time, whose sums do not wait for each other.
  HWY_INLINE ProductPair sums(Floats a, Floats b) const {
    const auto zero = hn::Zero(kFloats);
    ProductLanes sums_a = {zero, zero}, sums_b = {zero, zero};
    for (std::size_t i = 0; i < size; ++i) {
      const auto number = hn::Load(kFloats, x + i * kGroups), weight = hn::Load(kFloats, w + i * kGroups);
      const auto product = hn::Load(kFloats, weighted + i * kGroups);
      const auto level_a = bounded<false>(hn::Mul(a, number), least, highest);
      const auto level_b = bounded<false>(hn::Mul(b, number), least, highest);
      sums_a.xl = hn::Add(sums_a.xl, hn::Mul(product, level_a));
      sums_b.xl = hn::Add(sums_b.xl, hn::Mul(product, level_b));
      sums_a.ll = hn::Add(sums_a.ll, hn::Mul(hn::Mul(weight, level_a), level_a));
      sums_b.ll = hn::Add(sums_b.ll, hn::Mul(hn::Mul(weight, level_b), level_b));
    }
    return {sums_a, sums_b};
  }
};

// fit_symmetric() of all groups. Its values lie within `most` + 1.
HWY_INLINE void fit_symmetric_lanes(const Lanes& lanes, int most, Found& found) {
  const auto whole = static_cast<float>(most);
  const auto zero = hn::Zero(kFloats);
  SymmetricLanes fit;
  fit.size = lanes.size;
  fit.least = hn::Set(kFloats, -whole);
  fit.highest = hn::Set(kFloats, whole - 1);
  for (std::size_t v = 0; v < kGroups; v += hn::Lanes(kFloats)) {
    fit.x = lanes.x + v;
    fit.w = lanes.weights + v;
    const auto peak = extreme_lanes(fit.x, fit.size);
    const Mask large = is_large(peak);
    auto sum_w = zero;
    for (std::size_t i = 0; i < fit.size; ++i) {
      const auto weight = hn::Load(kFloats, fit.w + i * kGroups);
      sum_w = hn::Add(sum_w, weight);
      hn::Store(hn::Mul(weight, hn::Load(kFloats, fit.x + i * kGroups)), kFloats, fit.weighted + i * kGroups);
    }
    hn::Store(sum_w, kFloats, found.weights + v);
    const auto candidate = [&](int t) HWY_ATTR {
      const float factor = t == 0 ? -whole : -(whole + 0.1F * static_cast<float>(t));
      return hn::IfThenElseZero(large, hn::Div(hn::Set(kFloats, factor), peak));
    };
    auto inverse = candidate(0), scale = zero, best = zero;
    const auto consider = [&](Floats tried, const ProductLanes& products) HWY_ATTR {
      const Mask better = hn::And(hn::Gt(products.ll, zero),
                                  hn::Gt(hn::Mul(products.xl, products.xl), hn::Mul(best, products.ll)));
      const auto new_scale = hn::Div(products.xl, products.ll);
      inverse = hn::IfThenElse(better, tried, inverse);
      scale = hn::IfThenElse(better, new_scale, scale);
      best = hn::IfThenElse(better, hn::Mul(new_scale, products.xl), best);
    };
    constexpr int kOrder[20] = {0, 0, -9, -8, -7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    for (std::size_t k = 0; k < std::size(kOrder); k += 2) {
      const auto a = candidate(kOrder[k]), b = candidate(kOrder[k + 1]);
      const ProductPair sums = fit.sums(a, b);
      if (k == 0) {
        // Ne() says no to NaN
        scale = hn::IfThenZeroElse(hn::Eq(sums.a.ll, zero), hn::Div(sums.a.xl, sums.a.ll));
        best = hn::Mul(scale, sums.a.xl);
        continue;
      }
      consider(a, sums.a);
      consider(b, sums.b);
    }
    hn::Store(hn::IfThenElseZero(large, scale), kFloats, found.scales + v);
    hn::Store(inverse, kFloats, found.inverses + v);
    hn::Store(zero, kFloats, found.bases + v);
  }
}

// refine_symmetric() of all groups. `levels` gets the levels, turned, from -most on.
HWY_INLINE void refine_symmetric_lanes(const Lanes& lanes, int most, Found& found, float* levels) {
  const auto whole = static_cast<float>(most);
  const auto least = hn::Set(kFloats, -whole), highest = hn::Set(kFloats, whole - 1);
  const auto zero = hn::Zero(kFloats);
  for (std::size_t v = 0; v < kGroups; v += hn::Lanes(kFloats)) {
    const float* const x = lanes.x + v;
    float* const own = levels + v;
    const auto peak = extreme_lanes(x, lanes.size);
    const Mask large = is_large(peak);
    const auto inverse = hn::IfThenElseZero(large, hn::Div(least, peak));
    ProductLanes sums = {zero, zero};
    for (std::size_t i = 0; i < lanes.size; ++i) {
      const auto number = hn::Load(kFloats, x + i * kGroups), weight = hn::Mul(number, number);
      const auto level = bounded<false>(hn::Mul(inverse, number), least, highest);
      hn::Store(level, kFloats, own + i * kGroups);
      sums.xl = hn::Add(sums.xl, hn::Mul(hn::Mul(weight, number), level));
      sums.ll = hn::Add(sums.ll, hn::Mul(hn::Mul(weight, level), level));
    }
    // a group that did not change in a sweep does not change in the next ones
    bool changed = true;
    for (int sweep = 0; sweep < 5 && changed; ++sweep) {
      Mask moved_any = hn::Lt(zero, zero);
      for (std::size_t i = 0; i < lanes.size; ++i) {
        const auto number = hn::Load(kFloats, x + i * kGroups), weight = hn::Mul(number, number);
        const auto product = hn::Mul(weight, number);
        const auto level = hn::Load(kFloats, own + i * kGroups);
        auto xl = hn::Sub(sums.xl, hn::Mul(product, level));
        auto ll = hn::Sub(sums.ll, hn::Mul(hn::Mul(weight, level), level));
        const Mask positive = hn::And(large, hn::Gt(xl, zero));
        const auto moved = bounded<true>(hn::Div(hn::Mul(number, ll), xl), least, highest);
        xl = hn::Add(xl, hn::Mul(product, moved));
        ll = hn::Add(ll, hn::Mul(hn::Mul(weight, moved), moved));
        const Mask helps = hn::And(hn::Gt(ll, zero), hn::Gt(hn::Mul(hn::Mul(xl, xl), sums.ll),
                                                            hn::Mul(hn::Mul(sums.xl, sums.xl), ll)));
        const Mask moves = hn::And(hn::And(positive, hn::Ne(moved, level)), helps);
        hn::Store(hn::IfThenElse(moves, moved, level), kFloats, own + i * kGroups);
        sums.xl = hn::IfThenElse(moves, xl, sums.xl);
        sums.ll = hn::IfThenElse(moves, ll, sums.ll);
        moved_any = hn::Or(moved_any, moves);
      }
      changed = !hn::AllFalse(kFloats, moved_any);
    }
    const auto scale = hn::IfThenElseZero(hn::Gt(sums.ll, zero), hn::Div(sums.xl, sums.ll));
    hn::Store(hn::IfThenElseZero(large, scale), kFloats, found.scales + v);
    hn::Store(inverse, kFloats, found.inverses + v);
  }
}

// The level of IQ4_NL nearest to each number, and its position. NaN goes to the last.
HWY_INLINE Floats four_bit_levels(Floats v) {
  const auto doubled = hn::Add(v, v);
  auto level = hn::Set(kFloats, static_cast<float>(kFourBitLevels[0]));
  for (std::size_t k = 1; k < std::size(kFourBitLevels); ++k) {
    const auto midpoint = hn::Set(kFloats, static_cast<float>(kFourBitLevels[k - 1] + kFourBitLevels[k]));
    const auto step = hn::Set(kFloats, static_cast<float>(kFourBitLevels[k] - kFourBitLevels[k - 1]));
    level = hn::Add(level, hn::IfThenZeroElse(hn::Lt(doubled, midpoint), step));
  }
  return level;
}
HWY_INLINE auto four_bit_positions(Floats v) {
  const auto doubled = hn::Add(v, v);
  auto position = hn::Zero(kInts);
  for (std::size_t k = 1; k < std::size(kFourBitLevels); ++k) {
    const auto midpoint = hn::Set(kFloats, static_cast<float>(kFourBitLevels[k - 1] + kFourBitLevels[k]));
    const auto below = hn::RebindMask(kInts, hn::Lt(doubled, midpoint));
    position = hn::Add(position, hn::IfThenZeroElse(below, hn::Set(kInts, 1)));
  }
  return position;
}

// fit_four_bit() of all groups.
HWY_INLINE void fit_four_bit_lanes(const Lanes& lanes, Found& found) {
  const auto zero = hn::Zero(kFloats);
  const auto lowest = static_cast<float>(kFourBitLevels[0]);
  for (std::size_t v = 0; v < kGroups; v += hn::Lanes(kFloats)) {
    const float *const x = lanes.x + v, *const w = lanes.weights + v;
    const auto peak = extreme_lanes(x, lanes.size);
    const Mask large = is_large(peak);
    const auto products_of = [&](Floats inverse) HWY_ATTR {
      ProductLanes sums = {zero, zero};
      for (std::size_t i = 0; i < lanes.size; ++i) {
        const auto number = hn::Load(kFloats, x + i * kGroups);
        const auto level = four_bit_levels(hn::Mul(inverse, number));
        const auto weighted = hn::Mul(hn::Load(kFloats, w + i * kGroups), level);
        sums.xl = hn::Add(sums.xl, hn::Mul(weighted, number));
        sums.ll = hn::Add(sums.ll, hn::Mul(weighted, level));
      }
      return sums;
    };
    const auto first = hn::Div(hn::Neg(peak), hn::Set(kFloats, lowest));
    auto sums = products_of(hn::IfThenElseZero(large, hn::Div(hn::Set(kFloats, 1), first)));
    auto scale = hn::IfThenElseZero(hn::Gt(sums.ll, zero), hn::Div(sums.xl, sums.ll));
    auto best = hn::Mul(scale, sums.xl);
    for (int t = -7; t <= 7; ++t) {
      const auto factor = hn::Set(kFloats, static_cast<float>(t) + lowest);
      sums = products_of(hn::IfThenElseZero(large, hn::Div(factor, peak)));
      const Mask better =
          hn::And(hn::Gt(sums.ll, zero), hn::Gt(hn::Mul(sums.xl, sums.xl), hn::Mul(best, sums.ll)));
      scale = hn::IfThenElse(better, hn::Div(sums.xl, sums.ll), scale);
      best = hn::IfThenElse(better, hn::Mul(scale, sums.xl), best);
    }
    hn::Store(hn::IfThenElseZero(large, scale), kFloats, found.scales + v);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace loadline::convert
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
