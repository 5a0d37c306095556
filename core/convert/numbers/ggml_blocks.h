// Tables and bytes of ggml blocks: code books, levels of four bits, packing of levels, the quantizers of
// single types.
#pragma once

#include "core/convert/numbers/float_bits.h"
#include "core/graph/dtype_and_shape.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace loadline::convert {

// --- The numbers that codes of four bits stand for.

// IQ4_NL and IQ4_XS.
inline constexpr std::int8_t kFourBitLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};

// E2M1 numbers doubled; the factors are halved instead.
inline constexpr std::int8_t kE2M1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// --- Code books of ggml's IQ types: the points that an index into a book stands for.

template <std::size_t kPoints, std::size_t kElements>
using CodeBook = std::array<std::array<std::int8_t, kElements>, kPoints>;

// Made on first use. IQ2: elements 8, 25 and 43; IQ1: -1, 0 and 1; IQ3_XXS: 4 to 62; IQ3_S: odd numbers up
// to 15.
const CodeBook<256, 8>& iq2_xxs_book();
const CodeBook<512, 8>& iq2_xs_book();
const CodeBook<1024, 8>& iq2_s_book();
const CodeBook<2048, 8>& iq1_book();  // of IQ1_S and IQ1_M
const CodeBook<256, 4>& iq3_xxs_book();
const CodeBook<512, 4>& iq3_s_book();

// --- The quantizers of single types, and the bytes of their blocks (layouts:
// core/convert/numbers/dequantize.cpp).

// Blocks that lie together: parts of one row where there is importance.
struct BlockRun {
  const float* x = nullptr;
  const float* importance = nullptr;  // null: none
  float mean_square = 0;
  std::size_t blocks = 0;
  std::uint8_t* out = nullptr;
};
using QuantizeRun = void (*)(const BlockRun& run);

// One type's plain quantizer, of one number after another.
QuantizeRun plain_small_quantizer(graph::DType dtype);  // types of blocks of 32 and 64 numbers, and TQ2_0
QuantizeRun plain_super_quantizer(
    graph::DType dtype);  // types of blocks of 256 numbers with scales of their parts

// With vector instructions, blocks without importance that need no search. `plain` takes the rest.
void quantize_small(graph::DType dtype, const BlockRun& run, QuantizeRun plain);
// The same for blocks that need a search.
void quantize_searched(graph::DType dtype, const BlockRun& run, QuantizeRun plain);

inline void put_half(std::uint8_t* to, float value) {
  const std::uint16_t bits = float_to_half(value);
  std::memcpy(to, &bits, sizeof bits);
}
inline float half_at(const std::uint8_t* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return half_to_float(bits);
}

// 32 levels of four bits: element j below, element j + 16 above.
inline void put_nibbles(std::uint8_t* to, const std::uint8_t* levels) {
  for (std::size_t j = 0; j < 16; ++j)
    to[j] = static_cast<std::uint8_t>((levels[j] & 15) | (levels[j + 16] & 15) << 4);
}
// The fifth bits of 32 levels.
inline void put_fifth_bits(std::uint8_t* to, const std::uint8_t* levels) {
  std::uint32_t bits = 0;
  for (std::size_t j = 0; j < 32; ++j) bits |= static_cast<std::uint32_t>(levels[j] >> 4 & 1) << j;
  std::memcpy(to, &bits, sizeof bits);
}
// 256 levels of two bits: element 128 g + 32 s + l at bits 2 s of byte 32 g + l.
inline void put_two_bits(std::uint8_t* to, const std::uint8_t* levels) {
  for (std::size_t g = 0; g < 2; ++g)
    for (std::size_t l = 0; l < 32; ++l) {
      const std::uint8_t* const q = levels + 128 * g + l;
      to[32 * g + l] =
          static_cast<std::uint8_t>((q[0] & 3) | (q[32] & 3) << 2 | (q[64] & 3) << 4 | (q[96] & 3) << 6);
    }
}
// 64 levels to 32 bytes, four times: element 64 g + l below, element 64 g + 32 + l above.
inline void put_wide_nibbles(std::uint8_t* to, const std::uint8_t* levels) {
  for (std::size_t g = 0; g < 4; ++g)
    for (std::size_t l = 0; l < 32; ++l) {
      const std::uint8_t* const q = levels + 64 * g + l;
      to[32 * g + l] = static_cast<std::uint8_t>((q[0] & 15) | (q[32] & 15) << 4);
    }
}
// Q5_K: the fifth bit of element 32 p + l at bit p of byte l. Q3_K: the third bit likewise.
inline void put_high_bits(std::uint8_t* to, const std::uint8_t* levels, unsigned bit) {
  for (std::size_t l = 0; l < 32; ++l) {
    unsigned bits = 0;
    for (std::size_t p = 0; p < 8; ++p) bits |= ((levels[32 * p + l] >> bit) & 1U) << p;
    to[l] = static_cast<std::uint8_t>(bits);
  }
}
// Q6_K: 128 bytes of nibbles, then 64 of two bits.
inline void put_six_bits(std::uint8_t* to, const std::uint8_t* levels) {
  for (std::size_t g = 0; g < 2; ++g)
    for (std::size_t l = 0; l < 32; ++l) {
      const std::uint8_t* const q = levels + 128 * g + l;
      to[64 * g + l] = static_cast<std::uint8_t>((q[0] & 15) | (q[64] & 15) << 4);
      to[64 * g + 32 + l] = static_cast<std::uint8_t>((q[32] & 15) | (q[96] & 15) << 4);
      to[128 + 32 * g + l] =
          static_cast<std::uint8_t>(q[0] >> 4 | (q[32] >> 4) << 2 | (q[64] >> 4) << 4 | (q[96] >> 4) << 6);
    }
}

// The E8M0 scale of a block whose largest magnitude is `most`, and half of the factor it stands for.
std::uint8_t power_scale(float most);
inline float half_power(std::uint8_t scale) {
  const std::uint32_t bits = scale < 2 ? 0x00200000U << scale : static_cast<std::uint32_t>(scale - 1) << 23;
  return std::bit_cast<float>(bits);
}
// The unsigned E4M3 scale nearest to `value`, and half of the factor it stands for.
std::uint8_t e4m3_scale(float value);
float half_e4m3(std::uint8_t scale);

}  // namespace loadline::convert
