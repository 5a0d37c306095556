// Block layouts of ggml (ggml-common.h, version of 2026-08). d, m: f16 scale and minimum unless said; q:
// numbers.
//
//   type    elements  bytes in order                                             value
//   Q1_0    128       d, 16 of bits, lowest first                                d if set, else -d
//   Q2_0     64       d, 16 of 2 bits, lowest first                              d (q - 1)
//   PQ2_0   128       d, 32 of 2 bits, lowest first                              d (q - 1)
//   Q4_0     32       d, 16 of nibbles                                           d (q - 8)
//   Q4_1     32       d, m, 16 of nibbles                                        d q + m
//   Q5_0     32       d, u32 of fifth bits, 16 of nibbles                        d (q - 16)
//   Q5_1     32       d, m, u32 of fifth bits, 16 of nibbles                     d q + m
//   Q8_0     32       d, 32 of i8                                                d q
//   Q8_1     32       d, sum, 32 of i8                                           d q
//   Q2_K    256       16 of scale | min << 4, 64 of 2 bits, d, m                 d s q - m s'
//   Q3_K    256       32 of third bits, 64 of 2 bits, 12 of 6-bit scales, d      d (s - 32) (q - 4)
//   Q4_K    256       d, m, 12 of 6-bit scales and mins, 128 of nibbles          d s q - m s'
//   Q5_K    256       d, m, 12 as Q4_K, 32 of fifth bits, 128 of nibbles         d s q - m s'
//   Q6_K    256       128 of nibbles, 64 of 2 bits, 16 of i8 scales, d           d s (q - 32)
//   Q8_K    256       f32 d, 256 of i8, 16 of i16 sums                           d q
//   IQ4_NL   32       d, 16 of nibbles                                           d table[q]
//   IQ4_XS  256       d, u16 of high and 4 of low scale bits, 128 of nibbles     d (s - 32) table[q]
//   TQ1_0   256       48 of 5 trits, 4 of 4 trits, d                             d (q - 1)
//   TQ2_0   256       64 of 2 bits, d                                            d (q - 1)
//   IQ2_XXS 256       d, 8 of { 4 indices, u32 of 4 sign sets and s << 28 }      d (s + 1/2) / 4 point
//   IQ2_XS  256       d, 32 u16 of index | sign set << 9, 8 of nibbles s         d (s + 1/2) / 4 point
//   IQ2_S   256       d, 32 low indices, 32 of signs, 8 of high bits, 8 of s     d (s + 1/2) / 4 point
//   IQ3_XXS 256       d, 64 indices, 8 u32 of 4 sign sets and s << 28            d (s + 1/2) / 2 point
//   IQ3_S   256       d, 64 low indices, 8 of high bits, 32 of signs, 4 of s     d (1 + 2s) point
//   IQ1_S   256       d, 32 low indices, 8 u16 of 4 high bits, s, sign of delta  d (2s + 1) (point +- 1/8)
//   IQ1_M   256       32 low indices, 16 of nibbles high bits and sign of delta,
//                     4 u16 of 4 scales s and a nibble of d                      d (2s + 1) (point +- 1/8)
//   MXFP4    32       E8M0 scale, 16 of nibbles                                  d e2m1[q]
//   NVFP4    64       4 of UE4M3 scales, 32 of nibbles                           d e2m1[q]
//
// Points are those of core/convert/numbers/code_books. A sign set of seven bits stands for eight signs, of
// which an even number is negative.
//
// Nibbles of 32 elements: byte j holds element j below and element j + 16 above.
//
// Compiled once for each instruction set that Highway knows. Compilers vectorize the plain loops.
#include "core/convert/numbers/float_bits.h"
#include "core/convert/numbers/ggml_blocks.h"
#include "core/convert/numbers/quantize.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <iterator>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/convert/numbers/dequantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace loadline::convert {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Byte = std::uint8_t;

