// Block layouts of ggml (ggml-common.h, version of 2026-08). d, m: f16 scale and minimum unless said; q:
// numbers.
//
//   type    elements  bytes in order                                             value
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
//   MXFP4    32       E8M0 scale, 16 of nibbles                                  d e2m1[q]
//   NVFP4    64       4 of UE4M3 scales, 32 of nibbles                           d e2m1[q]
//
// Nibbles of 32 elements: byte j holds element j below and element j + 16 above.
//
// Compiled once for each instruction set that Highway knows: these are plain loops, which compilers
// vectorise.
#include "core/convert/dequantize.h"

#include "core/convert/half.h"

#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/convert/dequantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace loadline {
namespace HWY_NAMESPACE {
namespace {

using Byte = std::uint8_t;

constexpr std::int8_t kFourBitLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};
// E2M1 values doubled; the scale is halved instead
constexpr std::int8_t kE2M1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

template <typename T>
T load(const Byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
float half(const Byte* from) { return half_to_float(load<std::uint16_t>(from)); }

// 32 nibbles in their order, one to a byte.
struct Nibbles {
  std::int8_t q[32];
  explicit Nibbles(const Byte* packed) {
    for (int j = 0; j < 16; ++j) {
      q[j] = static_cast<std::int8_t>(packed[j] & 15);
      q[j + 16] = static_cast<std::int8_t>(packed[j] >> 4);
    }
  }
  // bit i of `high` above element i
  Nibbles(const Byte* packed, std::uint32_t high) : Nibbles(packed) {
    for (int j = 0; j < 32; ++j)
      q[j] = static_cast<std::int8_t>(q[j] + static_cast<std::int8_t>(((high >> j) & 1) << 4));
  }
};

void scaled(float d, int middle, const std::int8_t* q, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = d * static_cast<float>(q[i] - middle);
}
void shifted(float d, float m, const std::int8_t* q, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = d * static_cast<float>(q[i]) + m;
}
void looked_up(float d, const std::int8_t (&table)[16], const std::int8_t* q, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = d * static_cast<float>(table[q[i]]);
}

void q4_0(const Byte* b, float* out) { scaled(half(b), 8, Nibbles(b + 2).q, 32, out); }
void q4_1(const Byte* b, float* out) { shifted(half(b), half(b + 2), Nibbles(b + 4).q, 32, out); }
void q5_0(const Byte* b, float* out) {
  scaled(half(b), 16, Nibbles(b + 6, load<std::uint32_t>(b + 2)).q, 32, out);
}
void q5_1(const Byte* b, float* out) {
  shifted(half(b), half(b + 2), Nibbles(b + 8, load<std::uint32_t>(b + 4)).q, 32, out);
}
void q8_0(const Byte* b, float* out) {
  scaled(half(b), 0, reinterpret_cast<const std::int8_t*>(b + 2), 32, out);
}
void q8_1(const Byte* b, float* out) {
  scaled(half(b), 0, reinterpret_cast<const std::int8_t*>(b + 4), 32, out);
}
void q8_k(const Byte* b, float* out) {
  scaled(load<float>(b), 0, reinterpret_cast<const std::int8_t*>(b + 4), 256, out);
}
void iq4_nl(const Byte* b, float* out) { looked_up(half(b), kFourBitLevels, Nibbles(b + 2).q, 32, out); }

// Element 128 g + 32 s + l of 64 bytes of two bits: bits 2s of byte 32 g + l.
void q2_k(const Byte* b, float* out) {
  const Byte *const scales = b, *const packed = b + 16;
  const float d = half(b + 80), m = half(b + 82);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(scales[part] & 15);
    const float least = m * static_cast<float>(scales[part] >> 4);
    const Byte* const from = packed + part / 8 * 32 + part % 2 * 16;
    const int shift = part % 8 / 2 * 2;
    for (int l = 0; l < 16; ++l)
      out[part * 16 + l] = scale * static_cast<float>((from[l] >> shift) & 3) - least;
  }
}

void q3_k(const Byte* b, float* out) {
  const Byte *const third = b, *const packed = b + 32, *const scales = b + 96;
  const float d = half(b + 108);
  for (int part = 0; part < 16; ++part) {
    const int low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
    const int high = (scales[8 + part % 4] >> (part / 4 * 2)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const Byte* const from = packed + part / 8 * 32 + part % 2 * 16;
    const Byte* const mask = third + part % 2 * 16;
    const int shift = part % 8 / 2 * 2, bit = part / 2;
    for (int l = 0; l < 16; ++l) {
      const int q = ((from[l] >> shift) & 3) - ((mask[l] >> bit) & 1 ? 0 : 4);
      out[part * 16 + l] = scale * static_cast<float>(q);
    }
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
    const float scale = d * factors.scale, least = m * factors.least;
    const Byte* const from = packed + part / 2 * 32;
    const int shift = part % 2 * 4;
    float* const to = out + part * 32;
    if (fifth == nullptr) {
      for (int l = 0; l < 32; ++l) to[l] = scale * static_cast<float>((from[l] >> shift) & 15) - least;
    } else {
      for (int l = 0; l < 32; ++l) {
        const int q = ((from[l] >> shift) & 15) | ((fifth[l] >> part) & 1) << 4;
        to[l] = scale * static_cast<float>(q) - least;
      }
    }
  }
}
void q4_k(const Byte* b, float* out) { k_nibbles(b, b + 16, nullptr, out); }
void q5_k(const Byte* b, float* out) { k_nibbles(b, b + 48, b + 16, out); }

// Per half of 128: element 32 s + l has the nibble s / 2 of byte 32 (s % 2) + l and two bits 2s above it.
void q6_k(const Byte* b, float* out) {
  const Byte *const low = b, *const high = b + 128, *const scales = b + 192;
  const float d = half(b + 208);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(scales[part]));
    const int side = part / 8, s = part % 8 / 2, start = part % 2 * 16;
    const Byte* const from = low + side * 64 + s % 2 * 32 + start;
    const Byte* const top = high + side * 32 + start;
    const int low_shift = s / 2 * 4, top_shift = s * 2;
    for (int l = 0; l < 16; ++l) {
      const int q = ((from[l] >> low_shift) & 15) | ((top[l] >> top_shift) & 3) << 4;
      out[part * 16 + l] = scale * static_cast<float>(q - 32);
    }
  }
}

