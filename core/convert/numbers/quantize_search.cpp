// Types whose quantizers search for scales, sixteen groups of numbers at once, compiled for every instruction
// set that Highway knows. The blocks' bytes come to be as in core/convert/numbers/quantize_super.cpp and
// quantize.cpp. Numbers or importance that are not finite go to the plain quantizer.
#include "core/convert/numbers/ggml_blocks.h"
#include "core/convert/numbers/quantize_scales.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/convert/numbers/quantize_search.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "core/convert/numbers/quantize_search-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace loadline::convert {
namespace HWY_NAMESPACE {
namespace {

using Byte = std::uint8_t;
constexpr std::size_t kSuper = 256;
constexpr ScaleSearch kWeightedSearch = {-0.9F, 0.05F, 36};

const hn::Rebind<std::uint8_t, decltype(kFloats)> kBytes;

// Sixteen groups: one or more whole blocks.
struct Work {
  Lanes lanes;
  Found found;
  HWY_ALIGN Turned levels;  // of refine_symmetric_lanes()
  const float* x = nullptr;
  bool weighted = false;
  float mean_square = 0;  // of the row

  // What the search found for groups [first, first + count).
  PartScales parts(std::size_t first, std::size_t count) const {
    PartScales all = {{found.scales + first, count}, {found.depths + first, count}};
    if (weighted) all.weights = {found.weights + first, count};
    return all;
  }
  // The numbers of group `g`, in order.
  const float* group(std::size_t g) const { return x + g * lanes.size; }
};

HWY_INLINE bool all_finite(const float* x, std::size_t count) {
  const auto mask = hn::Set(kInts, 0x7FFFFFFF);
  auto most = hn::Zero(kInts);
  for (std::size_t i = 0; i < count; i += hn::Lanes(kFloats))
    most = hn::Max(most, hn::And(hn::BitCast(kInts, hn::LoadU(kFloats, x + i)), mask));
  return hn::AllTrue(kInts, hn::Lt(most, hn::Set(kInts, 0x7F800000)));
}

// `weigh(i, v)`: the weights of the numbers from position `i` on, which is in groups from `v` on.
template <class Weigh>
HWY_INLINE void make_weights(Lanes& lanes, Weigh weigh) {
  for (std::size_t v = 0; v < kGroups; v += hn::Lanes(kFloats))
    for (std::size_t i = v; i < lanes.size * kGroups; i += kGroups)
      hn::Store(weigh(i, v), kFloats, lanes.weights + i);
}
HWY_INLINE void square_weights(Lanes& lanes) {
  make_weights(lanes, [&](std::size_t i, std::size_t) HWY_ATTR {
    const auto x = hn::Load(kFloats, lanes.x + i);
    return hn::Mul(x, x);
  });
}
// The importance times about the magnitude. `squares`: of each group's surroundings.
HWY_INLINE void importance_weights(Lanes& lanes, const float* squares) {
  make_weights(lanes, [&](std::size_t i, std::size_t v) HWY_ATTR {
    const auto x = hn::Load(kFloats, lanes.x + i);
    const auto magnitude = hn::Sqrt(hn::Add(hn::Load(kFloats, squares + v), hn::Mul(x, x)));
    return hn::Mul(hn::Load(kFloats, lanes.importance + i), magnitude);
  });
}

// `of(sum of squares)` of each super-block, for each of its groups.
template <class Of>
HWY_INLINE void super_squares(const Work& work, float* squares, Of of) {
  const std::size_t groups = kSuper / work.lanes.size;
  for (std::size_t g = 0; g < kGroups; g += groups) {
    float sum = 0;
    for (std::size_t i = 0; i < groups; ++i)
      for (std::size_t k = 0; k < work.lanes.size; ++k) {
        const float number = work.lanes.x[k * kGroups + g + i];
        sum += number * number;
      }
    std::fill_n(squares + g, groups, of(sum));
  }
}

// Sums of squares of each group, from left to right.
HWY_INLINE Floats group_squares(const Lanes& lanes, std::size_t v) {
  auto sum = hn::Zero(kFloats);
  for (std::size_t i = v; i < lanes.size * kGroups; i += kGroups) {
    const auto x = hn::Load(kFloats, lanes.x + i);
    sum = hn::Add(sum, hn::Mul(x, x));
  }
  return sum;
}

template <class Ints>
HWY_INLINE void store_bounded(Ints value, int least, int most, int offset, Byte* to) {
  const auto bounded = hn::Min(hn::Max(value, hn::Set(kInts, least)), hn::Set(kInts, most));
  hn::StoreU(hn::DemoteTo(kBytes, hn::Add(bounded, hn::Set(kInts, offset))), kBytes, to);
}

// The levels of group `g` for the scale as it is stored; those of the search where it is zero.
HWY_INLINE void affine_levels(const Work& work, std::size_t g, float scale, float depth, int most, Byte* to) {
  const float* const x = work.group(g);
  const float inverse = work.found.inverses[g], base = work.found.bases[g];
  const auto d = hn::Set(kFloats, scale), m = hn::Set(kFloats, depth);
  const auto own_inverse = hn::Set(kFloats, inverse), own_base = hn::Set(kFloats, base);
  for (std::size_t i = 0; i < work.lanes.size; i += hn::Lanes(kFloats)) {
    const auto v = hn::LoadU(kFloats, x + i);
    const auto value = scale != 0 ? hn::Div(hn::Add(v, m), d) : hn::Mul(own_inverse, hn::Sub(v, own_base));
    store_bounded(nearest_ints(value), 0, most, 0, to + i);
  }
}
HWY_INLINE void symmetric_levels(const Work& work, std::size_t g, float scale, int most, Byte* to) {
  const float* const x = work.group(g);
  const float inverse = work.found.inverses[g];
  if (scale == 0 && inverse == 0) {
    std::fill_n(to, work.lanes.size, Byte{0});
    return;
  }
  const auto factor = hn::Set(kFloats, scale != 0 ? scale : inverse);
  for (std::size_t i = 0; i < work.lanes.size; i += hn::Lanes(kFloats)) {
    const auto v = hn::LoadU(kFloats, x + i);
    const auto value = scale != 0 ? hn::Div(v, factor) : hn::Mul(v, factor);
    store_bounded(nearest_ints(value), -most, most - 1, most, to + i);
  }
}

struct Q2K {
  static constexpr std::size_t kSize = 16, kBlock = 256, kBytesOut = 84;
  static void search(Work& work) {
    HWY_ALIGN float squares[kGroups];
    if (work.weighted) {
      super_squares(work, squares, [](float sum) HWY_ATTR { return sum / kSuper; });
      importance_weights(work.lanes, squares);
      return fit_affine_lanes<false>(work.lanes, 3, kWeightedSearch, work.found);
    }
    make_weights(work.lanes, [&](std::size_t i, std::size_t)
                                 HWY_ATTR { return hn::Abs(hn::Load(kFloats, work.lanes.x + i)); });
    fit_affine_lanes<true>(work.lanes, 3, {-0.5F, 0.1F, 15, true}, work.found);
  }
  static void write(const Work& work, std::size_t, Byte* out) {
    Byte levels[kSuper];
    const PartFactors factors = put_q2_k_scales(work.parts(0, 16), out);
    for (std::size_t g = 0; g < 16; ++g)
      affine_levels(work, g, factors.scales[g], factors.depths[g], 3, levels + g * 16);
    put_two_bits(out + 16, levels);
  }
};

struct Q3K {
  static constexpr std::size_t kSize = 16, kBlock = 256, kBytesOut = 110;
  static void search(Work& work) {
    if (!work.weighted) return refine_symmetric_lanes(work.lanes, 4, work.found, work.levels);
    HWY_ALIGN float squares[kGroups];
    super_squares(work, squares, [](float sum) HWY_ATTR { return 2 * sum / kSuper; });
    importance_weights(work.lanes, squares);
    fit_symmetric_lanes(work.lanes, 4, work.found);
  }
  static void write(const Work& work, std::size_t, Byte* out) {
    Byte levels[kSuper];
    const PartFactors factors = put_q3_k_scales(work.parts(0, 16), out);
    for (std::size_t g = 0; g < 16; ++g)
      if (factors.scales[g] == 0 && !work.weighted && work.found.inverses[g] != 0)
        for (std::size_t i = 0; i < 16; ++i)  // the levels as they were refined
          levels[g * 16 + i] = static_cast<Byte>(static_cast<int>(work.levels[i * kGroups + g]) + 4);
      else
        symmetric_levels(work, g, factors.scales[g], 4, levels + g * 16);
    put_high_bits(out, levels, 2);
    put_two_bits(out + 32, levels);
  }
};

// Q4_K and Q5_K.
void search_affine_super(Work& work, int most, const ScaleSearch& search) {
  HWY_ALIGN float squares[kGroups];
  if (work.weighted) {
    super_squares(work, squares, [](float sum) HWY_ATTR { return 2 * sum / kSuper; });
    importance_weights(work.lanes, squares);
    return fit_affine_lanes<false>(work.lanes, most, kWeightedSearch, work.found);
  }
  for (std::size_t v = 0; v < kGroups; v += hn::Lanes(kFloats)) {
    const auto mean = hn::Sqrt(hn::Div(group_squares(work.lanes, v), hn::Set(kFloats, 32)));
    hn::Store(mean, kFloats, squares + v);
  }
  make_weights(work.lanes, [&](std::size_t i, std::size_t v) HWY_ATTR {
    return hn::Add(hn::Load(kFloats, squares + v), hn::Abs(hn::Load(kFloats, work.lanes.x + i)));
  });
  fit_affine_lanes<false>(work.lanes, most, search, work.found);
}
// `first`: the block's first group.
void write_affine_super(const Work& work, std::size_t first, int most, Byte* out, Byte* levels) {
  const PartFactors factors = put_q4_k_scales(work.parts(first, 8), !work.weighted || most == 31, out);
  for (std::size_t g = 0; g < 8; ++g)
    affine_levels(work, first + g, factors.scales[g], factors.depths[g], most, levels + g * 32);
}

struct Q4K {
  static constexpr std::size_t kSize = 32, kBlock = 256, kBytesOut = 144;
  static void search(Work& work) { search_affine_super(work, 15, {-1.0F, 0.1F, 20}); }
  static void write(const Work& work, std::size_t first, Byte* out) {
    Byte levels[kSuper];
    write_affine_super(work, first, 15, out, levels);
    put_wide_nibbles(out + 16, levels);
  }
};
struct Q5K {
  static constexpr std::size_t kSize = 32, kBlock = 256, kBytesOut = 176;
  static void search(Work& work) { search_affine_super(work, 31, {-0.5F, 0.1F, 15}); }
  static void write(const Work& work, std::size_t first, Byte* out) {
    Byte levels[kSuper];
    write_affine_super(work, first, 31, out, levels);
    put_high_bits(out + 16, levels, 4);
    put_wide_nibbles(out + 48, levels);
  }
};

struct Q6K {
  static constexpr std::size_t kSize = 16, kBlock = 256, kBytesOut = 210;
  static void search(Work& work) {
    if (work.weighted)
      make_weights(work.lanes, [&](std::size_t i, std::size_t)
                                   HWY_ATTR { return hn::Load(kFloats, work.lanes.importance + i); });
    else
      square_weights(work.lanes);
    fit_symmetric_lanes(work.lanes, 32, work.found);
  }
  static void write(const Work& work, std::size_t, Byte* out) {
    const auto factors = put_q6_k_scales(work.parts(0, 16), out);
    if (!factors) return;
    Byte levels[kSuper];
    for (std::size_t g = 0; g < 16; ++g) symmetric_levels(work, g, factors->scales[g], 32, levels + g * 16);
    put_six_bits(out, levels);
  }
};

HWY_INLINE void four_bit_group(const Work& work, std::size_t g, float inverse, Byte* out) {
  Byte levels[32];
  const auto factor = hn::Set(kFloats, inverse);
  for (std::size_t i = 0; i < 32; i += hn::Lanes(kFloats)) {
    const auto value = hn::Mul(factor, hn::LoadU(kFloats, work.group(g) + i));
    hn::StoreU(hn::DemoteTo(kBytes, four_bit_positions(value)), kBytes, levels + i);
  }
  put_nibbles(out, levels);
}

struct IQ4XS {
  static constexpr std::size_t kSize = 32, kBlock = 256, kBytesOut = 136;
  static void search(Work& work) {
    HWY_ALIGN float squares[kGroups];
    if (work.weighted) {
      super_squares(work, squares, [](float sum) HWY_ATTR { return sum * (2.0F / kSuper); });
      importance_weights(work.lanes, squares);
    } else {
      square_weights(work.lanes);
    }
    fit_four_bit_lanes(work.lanes, work.found);
  }
  static void write(const Work& work, std::size_t first, Byte* out) {
    const PartFactors inverses = put_iq4_xs_scales(work.parts(first, 8), out);
    for (std::size_t g = 0; g < 8; ++g) four_bit_group(work, first + g, inverses.scales[g], out + 8 + g * 16);
  }
};

struct IQ4NL {
  static constexpr std::size_t kSize = 32, kBlock = 32, kBytesOut = 18;
  static void search(Work& work) {
    if (work.weighted) {
      HWY_ALIGN float squares[kGroups];
      for (std::size_t v = 0; v < kGroups; v += hn::Lanes(kFloats))
        hn::Store(hn::Mul(group_squares(work.lanes, v), hn::Set(kFloats, 2.0F / 32)), kFloats, squares + v);
      importance_weights(work.lanes, squares);
    } else {
      square_weights(work.lanes);
    }
    fit_four_bit_lanes(work.lanes, work.found);
  }
  static void write(const Work& work, std::size_t g, Byte* out) {
    const float scale = work.found.scales[g];
    put_half(out, scale);
    four_bit_group(work, g, scale != 0 ? 1 / scale : 0.0F, out + 2);
  }
};

// Blocks of one scale, and a minimum for kAffine; only with importance.
template <bool kAffine, int kMost>
struct Weighted {
  static constexpr bool kFifth = kMost == (kAffine ? 31 : 16);
  static constexpr std::size_t kHead = (kAffine ? 4 : 2);
  static constexpr std::size_t kSize = 32, kBlock = 32, kBytesOut = kHead + (kFifth ? 4 : 0) + 16;
  static void search(Work& work) {
    HWY_ALIGN float squares[kGroups];
    std::fill_n(squares, kGroups, work.mean_square);
    importance_weights(work.lanes, squares);
    if (kAffine)
      fit_affine_lanes<false>(work.lanes, kMost, kWeightedSearch, work.found);
    else
      fit_symmetric_lanes(work.lanes, kMost, work.found);
  }
  static void write(const Work& work, std::size_t g, Byte* out) {
    Byte levels[32];
    put_half(out, work.found.scales[g]);
    if (kAffine) {
      put_half(out + 2, -work.found.depths[g]);
      affine_levels(work, g, 0, 0, kMost, levels);
    } else {
      symmetric_levels(work, g, 0, kMost, levels);
    }
    if (kFifth) put_fifth_bits(out + kHead, levels);
    put_nibbles(out + kBytesOut - 16, levels);
  }
};

template <class Type>
void every(const BlockRun& run, QuantizeRun plain) {
  constexpr std::size_t kEach = Type::kBlock / Type::kSize;  // groups of a block
  constexpr std::size_t kAtOnce = kGroups / kEach;
  Work work;
  work.lanes.size = Type::kSize;
  work.weighted = run.importance != nullptr;
  work.mean_square = run.mean_square;
  for (std::size_t i = 0; i < run.blocks; i += kAtOnce) {
    const std::size_t blocks = std::min(kAtOnce, run.blocks - i), at = i * Type::kBlock;
    const std::size_t count = blocks * Type::kBlock;
    Byte* const out = run.out + i * Type::kBytesOut;
    work.x = run.x + at;
    const float* const importance = work.weighted ? run.importance + at : nullptr;
    if (!all_finite(work.x, count) || (work.weighted && !all_finite(importance, count)) ||
        !std::isfinite(run.mean_square)) {
      plain({work.x, importance, run.mean_square, blocks, out});
      continue;
    }
    turn(work.x, Type::kSize, blocks * kEach, work.lanes.x);
    if (work.weighted) turn(importance, Type::kSize, blocks * kEach, work.lanes.importance);
    Type::search(work);
    for (std::size_t k = 0; k < blocks; ++k) Type::write(work, k * kEach, out + k * Type::kBytesOut);
  }
}

}  // namespace

void quantize_searched_blocks(graph::DType dtype, const BlockRun& run, QuantizeRun plain) {
  switch (dtype) {
    case graph::DType::q2_k:
      return every<Q2K>(run, plain);
    case graph::DType::q3_k:
      return every<Q3K>(run, plain);
    case graph::DType::q4_k:
      return every<Q4K>(run, plain);
    case graph::DType::q5_k:
      return every<Q5K>(run, plain);
    case graph::DType::q6_k:
      return every<Q6K>(run, plain);
    case graph::DType::iq4_xs:
      return every<IQ4XS>(run, plain);
    case graph::DType::iq4_nl:
      return every<IQ4NL>(run, plain);
    case graph::DType::q4_0:
      return every<Weighted<false, 8>>(run, plain);
    case graph::DType::q5_0:
      return every<Weighted<false, 16>>(run, plain);
    case graph::DType::q4_1:
      return every<Weighted<true, 15>>(run, plain);
    case graph::DType::q5_1:
      return every<Weighted<true, 31>>(run, plain);
    default:
      return plain(run);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace loadline::convert
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace loadline::convert {

HWY_EXPORT(quantize_searched_blocks);

void quantize_searched(graph::DType dtype, const BlockRun& run, QuantizeRun plain) {
  HWY_DYNAMIC_DISPATCH(quantize_searched_blocks)(dtype, run, plain);
}

}  // namespace loadline::convert
#endif  // HWY_ONCE