template <typename T>
T load(const Byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
float half(const Byte* from) { return half_to_float(load<std::uint16_t>(from)); }

// The nibbles of 16 bytes in element order, one per byte, as numbers or looked up in a table.
struct Nibbles {
  static constexpr int kBitLanes = HWY_TARGET == HWY_SCALAR ? 1 : 16;
  std::int8_t q[32];
#if HWY_TARGET == HWY_SCALAR
  explicit Nibbles(const Byte* packed) {
    for (int j = 0; j < 16; ++j) {
      q[j] = static_cast<std::int8_t>(packed[j] & 15);
      q[j + 16] = static_cast<std::int8_t>(packed[j] >> 4);
    }
  }
  Nibbles(const Byte* packed, const std::int8_t (&table)[16]) : Nibbles(packed) {
    for (std::int8_t& number : q) number = table[number];
  }
#else
  explicit Nibbles(const Byte* packed) {
    const hn::FixedTag<std::uint8_t, 16> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto bytes = hn::LoadU(d, packed);
    hn::StoreU(hn::BitCast(di, hn::And(bytes, hn::Set(d, 15))), di, q);
    hn::StoreU(hn::BitCast(di, hn::ShiftRight<4>(bytes)), di, q + 16);
  }
  Nibbles(const Byte* packed, const std::int8_t (&table)[16]) {
    const hn::FixedTag<std::int8_t, 16> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto bytes = hn::LoadU(du, packed);
    const auto values = hn::LoadU(d, table);
    const auto low = hn::BitCast(d, hn::And(bytes, hn::Set(du, 15)));
    const auto high = hn::BitCast(d, hn::ShiftRight<4>(bytes));
    hn::StoreU(hn::TableLookupBytes(values, low), d, q);
    hn::StoreU(hn::TableLookupBytes(values, high), d, q + 16);
  }
#endif
  // puts bit i of the four bytes at `high` above the bits of element i
  Nibbles(const Byte* packed, const Byte* high) : Nibbles(packed) {
    for (int start = 0; start < 32; start += kBitLanes) {
      const hn::FixedTag<std::int8_t, kBitLanes> d;
#if HWY_TARGET == HWY_SCALAR
      const auto mask = hn::FirstN(d, (high[start / 8] >> (start % 8)) & 1);
#else
      const auto mask = hn::LoadMaskBits(d, high + start / 8);
#endif
      const auto fifth = hn::IfThenElseZero(mask, hn::Set(d, 16));
      hn::StoreU(hn::Add(hn::LoadU(d, q + start), fifth), d, q + start);
    }
  }
};

// d q + m for a multiple of sixteen numbers; the product and the sum are rounded separately.
void shifted(float d, float m, const std::int8_t* q, int count, float* out) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::int8_t, decltype(df)> dq;
  const auto scale = hn::Set(df, d), least = hn::Set(df, m);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); i += hn::Lanes(df)) {
    const auto numbers = hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(dq, q + i)));
    hn::StoreU(hn::Add(hn::Mul(scale, numbers), least), df, out + i);
  }
}
// d (q - middle) for a multiple of sixteen numbers.
void scaled(float d, int middle, const std::int8_t* q, int count, float* out) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::int8_t, decltype(df)> dq;
  const auto scale = hn::Set(df, d);
  const auto zero = hn::Set(di, middle);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); i += hn::Lanes(df)) {
    const auto numbers = hn::Sub(hn::PromoteTo(di, hn::LoadU(dq, q + i)), zero);
    hn::StoreU(hn::Mul(scale, hn::ConvertTo(df, numbers)), df, out + i);
  }
}

void q1_0(const Byte* b, float* out) {
  std::int8_t q[128];
  for (int i = 0; i < 128; ++i) q[i] = static_cast<std::int8_t>((b[2 + i / 8] >> (i % 8)) & 1 ? 1 : -1);
  scaled(half(b), 0, q, 128, out);
}
template <int kElements>
void pairs_of_bits(const Byte* b, float* out) {
  std::int8_t q[kElements];
  for (int i = 0; i < kElements; ++i) q[i] = static_cast<std::int8_t>((b[2 + i / 4] >> (i % 4 * 2)) & 3);
  scaled(half(b), 1, q, kElements, out);
}
void q4_0(const Byte* b, float* out) { scaled(half(b), 8, Nibbles(b + 2).q, 32, out); }
void q4_1(const Byte* b, float* out) { shifted(half(b), half(b + 2), Nibbles(b + 4).q, 32, out); }
void q5_0(const Byte* b, float* out) { scaled(half(b), 16, Nibbles(b + 6, b + 2).q, 32, out); }
void q5_1(const Byte* b, float* out) { shifted(half(b), half(b + 2), Nibbles(b + 8, b + 4).q, 32, out); }
void q8_0(const Byte* b, float* out) {
  scaled(half(b), 0, reinterpret_cast<const std::int8_t*>(b + 2), 32, out);
}
void q8_1(const Byte* b, float* out) {
  scaled(half(b), 0, reinterpret_cast<const std::int8_t*>(b + 4), 32, out);
}
void q8_k(const Byte* b, float* out) {
  scaled(load<float>(b), 0, reinterpret_cast<const std::int8_t*>(b + 4), 256, out);
}
void iq4_nl(const Byte* b, float* out) { scaled(half(b), 0, Nibbles(b + 2, kFourBitLevels).q, 32, out); }