void iq4_xs(const Byte* b, float* out) {
  const float d = half(b);
  const auto high = load<std::uint16_t>(b + 2);
  for (int part = 0; part < 8; ++part) {
    const int low = (b[4 + part / 2] >> (part % 2 * 4)) & 15;
    const float scale = d * static_cast<float>((low | ((high >> (2 * part)) & 3) << 4) - 32);
    looked_up(scale, kFourBitLevels, Nibbles(b + 8 + part * 16).q, 32, out + part * 32);
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

void tq2_0(const Byte* b, float* out) {
  const float d = half(b + 64);
  for (int part = 0; part < 8; ++part)
    for (int l = 0; l < 32; ++l)
      out[part * 32 + l] = d * static_cast<float>(((b[part / 4 * 32 + l] >> (part % 4 * 2)) & 3) - 1);
}

// Half of 2^(e - 127); the two least are subnormal.
void mxfp4(const Byte* b, float* out) {
  const std::uint32_t e = b[0];
  const float d = std::bit_cast<float>(e < 2 ? std::uint32_t{0x00200000} << e : (e - 1) << 23);
  looked_up(d, kE2M1Doubled, Nibbles(b + 1).q, 32, out);
}

// Half of an unsigned E4M3; 0x7F, its NaN, counts as 0 in ggml.
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
    for (int l = 0; l < 8; ++l) {
      out[part * 16 + l] = d * static_cast<float>(kE2M1Doubled[packed[l] & 15]);
      out[part * 16 + 8 + l] = d * static_cast<float>(kE2M1Doubled[packed[l] >> 4]);
    }
  }
}

template <void (*kOne)(const Byte*, float*), int kBytes, int kElements>
void every(const Byte* blocks, std::size_t bytes, float* out) {
  for (std::size_t at = 0; at < bytes; at += kBytes, out += kElements) kOne(blocks + at, out);
}

void run(DType dtype, const Byte* blocks, std::size_t bytes, float* out) {
  switch (dtype) {
    case DType::q4_0:
      return every<q4_0, 18, 32>(blocks, bytes, out);
    case DType::q4_1:
      return every<q4_1, 20, 32>(blocks, bytes, out);
    case DType::q5_0:
      return every<q5_0, 22, 32>(blocks, bytes, out);
    case DType::q5_1:
      return every<q5_1, 24, 32>(blocks, bytes, out);
    case DType::q8_0:
      return every<q8_0, 34, 32>(blocks, bytes, out);
    case DType::q8_1:
      return every<q8_1, 36, 32>(blocks, bytes, out);
    case DType::q2_k:
      return every<q2_k, 84, 256>(blocks, bytes, out);
    case DType::q3_k:
      return every<q3_k, 110, 256>(blocks, bytes, out);
    case DType::q4_k:
      return every<q4_k, 144, 256>(blocks, bytes, out);
    case DType::q5_k:
      return every<q5_k, 176, 256>(blocks, bytes, out);
    case DType::q6_k:
      return every<q6_k, 210, 256>(blocks, bytes, out);
    case DType::q8_k:
      return every<q8_k, 292, 256>(blocks, bytes, out);
    case DType::iq4_nl:
      return every<iq4_nl, 18, 32>(blocks, bytes, out);
    case DType::iq4_xs:
      return every<iq4_xs, 136, 256>(blocks, bytes, out);
    case DType::tq1_0:
      return every<tq1_0, 54, 256>(blocks, bytes, out);
    case DType::tq2_0:
      return every<tq2_0, 66, 256>(blocks, bytes, out);
    case DType::mxfp4:
      return every<mxfp4, 17, 32>(blocks, bytes, out);
    case DType::nvfp4:
      return every<nvfp4, 36, 64>(blocks, bytes, out);
    default:
      assert(false && "can_dequantize was not asked");
  }
}

}  // namespace

void dequantize_blocks(DType dtype, const std::uint8_t* blocks, std::size_t bytes, float* out) {
  run(dtype, blocks, bytes, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace loadline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace loadline {

HWY_EXPORT(dequantize_blocks);

bool can_dequantize(DType dtype) {
  switch (dtype) {
    case DType::iq1_s:
    case DType::iq1_m:
    case DType::iq2_xxs:
    case DType::iq2_xs:
    case DType::iq2_s:
    case DType::iq3_xxs:
    case DType::iq3_s:
    case DType::q1_0:
    case DType::q2_0:
      return false;
    default:
      return dtype_info(dtype).kind == DTypeKind::block;
  }
}

void dequantize(DType dtype, std::span<const std::byte> blocks, std::span<float> out) {
  assert(can_dequantize(dtype));
  [[maybe_unused]] const DTypeInfo& info = dtype_info(dtype);
  assert(blocks.size() % info.block_bytes == 0);
  assert(blocks.size() / info.block_bytes * info.block_elements == out.size());
  HWY_DYNAMIC_DISPATCH(dequantize_blocks)
  (dtype, reinterpret_cast<const std::uint8_t*>(blocks.data()), blocks.size(), out.data());
}

}  // namespace loadline
#endif  // HWY_ONCE