// Element 128 g + 32 s + l of 64 bytes of two bits: bits 2s of byte 32 g + l.
struct TwoBits {
  std::int8_t q[256];
  explicit TwoBits(const Byte* packed) {
    for (int part = 0; part < 8; ++part)
      for (int l = 0; l < 32; ++l)
        q[part * 32 + l] = static_cast<std::int8_t>((packed[part / 4 * 32 + l] >> (part % 4 * 2)) & 3);
  }
};

void q2_k(const Byte* b, float* out) {
  const float d = half(b + 80), m = half(b + 82);
  const TwoBits numbers(b + 16);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(b[part] & 15);
    const float least = m * static_cast<float>(b[part] >> 4);
    shifted(scale, -least, numbers.q + part * 16, 16, out + part * 16);
  }
}

void q3_k(const Byte* b, float* out) {
  const Byte *const third = b, *const scales = b + 96;
  const float d = half(b + 108);
  TwoBits numbers(b + 32);
  for (int part = 0; part < 8; ++part)
    for (int l = 0; l < 32; ++l) {
      const int bit = (third[l] >> part) & 1;
      numbers.q[part * 32 + l] = static_cast<std::int8_t>(numbers.q[part * 32 + l] + 4 * bit);
    }
  for (int part = 0; part < 16; ++part) {
    const int low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
    const int high = (scales[8 + part % 4] >> (part / 4 * 2)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    scaled(scale, 4, numbers.q + part * 16, 16, out + part * 16);
  }
}

struct ScaleMin {
  float scale;
  float least;
};

// The twelve bytes of Q4_K and Q5_K: 8 scales and 8 minima of six bits.
ScaleMin scale_min(const Byte* p, int part) {
  if (part < 4) return {static_cast<float>(p[part] & 63), static_cast<float>(p[part + 4] & 63)};
  const int j = part - 4;
  return {static_cast<float>((p[j + 8] & 15) | (p[j] >> 6) << 4),
          static_cast<float>((p[j + 8] >> 4) | (p[j + 4] >> 6) << 4)};
}

// 64 elements to 32 bytes of nibbles: the lower nibbles are the first 32; `fifth` is null or holds bit
// `part`.
void k_nibbles(const Byte* b, const Byte* packed, const Byte* fifth, float* out) {
  const float d = half(b), m = half(b + 2);
  for (int part = 0; part < 8; ++part) {
    const ScaleMin factors = scale_min(b + 4, part);
    const Byte* const from = packed + part / 2 * 32;
    const int shift = part % 2 * 4;
    std::int8_t q[32];
    for (int l = 0; l < 32; ++l) q[l] = static_cast<std::int8_t>((from[l] >> shift) & 15);
    if (fifth != nullptr)
      for (int l = 0; l < 32; ++l) q[l] = static_cast<std::int8_t>(q[l] | ((fifth[l] >> part) & 1) << 4);
    shifted(d * factors.scale, -(m * factors.least), q, 32, out + part * 32);
  }
}
void q4_k(const Byte* b, float* out) { k_nibbles(b, b + 16, nullptr, out); }
void q5_k(const Byte* b, float* out) { k_nibbles(b, b + 48, b + 16, out); }

// Per half of 128: element 32 s + l has the nibble s / 2 of byte 32 (s % 2) + l and two bits 2s above it.
void q6_k(const Byte* b, float* out) {
  const Byte* const scales = b + 192;
  const float d = half(b + 208);
  std::int8_t q[256];
  for (int part = 0; part < 8; ++part) {
    const int side = part / 4, s = part % 4;
    const Byte *const low = b + side * 64 + s % 2 * 32, *const high = b + 128 + side * 32;
    for (int l = 0; l < 32; ++l)
      q[part * 32 + l] =
          static_cast<std::int8_t>(((low[l] >> (s / 2 * 4)) & 15) | ((high[l] >> (s * 2)) & 3) << 4);
  }
  for (int part = 0; part < 16; ++part)
    scaled(d * static_cast<float>(static_cast<std::int8_t>(scales[part])), 32, q + part * 16, 16,
           out + part * 16);
}

void iq4_xs(const Byte* b, float* out) {
  const float d = half(b);
  const auto high = load<std::uint16_t>(b + 2);
  for (int part = 0; part < 8; ++part) {
    const int low = (b[4 + part / 2] >> (part % 2 * 4)) & 15;
    const float scale = d * static_cast<float>((low | ((high >> (2 * part)) & 3) << 4) - 32);
    scaled(scale, 0, Nibbles(b + 8 + part * 16, kFourBitLevels).q, 32, out + part * 32);
  }
}

// A byte holds trits as a fraction of 256: times 3^i, its upper part is the i-th.
void trits(float d, const Byte* packed, int bytes, int each, float* out) {
  Byte power = 1;
  for (int i = 0; i < each; ++i, power = static_cast<Byte>(power * 3))
    for (int l = 0; l < bytes; ++l) {
      const auto shifted_byte = static_cast<Byte>(packed[l] * power);
      out[i * bytes + l] = d * static_cast<float>(((shifted_byte * 3) >> 8) - 1);
    }
}
void tq1_0(const Byte* b, float* out) {
  const float d = half(b + 52);
  trits(d, b, 32, 5, out);
  trits(d, b + 32, 16, 5, out + 160);
  trits(d, b + 48, 4, 4, out + 240);
}

void tq2_0(const Byte* b, float* out) { scaled(half(b + 64), 1, TwoBits(b).q, 256, out); }

// The signs of eight elements from a set of seven: the number of negative ones is even.
Byte even_signs(std::uint32_t set) {
  set &= 0x7F;
  return static_cast<Byte>(set | static_cast<std::uint32_t>(std::popcount(set) & 1) << 7);
}
// Puts a point's elements with their signs, one bit each from the lowest on.
template <std::size_t kElements>
void put_point(const std::array<std::int8_t, kElements>& point, unsigned signs, std::int8_t* q) {
  for (std::size_t i = 0; i < kElements; ++i)
    q[i] = static_cast<std::int8_t>((signs >> i & 1) != 0 ? -point[i] : point[i]);
}
int nibble(const Byte* packed, int at) { return (packed[at / 2] >> (at % 2 * 4)) & 15; }

void iq2_xxs(const Byte* b, float* out) {
  const float d = half(b);
  for (int part = 0; part < 8; ++part) {
    const Byte* const from = b + 2 + part * 8;
    const auto rest = load<std::uint32_t>(from + 4);
    std::int8_t q[32];
    for (int j = 0; j < 4; ++j) put_point(iq2_xxs_book()[from[j]], even_signs(rest >> (7 * j)), q + j * 8);
    scaled(d * (0.5F + static_cast<float>(rest >> 28)) * 0.25F, 0, q, 32, out + part * 32);
  }
}

void iq2_xs(const Byte* b, float* out) {
  const float d = half(b);
  for (int part = 0; part < 16; ++part) {
    std::int8_t q[16];
    for (int j = 0; j < 2; ++j) {
      const auto code = load<std::uint16_t>(b + 2 + part * 4 + j * 2);
      put_point(iq2_xs_book()[code & 511], even_signs(code >> 9), q + j * 8);
    }
    scaled(d * (0.5F + static_cast<float>(nibble(b + 66, part))) * 0.25F, 0, q, 16, out + part * 16);
  }
}

void iq2_s(const Byte* b, float* out) {
  const float d = half(b);
  for (int part = 0; part < 16; ++part) {
    std::int8_t q[16];
    for (int j = 0; j < 2; ++j) {
      const int at = part * 2 + j;
      const int high = (b[66 + at / 4] >> (at % 4 * 2)) & 3;
      put_point(iq2_s_book()[static_cast<std::size_t>(b[2 + at] | high << 8)], b[34 + at], q + j * 8);
    }
    scaled(d * (0.5F + static_cast<float>(nibble(b + 74, part))) * 0.25F, 0, q, 16, out + part * 16);
  }
}

void iq3_xxs(const Byte* b, float* out) {
  const float d = half(b);
  for (int part = 0; part < 8; ++part) {
    const auto rest = load<std::uint32_t>(b + 66 + part * 4);
    std::int8_t q[32];
    for (int j = 0; j < 8; ++j)
      put_point(iq3_xxs_book()[b[2 + part * 8 + j]],
                static_cast<unsigned>(even_signs(rest >> (j / 2 * 7)) >> (j % 2 * 4)), q + j * 4);
    scaled(d * (0.5F + static_cast<float>(rest >> 28)) * 0.5F, 0, q, 32, out + part * 32);
  }
}

void iq3_s(const Byte* b, float* out) {
  const float d = half(b);
  for (int part = 0; part < 8; ++part) {
    std::int8_t q[32];
    for (int j = 0; j < 8; ++j) {
      const int high = (b[66 + part] >> j) & 1;
      const Byte signs = b[74 + part * 4 + j / 2];
      put_point(iq3_s_book()[static_cast<std::size_t>(b[2 + part * 8 + j] | high << 8)],
                static_cast<unsigned>(signs >> (j % 2 * 4)), q + j * 4);
    }
    scaled(d * static_cast<float>(1 + 2 * nibble(b + 106, part)), 0, q, 32, out + part * 32);
  }
}

// Eight numbers scale (point + delta).
void iq1_point(float scale, int index, bool negative, float* out) {
  const float delta = negative ? -0.125F : 0.125F;
  const auto& point = iq1_book()[static_cast<std::size_t>(index)];
  for (std::size_t i = 0; i < 8; ++i) out[i] = scale * (static_cast<float>(point[i]) + delta);
}

void iq1_s(const Byte* b, float* out) {
  const float d = half(b);
  for (int part = 0; part < 8; ++part) {
    const int rest = load<std::uint16_t>(b + 34 + part * 2);
    const float scale = d * static_cast<float>(2 * (rest >> 12 & 7) + 1);
    for (int j = 0; j < 4; ++j)
      iq1_point(scale, b[2 + part * 4 + j] | (rest >> (3 * j) & 7) << 8, (rest & 0x8000) != 0,
                out + part * 32 + j * 8);
  }
}

void iq1_m(const Byte* b, float* out) {
  unsigned bits = 0;
  for (int i = 0; i < 4; ++i)
    bits |= static_cast<unsigned>(load<std::uint16_t>(b + 48 + i * 2) >> 12) << (4 * i);
  const float d = half_to_float(static_cast<std::uint16_t>(bits));
  for (int at = 0; at < 32; ++at) {
    const int part = at / 2, high = nibble(b + 32, at);
    const int factor = load<std::uint16_t>(b + 48 + part / 4 * 2) >> (part % 4 * 3) & 7;
    iq1_point(d * static_cast<float>(2 * factor + 1), b[at] | (high & 7) << 8, (high & 8) != 0, out + at * 8);
  }
}

// Half of 2^(e - 127); the two least are subnormal.
void mxfp4(const Byte* b, float* out) {
  const std::uint32_t e = b[0];
  const float d = std::bit_cast<float>(e < 2 ? std::uint32_t{0x00200000} << e : (e - 1) << 23);
  scaled(d, 0, Nibbles(b + 1, kE2M1Doubled).q, 32, out);
}

// Half of an unsigned E4M3 value. The NaN code 0x7F counts as 0, as in ggml.
float half_ue4m3(Byte bits) {
  if (bits == 0 || bits == 0x7F) return 0;
  const std::uint32_t exponent = (bits >> 3) & 15u, fraction = bits & 7u;
  if (exponent == 0) return static_cast<float>(fraction) * 0x1p-10f;
  return std::bit_cast<float>((exponent + 119) << 23 | fraction << 20);
}
void nvfp4(const Byte* b, float* out) {
  for (int part = 0; part < 4; ++part) {
    const float d = half_ue4m3(b[part]);
    const Byte* const packed = b + 4 + part * 8;
    std::int8_t q[16];
    for (int l = 0; l < 8; ++l) {
      q[l] = kE2M1Doubled[packed[l] & 15];
      q[l + 8] = kE2M1Doubled[packed[l] >> 4];
    }
    scaled(d, 0, q, 16, out + part * 16);
  }
}

template <void (*kOne)(const Byte*, float*), int kBytes, int kElements>
void every(const Byte* blocks, std::size_t bytes, float* out) {
  for (std::size_t at = 0; at < bytes; at += kBytes, out += kElements) kOne(blocks + at, out);
}

struct Row {
  graph::DType dtype;
  void (*run)(const Byte* blocks, std::size_t bytes, float* out);
};
constexpr Row kRows[] = {{graph::DType::q1_0, every<q1_0, 18, 128>},
                         {graph::DType::q2_0, every<pairs_of_bits<64>, 18, 64>},
                         {graph::DType::q4_0, every<q4_0, 18, 32>},
                         {graph::DType::q4_1, every<q4_1, 20, 32>},
                         {graph::DType::q5_0, every<q5_0, 22, 32>},
                         {graph::DType::q5_1, every<q5_1, 24, 32>},
                         {graph::DType::q8_0, every<q8_0, 34, 32>},
                         {graph::DType::q8_1, every<q8_1, 36, 32>},
                         {graph::DType::q2_k, every<q2_k, 84, 256>},
                         {graph::DType::q3_k, every<q3_k, 110, 256>},
                         {graph::DType::q4_k, every<q4_k, 144, 256>},
                         {graph::DType::q5_k, every<q5_k, 176, 256>},
                         {graph::DType::q6_k, every<q6_k, 210, 256>},
                         {graph::DType::q8_k, every<q8_k, 292, 256>},
                         {graph::DType::iq4_nl, every<iq4_nl, 18, 32>},
                         {graph::DType::iq4_xs, every<iq4_xs, 136, 256>},
                         {graph::DType::tq1_0, every<tq1_0, 54, 256>},
                         {graph::DType::tq2_0, every<tq2_0, 66, 256>},
                         {graph::DType::iq2_xxs, every<iq2_xxs, 66, 256>},
                         {graph::DType::iq2_xs, every<iq2_xs, 74, 256>},
                         {graph::DType::iq2_s, every<iq2_s, 82, 256>},
                         {graph::DType::iq3_xxs, every<iq3_xxs, 98, 256>},
                         {graph::DType::iq3_s, every<iq3_s, 110, 256>},
                         {graph::DType::iq1_s, every<iq1_s, 50, 256>},
                         {graph::DType::iq1_m, every<iq1_m, 56, 256>},
                         {graph::DType::mxfp4, every<mxfp4, 17, 32>},
                         {graph::DType::nvfp4, every<nvfp4, 36, 64>},
                         {graph::DType::pq2_0, every<pairs_of_bits<128>, 34, 128>}};

}  // namespace

void dequantize_blocks(graph::DType dtype, const std::uint8_t* blocks, std::size_t bytes, float* out) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.dtype == dtype; });
  assert(row != std::end(kRows) && "can_dequantize was not asked");
  row->run(blocks, bytes, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace loadline::convert
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace loadline::convert {

HWY_EXPORT(dequantize_blocks);

bool can_dequantize(graph::DType dtype) { return graph::dtype_info(dtype).kind == graph::DTypeKind::block; }

void dequantize(graph::DType dtype, std::span<const std::byte> blocks, std::span<float> out) {
  assert(can_dequantize(dtype));
  [[maybe_unused]] const graph::DTypeInfo& info = graph::dtype_info(dtype);
  assert(blocks.size() % info.block_bytes == 0);
  assert(blocks.size() / info.block_bytes * info.block_elements == out.size());
  HWY_DYNAMIC_DISPATCH(dequantize_blocks)
  (dtype, reinterpret_cast<const std::uint8_t*>(blocks.data()), blocks.size(), out.data());
}

}  // namespace loadline::convert
#endif  // HWY_ONCE
