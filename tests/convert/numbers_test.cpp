// Numbers: casts, quantizers and statistics against plain definitions.

#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/float_bits.h"
#include "core/convert/numbers/kernels.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/numbers/statistics.h"
#include "tests/support/vector_targets.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- Statistics and dequantization against plain definitions and gguf-py's results.

namespace {

using testing::for_each_vector_target;

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// What gguf-py was given: the top bytes of a linear congruential generator.
Bytes generated_blocks(graph::DType dtype, std::size_t blocks) {
  Bytes bytes(blocks * graph::dtype_info(dtype).block_bytes);
  std::uint32_t state = 12345;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

std::vector<float> dequantized(graph::DType dtype, const Bytes& blocks) {
  std::vector<float> out(blocks.size() / graph::dtype_info(dtype).block_bytes *
                         graph::dtype_info(dtype).block_elements);
  convert::dequantize(dtype, blocks, out);
  return out;
}

// FNV-1a over the floats' bytes; every NaN as the same one.
std::uint64_t hash_of(const std::vector<float>& values) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const float value : values) {
    const std::uint32_t bits = value != value ? 0x7FC00000u : std::bit_cast<std::uint32_t>(value);
    for (int i = 0; i < 4; ++i) hash = (hash ^ ((bits >> (8 * i)) & 0xFF)) * 0x100000001B3u;
  }
  return hash;
}

// --- dequantization

// Hashes of gguf.quants.dequantize of gguf-py 0.19 over 64 generated blocks.
const std::map<graph::DType, std::uint64_t> kReference = {
    {graph::DType::q4_0, 0xF0578C343661FA24},    {graph::DType::q4_1, 0xBF1983FAD454EC96},
    {graph::DType::q5_0, 0xD3338D5D3CDC89BE},    {graph::DType::q5_1, 0xC5937C551E9C8864},
    {graph::DType::q8_0, 0xBD33EE8125F4A202},    {graph::DType::q2_k, 0x60C9992F2D89D764},
    {graph::DType::q3_k, 0xBDCA013DEDD31A3E},    {graph::DType::q4_k, 0xE733CDD4DE7DA261},
    {graph::DType::q5_k, 0x9FED6B798F66E22E},    {graph::DType::q6_k, 0xDB6E56A0A8443E8A},
    {graph::DType::iq4_nl, 0xB5B372EF73BD9E61},  {graph::DType::iq4_xs, 0x21AE6CBC7518A30C},
    {graph::DType::tq1_0, 0x06B6F052A26641F7},   {graph::DType::tq2_0, 0x54ABF92F016893D6},
    {graph::DType::mxfp4, 0x172926FF04D1B11E},   {graph::DType::nvfp4, 0xD3DD393F0446E03C},
    {graph::DType::iq2_xxs, 0xBF71527FA5A58710}, {graph::DType::iq2_xs, 0xF275950FA8426ADA},
    {graph::DType::iq2_s, 0x9B44E62526A2229C},   {graph::DType::iq3_xxs, 0xFF2F9EB6CEDAB037},
    {graph::DType::iq3_s, 0x6722C0DC2F6EB3EC},   {graph::DType::iq1_s, 0x2F82DE64C9955C7B},
    {graph::DType::iq1_m, 0x452AC811B77E69D7}};

TEST(Dequantize, EqualsGgufPyBitForBitOnEveryVectorTarget) {
  testing::for_each_vector_target([](const char* target) {
    for (const auto& [dtype, hash] : kReference)
      EXPECT_EQ(hash_of(dequantized(dtype, generated_blocks(dtype, 64))), hash)
          << graph::dtype_info(dtype).name << " with " << target;
  });
}

TEST(Dequantize, SaysWhichTypesItKnows) {
  int known = 0;
  for (const graph::DTypeInfo& info : graph::dtype_table()) {
    if (convert::can_dequantize(info.id)) ++known;
    if (info.kind != graph::DTypeKind::block) EXPECT_FALSE(convert::can_dequantize(info.id)) << info.name;
  }
  EXPECT_EQ(known,
            static_cast<int>(kReference.size()) + 5);  // and Q1_0, Q2_0, PQ2_0, Q8_1, Q8_K: not in gguf-py
}

Bytes block(std::initializer_list<std::pair<int, int>> runs) {
  Bytes bytes;
  for (const auto& [value, count] : runs)
    bytes.insert(bytes.end(), static_cast<std::size_t>(count), static_cast<std::byte>(value));
  return bytes;
}

// ggml, dequantize_row_q1_0 and dequantize_row_q2_0, element by element.
std::vector<float> as_ggml_reads(const Bytes& blocks, int bits) {
  std::vector<float> values;
  for (std::size_t block = 0; block < blocks.size(); block += 18) {
    const auto byte = [&](std::size_t at) { return std::to_integer<int>(blocks[block + at]); };
    const float d = convert::half_to_float(static_cast<std::uint16_t>(byte(0) | byte(1) << 8));
    for (int i = 0; i < 128 / bits; ++i) {
      const int q = byte(static_cast<std::size_t>(2 + i * bits / 8)) >> (i * bits % 8);
      if (bits == 1)
        values.push_back((q & 1) == 1 ? d : -d);
      else
        values.push_back(static_cast<float>((q & 3) - 1) * d);
    }
  }
  return values;
}

TEST(Dequantize, BitsAndPairsOfBitsAsGgmlReadsThem) {
  testing::for_each_vector_target([](const char* target) {
    const Bytes ones = generated_blocks(graph::DType::q1_0, 64),
                pairs = generated_blocks(graph::DType::q2_0, 64);
    EXPECT_EQ(hash_of(dequantized(graph::DType::q1_0, ones)), hash_of(as_ggml_reads(ones, 1))) << target;
    EXPECT_EQ(hash_of(dequantized(graph::DType::q2_0, pairs)), hash_of(as_ggml_reads(pairs, 2))) << target;
  });
}

TEST(Dequantize, BlocksByHand) {
  // d = 1 (0x3C00): elements 0, 1 and 8 are set; numbers 3, 0, 0, 0 and then 1s
  const auto q1_0 =
      dequantized(graph::DType::q1_0, block({{0x00, 1}, {0x3C, 1}, {0x03, 1}, {0x01, 1}, {0, 14}}));
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(q1_0[i], i < 2 || i == 8 ? 1.0f : -1.0f) << i;
  const auto pq2_0 = dequantized(graph::DType::pq2_0, block({{0x00, 1}, {0x3C, 1}, {0x55, 31}, {0x80, 1}}));
  EXPECT_EQ(pq2_0[0], 0.0f);
  EXPECT_EQ(pq2_0[124], -1.0f);
  EXPECT_EQ(pq2_0[127], 1.0f);
  const auto q2_0 = dequantized(graph::DType::q2_0, block({{0x00, 1}, {0x3C, 1}, {0x03, 1}, {0x55, 15}}));
  EXPECT_EQ(q2_0[0], 2.0f);
  EXPECT_EQ(q2_0[1], -1.0f);
  EXPECT_EQ(q2_0[4], 0.0f);

  // d = 0.5 (0x3800); low nibbles 9, high nibbles 6
  const auto q4_0 = dequantized(graph::DType::q4_0, block({{0x00, 1}, {0x38, 1}, {0x69, 16}}));
  EXPECT_EQ(q4_0[0], 0.5f);
  EXPECT_EQ(q4_0[15], 0.5f);
  EXPECT_EQ(q4_0[16], -1.0f);
  // the same with a minimum of 1 (0x3C00)
  const auto q4_1 =
      dequantized(graph::DType::q4_1, block({{0x00, 1}, {0x38, 1}, {0x00, 1}, {0x3C, 1}, {0x69, 16}}));
  EXPECT_EQ(q4_1[0], 5.5f);
  EXPECT_EQ(q4_1[31], 4.0f);
  // the fifth bit of element 0 alone
  const auto q5_0 =
      dequantized(graph::DType::q5_0, block({{0x00, 1}, {0x38, 1}, {0x01, 1}, {0, 3}, {0x69, 16}}));
  EXPECT_EQ(q5_0[0], 0.5f * (9 + 16 - 16));
  EXPECT_EQ(q5_0[1], 0.5f * (9 - 16));
  // Q8_1 has a sum between scale and numbers, Q8_K a float scale and 16 sums behind
  const auto q8_1 = dequantized(graph::DType::q8_1, block({{0x00, 1}, {0x38, 1}, {0x77, 2}, {0x80, 32}}));
  EXPECT_EQ(q8_1[31], -64.0f);
  const auto q8_k =
      dequantized(graph::DType::q8_k, block({{0, 2}, {0x80, 1}, {0x3E, 1}, {0x7F, 256}, {0x11, 32}}));
  EXPECT_EQ(q8_k[0], 127 * 0.25f);
  EXPECT_EQ(q8_k[255], 127 * 0.25f);
  // 2^(0x7F - 128) = 0.5; code 7 is 12, code 0xF is -12
  const auto mxfp4 = dequantized(graph::DType::mxfp4, block({{0x7F, 1}, {0xF7, 16}}));
  EXPECT_EQ(mxfp4[0], 6.0f);
  EXPECT_EQ(mxfp4[16], -6.0f);
  // the constant block of ones: d s = 1/15 each, all minima 0, all numbers 15
  const auto q4_k = dequantized(
      graph::DType::q4_k, block({{0x56, 1}, {0x14, 1}, {0, 2}, {0xFF, 4}, {0, 4}, {0x0F, 4}, {0xFF, 128}}));
  for (const float value : q4_k) EXPECT_NEAR(value, 1.0f, 1e-3f);
}

// --- codes

TEST(Codes, SmallFloatsByTheirSpecifications) {
  const auto e4m3 = convert::code_values(graph::DType::f8_e4m3),
             e5m2 = convert::code_values(graph::DType::f8_e5m2);
  const auto fnuz = convert::code_values(graph::DType::f8_e4m3fnuz),
             fnuz5 = convert::code_values(graph::DType::f8_e5m2fnuz);
  EXPECT_EQ(e4m3[0x7E], 448);
  EXPECT_EQ(e4m3[0x01], 0x1p-9);
  EXPECT_TRUE(std::isnan(e4m3[0x7F]) && std::isnan(e4m3[0xFF]));
  EXPECT_EQ(e5m2[0x7B], 57344);
  EXPECT_EQ(e5m2[0xFC], -INFINITY);
  EXPECT_TRUE(std::isnan(e5m2[0x7D]));
  EXPECT_EQ(fnuz[0x7F], 240);
  EXPECT_TRUE(std::isnan(fnuz[0x80]) && std::isnan(fnuz5[0x80]));
  EXPECT_EQ(fnuz5[0x7F], 57344);
  EXPECT_EQ(convert::code_values(graph::DType::f8_e8m0)[127], 1);
  EXPECT_EQ(convert::code_values(graph::DType::f8_e8m0)[0], 0x1p-127);
  EXPECT_EQ(convert::code_values(graph::DType::f4_e2m1)[7], 6);
  EXPECT_EQ(convert::code_values(graph::DType::f4_e2m1)[9], -0.5);
  EXPECT_EQ(convert::code_values(graph::DType::f6_e2m3)[31], 7.5);
  EXPECT_EQ(convert::code_values(graph::DType::f6_e3m2)[31], 28);
  EXPECT_EQ(convert::code_values(graph::DType::i4)[15], -1);
  EXPECT_EQ(convert::code_values(graph::DType::i2)[2], -2);
  EXPECT_EQ(convert::code_values(graph::DType::i8)[0x80], -128);
  EXPECT_EQ(convert::code_values(graph::DType::boolean)[7], 1);
}

TEST(Codes, NarrowElementsLieLowestBitsFirst) {
  const Bytes bytes = block({{0x21, 1}, {0x43, 1}, {0x65, 1}});
  std::vector<std::uint8_t> nibbles(5), pairs(12), sixes(4);
  convert::unpack_codes(graph::DType::u4, bytes, nibbles);
  EXPECT_EQ(nibbles, (std::vector<std::uint8_t>{1, 2, 3, 4, 5}));
  convert::unpack_codes(graph::DType::u2, bytes, pairs);
  EXPECT_EQ(pairs, (std::vector<std::uint8_t>{1, 0, 2, 0, 3, 0, 0, 1, 1, 1, 2, 1}));
  convert::unpack_codes(graph::DType::f6_e2m3, bytes, sixes);  // 0x654321
  EXPECT_EQ(sixes, (std::vector<std::uint8_t>{0x21, 0x0C, 0x14, 0x19}));
}

// --- statistics

double half_by_definition(std::uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31), fraction = static_cast<int>(bits & 1023);
  const double magnitude = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename T>
std::vector<double> numbers(const Bytes& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

std::vector<double> decoded(graph::DType dtype, const Bytes& bytes) {
  std::vector<double> values;
  switch (dtype) {
    case graph::DType::f32:
    case graph::DType::c64:
      return numbers<float>(bytes);
    case graph::DType::f64:
    case graph::DType::c128:
      return numbers<double>(bytes);
    case graph::DType::i16:
      return numbers<std::int16_t>(bytes);
    case graph::DType::u16:
      return numbers<std::uint16_t>(bytes);
    case graph::DType::i32:
      return numbers<std::int32_t>(bytes);
    case graph::DType::u32:
      return numbers<std::uint32_t>(bytes);
    case graph::DType::i64:
      return numbers<std::int64_t>(bytes);
    case graph::DType::u64:
      return numbers<std::uint64_t>(bytes);
    case graph::DType::f16:
      for (const double bits : numbers<std::uint16_t>(bytes))
        values.push_back(half_by_definition(static_cast<std::uint32_t>(bits)));
      return values;
    case graph::DType::bf16:
      for (const double bits : numbers<std::uint16_t>(bytes))
        values.push_back(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)));
      return values;
    default:
      break;
  }
  if (convert::is_code_type(dtype)) {
    std::vector<std::uint8_t> codes(bytes.size() / graph::dtype_info(dtype).block_bytes *
                                    graph::dtype_info(dtype).block_elements);
    convert::unpack_codes(dtype, bytes, codes);
    const auto table = convert::code_values(dtype);
    for (const std::uint8_t code : codes) values.push_back(table[code]);
    return values;
  }
  for (const float value : dequantized(dtype, bytes)) values.push_back(static_cast<double>(value));
  return values;
}

double as_double(const convert::Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

// The definition of every figure, element by element.
void expect_measured(const std::vector<double>& values, const convert::ValueStats& stats,
                     const std::string& what) {
  convert::ValueStats expected;
  expected.count = values.size();
  long double sum = 0;
  double least = INFINITY, most = -INFINITY;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (i % 4 == 0 && i + 4 <= values.size()) {
      ++expected.groups;
      int zeros = 0;
      for (std::size_t j = i; j < i + 4; ++j) zeros += values[j] == 0;
      expected.sparse_groups += zeros >= 2;
    }
    if (std::isnan(value)) {
      ++expected.nans;
    } else if (std::isinf(value)) {
      ++(value > 0 ? expected.positive_infs : expected.negative_infs);
    } else {
      sum += static_cast<long double>(value);
      least = std::min(least, value);
      most = std::max(most, value);
      if (value == 0) {
        ++expected.zeros;
      } else {
        const int octave = std::clamp(std::ilogb(value), convert::kFirstOctave, convert::kLastOctave);
        ++(value > 0 ? expected.positive
                     : expected.negative)[static_cast<std::size_t>(octave - convert::kFirstOctave)];
      }
    }
  }
  EXPECT_EQ(stats.count, expected.count) << what;
  EXPECT_EQ(stats.zeros, expected.zeros) << what;
  EXPECT_EQ(stats.nans, expected.nans) << what;
  EXPECT_EQ(stats.positive_infs, expected.positive_infs) << what;
  EXPECT_EQ(stats.negative_infs, expected.negative_infs) << what;
  EXPECT_EQ(stats.groups, expected.groups) << what;
  EXPECT_EQ(stats.sparse_groups, expected.sparse_groups) << what;
  EXPECT_EQ(stats.positive, expected.positive) << what;
  EXPECT_EQ(stats.negative, expected.negative) << what;
  const std::uint64_t finite = expected.finite();
  ASSERT_EQ(stats.min.has_value(), finite > 0) << what;
  if (finite == 0) return;
  EXPECT_EQ(as_double(*stats.min), least) << what;
  EXPECT_EQ(as_double(*stats.max), most) << what;
  EXPECT_FALSE(least == 0 && std::signbit(as_double(*stats.min))) << what;
  const long double mean = sum / static_cast<long double>(finite);
  long double squares = 0;
  for (const double value : values)
    if (std::isfinite(value)) squares += (value - mean) * (value - mean);
  const double tolerance = 1e-12 * std::max(std::abs(least), std::abs(most));
  EXPECT_NEAR(stats.mean, static_cast<double>(mean), tolerance) << what;
  EXPECT_NEAR(stats.deviation, static_cast<double>(std::sqrt(squares / finite)), tolerance) << what;
}

convert::ValueStats measured(graph::DType dtype, std::span<const std::byte> bytes) {
  convert::StatsAccumulator stats(dtype);
  stats.add(bytes);
  return stats.result();
}

// Random bits with runs of zero bytes; doubles stay where sums of squares do not overflow.
Bytes sample_bytes(graph::DType dtype, std::size_t blocks, std::uint64_t seed) {
  Bytes bytes = random_bytes(blocks * graph::dtype_info(dtype).block_bytes, seed);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if ((i / 24) % 3 == 1) bytes[i] = std::byte{0};
  if (dtype == graph::DType::f64 || dtype == graph::DType::c128)
    for (std::size_t i = 7; i < bytes.size(); i += 8) {
      const auto top = std::to_integer<unsigned>(bytes[i]);
      if (i % 5 != 0) bytes[i] = static_cast<std::byte>(top & 0xBF);  // the rest may be infinite or NaN
      if (i % 5 == 0) {
        bytes[i] = static_cast<std::byte>((top & 0x80) | 0x7F);
        bytes[i - 1] = static_cast<std::byte>(0xF0);
        if (top % 2 == 0)
          for (std::size_t j = i - 7; j < i - 1; ++j) bytes[j] = std::byte{0};
      }
    }
  return bytes;
}

TEST(Stats, EveryTypeAgainstTheDefinition) {
  int measured_types = 0;
  for (const graph::DTypeInfo& info : graph::dtype_table()) {
    if (!convert::can_measure(info.id)) continue;
    ++measured_types;
    for (const std::size_t blocks : {std::size_t{1}, std::size_t{3}, std::size_t{67}, std::size_t{9001}}) {
      const Bytes bytes = sample_bytes(info.id, blocks, 11 + blocks);
      expect_measured(decoded(info.id, bytes), measured(info.id, bytes),
                      std::string(info.name) + " x " + std::to_string(blocks));
    }
  }
  EXPECT_EQ(measured_types, graph::kDTypeCount - 2);  // all but opaque and text
}

TEST(Stats, EveryPatternOfSixteenAndEightBits) {
  Bytes bytes(65536 * 2);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(bytes.data() + std::size_t{2} * i, &bits, 2);
  }
  expect_measured(decoded(graph::DType::f16, bytes), measured(graph::DType::f16, bytes), "f16");
  expect_measured(decoded(graph::DType::bf16, bytes), measured(graph::DType::bf16, bytes), "bf16");
  Bytes codes(256);
  for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::byte>(i);
  for (const graph::DType dtype :
       {graph::DType::f8_e4m3, graph::DType::f8_e4m3fnuz, graph::DType::f8_e5m2, graph::DType::f8_e5m2fnuz,
        graph::DType::f8_e8m0, graph::DType::i8, graph::DType::u8, graph::DType::boolean})
    expect_measured(decoded(dtype, codes), measured(dtype, codes),
                    std::string(graph::dtype_info(dtype).name));
}

TEST(Stats, NumbersKeepTheirTypesAndAllTheirBits) {
  const std::int64_t signed_values[] = {INT64_MIN, INT64_MAX, (std::int64_t{1} << 53) - 1, -1};
  const convert::ValueStats i64 = measured(graph::DType::i64, std::as_bytes(std::span(signed_values)));
  EXPECT_EQ(i64.min, convert::Number(INT64_MIN));
  EXPECT_EQ(i64.max, convert::Number(INT64_MAX));
  EXPECT_EQ(i64.positive[52 - convert::kFirstOctave], 1u);
  EXPECT_EQ(i64.positive[62 - convert::kFirstOctave], 1u);
  EXPECT_EQ(i64.negative[63 - convert::kFirstOctave], 1u);
  EXPECT_EQ(i64.negative[0 - convert::kFirstOctave], 1u);
  const std::uint64_t unsigned_values[] = {UINT64_MAX, 1};
  const convert::ValueStats u64 = measured(graph::DType::u64, std::as_bytes(std::span(unsigned_values)));
  EXPECT_EQ(u64.max, convert::Number(UINT64_MAX));
  EXPECT_EQ(u64.min, convert::Number(std::uint64_t{1}));
  EXPECT_EQ(u64.positive[63 - convert::kFirstOctave], 1u);
  const std::uint8_t flags[] = {0, 1, 7};
  EXPECT_EQ(measured(graph::DType::boolean, std::as_bytes(std::span(flags))).max,
            convert::Number(std::uint64_t{1}));
  const std::int8_t small[] = {-128, 127};
  EXPECT_EQ(measured(graph::DType::i8, std::as_bytes(std::span(small))).min,
            convert::Number(std::int64_t{-128}));
}

TEST(Stats, NothingFiniteAndNothingAtAll) {
  const convert::ValueStats none = measured(graph::DType::f32, {});
  EXPECT_EQ(none.count, 0u);
  EXPECT_FALSE(none.min || none.max);
  const float odd[] = {NAN, INFINITY, -INFINITY, -NAN};
  const convert::ValueStats special = measured(graph::DType::f32, std::as_bytes(std::span(odd)));
  EXPECT_EQ(special.nans, 2u);
  EXPECT_EQ(special.positive_infs, 1u);
  EXPECT_EQ(special.negative_infs, 1u);
  EXPECT_EQ(special.finite(), 0u);
  EXPECT_FALSE(special.min || special.max);
}

TEST(Stats, DeviationOfNumbersFarFromZero) {
  // sums of plain squares would leave nothing of a deviation of 1 beside a mean of 10^7
  std::vector<float> values;
  for (int i = 0; i < 100'000; ++i) values.push_back(1e7f + (i % 2 == 0 ? 1.0f : -1.0f));
  const convert::ValueStats stats = measured(graph::DType::f32, std::as_bytes(std::span(values)));
  EXPECT_DOUBLE_EQ(stats.mean, 1e7);
  EXPECT_NEAR(stats.deviation, 1.0, 1e-9);
}

TEST(Stats, PiecesEqualTheWhole) {
  for (const graph::DType dtype : {graph::DType::f32, graph::DType::bf16, graph::DType::f64, graph::DType::i8,
                                   graph::DType::i64, graph::DType::u4, graph::DType::q4_0}) {
    const graph::DTypeInfo& info = graph::dtype_info(dtype);
    const Bytes bytes = sample_bytes(dtype, 20'000, 5);
    convert::StatsAccumulator pieces(dtype);
    std::mt19937 random(3);
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t most = (bytes.size() - at) / info.block_bytes;
      const std::size_t blocks = std::min<std::size_t>(most, 1 + random() % 700);
      pieces.add(std::span(bytes).subspan(at, blocks * info.block_bytes));
      at += blocks * info.block_bytes;
    }
    expect_measured(decoded(dtype, bytes), pieces.result(), std::string(info.name) + " in pieces");
  }
}

TEST(Stats, WhatFillsUpTheLastByteIsNoElement) {
  const Bytes bytes = block({{0x21, 1}, {0x43, 1}, {0xF5, 1}});
  convert::StatsAccumulator stats(graph::DType::u4);
  stats.add(bytes, 5);
  EXPECT_EQ(stats.result().count, 5u);
  EXPECT_EQ(stats.result().max, convert::Number(std::uint64_t{5}));
}

// --- vectors

std::vector<float> awkward_floats(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const float odd[] = {0.0f,      -0.0f,     NAN,        -NAN,    INFINITY,
                       -INFINITY, 0x1p-149f, -0x1p-127f, 3.4e38f, 0x1p-126f};
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    values.push_back(bits % 8 == 0  ? odd[(bits >> 8) % std::size(odd)]
                     : bits % 8 < 4 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits >> 32))
                                    : static_cast<float>(static_cast<std::int32_t>(bits >> 32)) * 1e-11f);
  }
  return values;
}

TEST(Stats, EveryVectorTargetEqualsThePlainLoops) {
  testing::for_each_vector_target([](const char* target) {
    for (std::size_t count = 0; count <= convert::kChunk; count += count < 200 ? 1 : 389) {
      std::vector<float> values = awkward_floats(count, count);
      if (count % 3 == 0)  // nothing special: the shorter way through
        for (float& value : values)
          if (!std::isfinite(value)) value = 1;
      const convert::FloatChunk plain = convert::measure_floats_plain(values),
                                vectors = convert::measure_floats(values);
      ASSERT_EQ(plain.zeros, vectors.zeros) << target << ' ' << count;
      ASSERT_EQ(plain.has_special, vectors.has_special) << target << ' ' << count;
      ASSERT_EQ(plain.has_tiny, vectors.has_tiny) << target << ' ' << count;
      ASSERT_EQ(plain.moments.finite, vectors.moments.finite) << target << ' ' << count;
      ASSERT_EQ(plain.moments.min, vectors.moments.min) << target << ' ' << count;
      ASSERT_EQ(plain.moments.max, vectors.moments.max) << target << ' ' << count;
      if (plain.moments.finite > 0) {
        const double most = std::max(std::abs(plain.moments.min), std::abs(plain.moments.max));
        ASSERT_NEAR(plain.moments.mean, vectors.moments.mean, 1e-13 * most) << target << ' ' << count;
        ASSERT_NEAR(plain.moments.squares, vectors.moments.squares, 1e-12 * plain.moments.squares)
            << target << ' ' << count;
      }
      const Bytes codes = random_bytes(count, count);
      const std::span coded(reinterpret_cast<const std::uint8_t*>(codes.data()), count);
      for (const std::uint8_t mask : {std::uint8_t{0x7F}, std::uint8_t{0xFF}, std::uint8_t{0x07}})
        ASSERT_EQ(convert::zero_codes_plain(coded, mask), convert::zero_codes(coded, mask))
            << target << ' ' << count;
    }
  });
}

}  // namespace

// --- Casts against plain definitions of the half and bfloat16 types.

namespace {

template <typename Out, typename In>
Out cast_one(graph::DType from, In value, graph::DType to) {
  Out out;
  convert::cast(from, std::as_bytes(std::span(&value, 1)), to, std::as_writable_bytes(std::span(&out, 1)));
  return out;
}

// A half by its definition: sign, 5 bits of exponent, 10 of fraction.
double half_value(std::uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31), fraction = static_cast<int>(bits & 1023);
  const double magnitude = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// The nearest half: scaling by a power of two is exact, so nearbyint is the only rounding.
std::uint16_t half_bits(double value) {
  const auto sign = static_cast<std::uint32_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::abs(value);
  if (magnitude >= 65520) return static_cast<std::uint16_t>(sign | 0x7C00);
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  const std::uint32_t bits =
      steps < 1024 ? steps : (static_cast<std::uint32_t>(exponent + 15) << 10) + steps - 1024;
  return static_cast<std::uint16_t>(sign | bits);
}

// Nearest bfloat16 by definition: the closer neighbor, the even one when equally close.
std::uint16_t bf16_oracle(double value, float as_float) {
  if (std::isnan(value))
    return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(as_float) >> 16) | 0x40);
  const auto low = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(as_float) >> 16);
  const auto widen = [](std::uint32_t bits) -> double {
    // one past the largest finite value stands for what would round to infinity
    if ((bits & 0x7FFF) == 0x7F80) return (bits & 0x8000) != 0 ? -0x1p128 : 0x1p128;
    return std::bit_cast<float>(bits << 16);
  };
  if (std::isinf(value)) return low;
  const double below = std::abs(value - widen(low)), above = std::abs(widen(low + 1u) - value);
  if (below != above) return below < above ? low : static_cast<std::uint16_t>(low + 1);
  return (low & 1) == 0 ? low : static_cast<std::uint16_t>(low + 1);
}

TEST(Cast, EveryHalfWidensAndComesBack) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const auto wide = cast_one<float>(graph::DType::f16, bits, graph::DType::f32);
    const auto expected = static_cast<float>(half_value(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(wide)) << i;
      EXPECT_EQ(std::signbit(wide), (i & 0x8000) != 0) << i;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide), std::bit_cast<std::uint32_t>(expected)) << i;
      ASSERT_EQ(cast_one<std::uint16_t>(graph::DType::f32, wide, graph::DType::f16), bits) << i;
    }
    const auto brain = cast_one<float>(graph::DType::bf16, bits, graph::DType::f32);
    if (!std::isnan(brain))
      ASSERT_EQ(cast_one<std::uint16_t>(graph::DType::f32, brain, graph::DType::bf16), bits) << i;
  }
}

TEST(Cast, NarrowingRoundsToNearestEven) {
  std::mt19937 random(7);
  std::vector<float> values = {0.0f,       -0.0f,    65504.0f,     65519.99f, 65520.0f, 1e30f,
                               -1e30f,     3.4e38f,  1e-45f,       6e-8f,     2.98e-8f, 0x1p-25f,
                               0x1.8p-24f, 0x1p-14f, 0x1.ffcp-15f, INFINITY,  -INFINITY};
  for (int i = 0; i < 300'000; ++i) {
    auto bits = static_cast<std::uint32_t>(random());
    if (i % 2 == 0) bits = (bits & 0x807FFFFFu) | ((100 + bits % 48) << 23);  // near the half range
    if (i % 5 == 0) bits &= ~0xFFFu;                                          // ties
    values.push_back(std::bit_cast<float>(bits));
  }
  for (const float value : values) {
    const auto half = cast_one<std::uint16_t>(graph::DType::f32, value, graph::DType::f16);
    const auto brain = cast_one<std::uint16_t>(graph::DType::f32, value, graph::DType::bf16);
    if (std::isnan(value)) {
      EXPECT_TRUE((half & 0x7FFF) > 0x7C00 && (brain & 0x7FFF) > 0x7F80);
      EXPECT_EQ(half >> 15, std::signbit(value));
      continue;
    }
    ASSERT_EQ(half, half_bits(value)) << value;
    ASSERT_EQ(brain, bf16_oracle(value, value)) << value;
  }
}

TEST(Cast, DoublesRoundOnce) {
  std::mt19937_64 random(9);
  std::vector<double> values = {0.0,    -0.0,   65520.0, 65519.999999999, 1e300,
                                -1e300, 1e-300, 0x1p-25, 0x1.000001p-25,  INFINITY};
  for (int i = 0; i < 200'000; ++i) {
    // halfway between two halves, and just off by the last bit of a double: double rounding would show
    std::uint32_t bits = static_cast<std::uint32_t>(random()) & 0x7BFF;
    if ((bits & 0x7C00) == 0x7C00) bits &= 0x3FFF;
    const double middle = half_value(bits) * (1 + 0x1p-11);
    values.push_back(middle);
    values.push_back(std::nextafter(middle, 0.0));
    values.push_back(-std::nextafter(middle, INFINITY));
  }
  for (const double value : values) {
    ASSERT_EQ(cast_one<std::uint16_t>(graph::DType::f64, value, graph::DType::f16), half_bits(value))
        << value;
    ASSERT_EQ(cast_one<float>(graph::DType::f64, value, graph::DType::f32), static_cast<float>(value));
  }
}

TEST(Cast, UnalignedSpansAndSamePairsWork) {
  std::vector<std::byte> source(4 * 33 + 1), out(2 * 33 + 1);
  for (std::size_t i = 0; i < 33; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(source.data() + 1 + 4 * i, &value, 4);
  }
  convert::cast(graph::DType::f32, std::span(source).subspan(1), graph::DType::f16,
                std::span(out).subspan(1));
  std::uint16_t last = 0;
  std::memcpy(&last, out.data() + 1 + 2 * 32, 2);
  EXPECT_EQ(last, half_bits(32.0));
  std::vector<std::byte> same(source.size());
  convert::cast(graph::DType::i64, source, graph::DType::i64, same);
  EXPECT_EQ(same, source);
}

// One element is cast by the scalar definition, many by vectors.
template <typename In, typename Out>
void expect_as_one_by_one(const char* target, graph::DType from, const std::vector<In>& values,
                          graph::DType to) {
  std::vector<Out> out(values.size());
  convert::cast(from, std::as_bytes(std::span(values)), to, std::as_writable_bytes(std::span(out)));
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(out[i], (cast_one<Out>(from, values[i], to))) << target << ' ' << values[i];
}

TEST(Cast, ManyEqualOneByOneOnEveryVectorTarget) {
  testing::for_each_vector_target([](const char* target) {
    std::vector<std::uint16_t> halves(65536);
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
    expect_as_one_by_one<std::uint16_t, std::uint32_t>(target, graph::DType::f16, halves, graph::DType::f32);
    expect_as_one_by_one<std::uint16_t, std::uint32_t>(target, graph::DType::bf16, halves, graph::DType::f32);
    expect_as_one_by_one<std::uint16_t, std::uint16_t>(target, graph::DType::f16, halves, graph::DType::bf16);
    expect_as_one_by_one<std::uint16_t, std::uint16_t>(target, graph::DType::bf16, halves, graph::DType::f16);
    // every sign and exponent, with fractions on and beside each rounding border
    std::vector<std::uint32_t> floats;
    for (std::uint32_t high = 0; high < 65536; ++high)
      for (const std::uint32_t low : {0x0000u, 0x0001u, 0x0FFFu, 0x1000u, 0x1001u, 0x7FFFu, 0x8000u, 0x8001u})
        floats.push_back(high << 16 | low);
    expect_as_one_by_one<std::uint32_t, std::uint16_t>(target, graph::DType::f32, floats, graph::DType::f16);
    expect_as_one_by_one<std::uint32_t, std::uint16_t>(target, graph::DType::f32, floats, graph::DType::bf16);
  });
}

TEST(Cast, OnlyFloatingPairsAreOffered) {
  EXPECT_TRUE(convert::can_cast(graph::DType::f64, graph::DType::bf16));
  EXPECT_TRUE(convert::can_cast(graph::DType::u8, graph::DType::u8));
  EXPECT_FALSE(convert::can_cast(graph::DType::f32, graph::DType::f64));
  EXPECT_FALSE(convert::can_cast(graph::DType::i32, graph::DType::f32));
  EXPECT_FALSE(convert::can_cast(graph::DType::f8_e4m3, graph::DType::f32));
}

}  // namespace

// --- Quantizers against hashes of what ggml's reference gives, and vector code against the plain definition.

namespace {

using Floats = std::vector<float>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::size_t byte_count(graph::DType dtype, std::size_t numbers) {
  return static_cast<std::size_t>(graph::byte_size(dtype, numbers).value());
}

Bytes quantized(graph::DType dtype, const Floats& row, const Floats& importance = {}) {
  Bytes out(byte_count(dtype, row.size()));
  convert::quantize_rows(dtype, row, importance, out);
  return out;
}

Bytes plainly_quantized(graph::DType dtype, const Floats& row, const Floats& importance) {
  Bytes out(byte_count(dtype, row.size()));
  const float square = convert::sum_squares(row) / static_cast<float>(row.size());
  convert::quantize_plain(dtype, row, {importance, square}, out);
  return out;
}

std::uint64_t hash_of(const Bytes& bytes) {  // FNV-1a
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3u;
  return hash;
}

std::string hex(const Bytes& bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", std::to_integer<int>(bytes[i]));
  return text;
}
std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// 512 numbers of a linear congruential generator from -1 to 1.
Floats generated_row() {
  Floats row(512);
  std::uint32_t state = 12345;
  for (float& number : row) {
    state = state * 1664525u + 1013904223u;
    number = (static_cast<float>(state >> 8) - 8388608.0F) / 8388608.0F;
  }
  return row;
}

// Hashes of ggml's blocks (libgguf 0.2.2) of the generated row, without importance and with.
struct Golden {
  graph::DType dtype;
  std::uint64_t plain, weighted;
};
constexpr Golden kGolden[] = {
    {graph::DType::q8_0, 0x14C44841C61B4A9B, 0x14C44841C61B4A9B},
    {graph::DType::q4_0, 0xBB0E503AD92E7F56, 0xE3535C9C5A760363},
    {graph::DType::q4_1, 0x2295144CA7D67507, 0x0595EC38C59A42F3},
    {graph::DType::q5_0, 0xDF262B5E584383A6, 0x6AF50C15E065D3DA},
    {graph::DType::q5_1, 0x751A0E7AF3DDC245, 0x7D5EC0C717D5E036},
    {graph::DType::q2_k, 0x43766D5C9A667567, 0x6FB1B34B4AA7579A},
    {graph::DType::q3_k, 0x8E443D04CBD5CF6A, 0x84BDA3039E8167AD},
    {graph::DType::q4_k, 0x755F9FEDB2B7E85F, 0x5C73894740B467F8},
    {graph::DType::q5_k, 0x0B11993300AA509F, 0x46CF7C0A61134DFA},
    {graph::DType::q6_k, 0x60C91CB7C85F2C85, 0xBD83CCA5137C907D},
    {graph::DType::iq4_nl, 0x26421EF97F3C3A5E, 0xCB01835FB9DCF216},
    {graph::DType::iq4_xs, 0x26ED7E18F8D449F2, 0x4112E6EC11E7A60C},
    {graph::DType::mxfp4, 0xB3B45C8447BF3E9C, 0xB3B45C8447BF3E9C},
    {graph::DType::nvfp4, 0x0C2AB4FBDC5A68FC, 0x0C2AB4FBDC5A68FC},
    {graph::DType::tq2_0, 0x655D0F6C2C2ADE8E, 0x655D0F6C2C2ADE8E},
};

// The row backwards, its magnitudes times four.
Floats generated_importance() {
  const Floats row = generated_row();
  Floats importance(row.rbegin(), row.rend());
  for (float& number : importance) number = 4 * std::abs(number);
  return importance;
}

TEST(Quantize, EqualsGgmlBitForBitOnEveryVectorTarget) {
  const Floats row = generated_row(), importance = generated_importance();
  testing::for_each_vector_target([&](const char* target) {
    for (const Golden& golden : kGolden) {
      const auto name = graph::dtype_info(golden.dtype).name;
      EXPECT_EQ(hash_of(quantized(golden.dtype, row)), golden.plain) << name << " with " << target;
      EXPECT_EQ(hash_of(quantized(golden.dtype, row, importance)), golden.weighted)
          << name << " with importance, with " << target;
    }
  });
}

// With hardly any weights, a fit can give a negative scale, whose code does not fit in six bits. ggml's Q4_K
// then spoils the code beside it, Q5_K bounds it.
TEST(Quantize, ScalesBeyondTheirBitsAreGgmls) {
  const Floats row = generated_row();
  Floats importance = generated_importance();
  for (std::size_t i = 0; i < importance.size(); ++i)
    if (i % 17 != 2) importance[i] = 0;
  testing::for_each_vector_target([&](const char* target) {
    EXPECT_EQ(hash_of(quantized(graph::DType::q4_k, row, importance)), 0x49E1BC86A3F44D31) << target;
    EXPECT_EQ(hash_of(quantized(graph::DType::q5_k, row, importance)), 0x9583D9B3BE32C739) << target;
    EXPECT_EQ(hash_of(quantized(graph::DType::q2_k, row, importance)), 0x9AE6151E4E6AF455) << target;
  });
}

TEST(Quantize, SaysWhichTypesItKnows) {
  for (const graph::DTypeInfo& info : graph::dtype_table()) {
    const auto golden =
        std::ranges::find_if(kGolden, [&](const Golden& row) { return row.dtype == info.id; });
    EXPECT_EQ(convert::can_quantize(info.id), golden != std::end(kGolden)) << info.name;
    if (golden != std::end(kGolden))
      EXPECT_EQ(convert::heeds_importance(info.id), golden->plain != golden->weighted) << info.name;
    else
      EXPECT_FALSE(convert::heeds_importance(info.id)) << info.name;
  }
}

TEST(Quantize, ConstantBlocks) {
  struct Case {
    graph::DType dtype;
    float value;
    std::string bytes;
  };
  const std::string zeros(2 * 256, '0');
  const Case cases[] = {
      {graph::DType::q4_0, 0, "0080" + repeated("88", 16)},
      {graph::DType::q5_0, 0, "0080ffffffff" + repeated("00", 16)},
      {graph::DType::q8_0, 0, zeros.substr(0, 68)},
      {graph::DType::q4_1, 0, zeros.substr(0, 40)},
      {graph::DType::q5_1, 0, zeros.substr(0, 48)},
      {graph::DType::q4_k, 0, zeros.substr(0, 288)},
      {graph::DType::q5_k, 0, zeros.substr(0, 352)},
      {graph::DType::q6_k, 0, zeros.substr(0, 420)},
      {graph::DType::mxfp4, 0, zeros.substr(0, 34)},
      {graph::DType::q8_0, 1, "0820" + repeated("7f", 32)},
      {graph::DType::q4_0, 1, "00b0" + repeated("00", 16)},
      {graph::DType::q4_1, 1, "0000003c" + repeated("00", 16)},
      {graph::DType::mxfp4, 1, "7d" + repeated("66", 16)},
      {graph::DType::q4_k, 1, "56140000ffffffff000000000f0f0f0f" + repeated("ff", 128)},
      {graph::DType::q4_0, -1, "0030" + repeated("00", 16)},
      {graph::DType::q4_k, -1, "0000102400000000fffffffff0f0f0f0" + repeated("00", 128)},
  };
  for (const Case& one : cases)
    EXPECT_EQ(hex(quantized(one.dtype, Floats(256, one.value)), one.bytes.size() / 2), one.bytes)
        << graph::dtype_info(one.dtype).name << " of " << one.value;
}

// Rows of 1280 numbers: an odd number of blocks of every size.
constexpr std::size_t kColumns = 1280;

// Five distributions, nine magnitudes.
Floats random_row(std::mt19937_64& random, int distribution, int magnitude) {
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats row(kColumns);
  const float scale = std::pow(10.0F, static_cast<float>(std::array{-30, -12, -6, -3, 0, 1, 4, 9, 30}.at(
                                          static_cast<std::size_t>(magnitude))));
  for (float& number : row) {
    const float u = uniform(random), n = normal(random);
    const float shapes[] = {n, u, n * n * n, n / (std::abs(u) + 1e-3F), std::abs(u) * u * u};
    number = shapes[distribution] * scale;
  }
  return row;
}

std::vector<Floats> adversarial_rows(std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<Floats> rows;
  const auto add = [&](auto number_at) {
    Floats row(kColumns);
    for (std::size_t i = 0; i < kColumns; ++i) row[i] = number_at(i);
    rows.push_back(std::move(row));
  };
  for (const float value : {0.0F, -0.0F, 1.0F, -1.0F, 1e-45F, 3e38F, -3e38F, kInfinity, -kInfinity, kNaN})
    add([&](std::size_t) { return value; });
  for (const float scale : {1e-44F, 1e-41F, 1e-38F, 1e-20F, 1e18F, 1e20F, 5e37F})
    add([&](std::size_t) { return normal(random) * scale; });
  for (const float outlier : {1.0F, 1e4F, -1e6F, 1e30F, -1e30F, 1e-30F, kInfinity, -kInfinity, kNaN, -kNaN}) {
    add([&](std::size_t i) { return i % 97 == 5 ? outlier : normal(random) * 1e-3F; });
    add([&](std::size_t i) { return i % 61 == 7 ? outlier : 0.0F; });
    add([&](std::size_t i) { return i % 32 == 0 ? outlier : -1e-6F * std::abs(normal(random)); });
  }
  add([&](std::size_t i) { return i % 9 == 0 ? kInfinity : i % 7 == 0 ? -kInfinity : normal(random); });
  add([&](std::size_t) { return std::round(normal(random) * 4); });
  add([&](std::size_t) { return std::copysign(1.0F, normal(random)); });
  add([&](std::size_t) { return std::copysign(0.0F, normal(random)); });
  add([&](std::size_t) { return std::max(normal(random), 0.0F); });
  add([&](std::size_t) { return std::min(normal(random), -0.0F); });
  add([&](std::size_t) { return std::abs(normal(random)) + 5; });
  add([&](std::size_t) { return -std::abs(normal(random)) - 5; });
  add([&](std::size_t) { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); });
  return rows;
}

std::vector<Floats> importances(std::mt19937_64& random) {
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<Floats> all(6, Floats(kColumns));
  for (float& number : all[1]) number = uniform(random);
  for (float& number : all[2]) number = std::max(uniform(random) - 0.3F, 0.0F) * 1e4F;
  for (float& number : all[3]) number = uniform(random) * 1e30F;
  for (float& number : all[4]) number = uniform(random) < 0.01F ? kNaN : uniform(random);
  for (float& number : all[5]) number = uniform(random) < 0.9F ? 0.0F : uniform(random);
  all[0].clear();
  return all;
}

TEST(Quantize, VectorCodeEqualsThePlainDefinition) {
  std::mt19937_64 random(1);
  std::vector<Floats> rows = adversarial_rows(random);
  for (int distribution = 0; distribution < 5; ++distribution)
    for (int magnitude = 0; magnitude < 9; ++magnitude)
      rows.push_back(random_row(random, distribution, magnitude));
  const std::vector<Floats> weights = importances(random);
  for (const Golden& type : kGolden)
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t w = 0; w < weights.size(); ++w) {
        if (w > 0 && !convert::heeds_importance(type.dtype)) continue;
        if (w > 2 && (r + w) % 4 != 0) continue;
        const Bytes plain = plainly_quantized(type.dtype, rows[r], weights[w]);
        testing::for_each_vector_target([&](const char* target) {
          EXPECT_EQ(quantized(type.dtype, rows[r], weights[w]), plain)
              << graph::dtype_info(type.dtype).name << ", row " << r << ", importance " << w << ", "
              << target;
        });
      }
}

// A part of a row gives the same blocks as the whole row.
TEST(Quantize, PartsOfARowGiveItsBlocks) {
  const Floats row = generated_row(), importance = generated_importance();
  const float square =
      convert::sum_squares(std::span(row).subspan(256), convert::sum_squares(std::span(row).first(256))) /
      512;
  for (const Golden& golden : kGolden) {
    Bytes out(byte_count(golden.dtype, 512));
    for (const std::size_t at : {std::size_t{0}, std::size_t{256}})
      convert::quantize(golden.dtype, std::span(row).subspan(at, 256),
                        convert::RowImportance{std::span(importance).subspan(at, 256), square},
                        std::span(out).subspan(at / 256 * (out.size() / 2), out.size() / 2));
    EXPECT_EQ(hash_of(out), golden.weighted) << graph::dtype_info(golden.dtype).name;
  }
}

TEST(Quantize, RowsRestartTheImportance) {
  const Floats row = generated_row(), importance = generated_importance();
  Floats twice = row;
  twice.insert(twice.end(), row.begin(), row.end());
  for (const Golden& golden : kGolden) {
    const Bytes out = quantized(golden.dtype, twice, importance);
    const auto middle = out.begin() + static_cast<std::ptrdiff_t>(out.size() / 2);
    EXPECT_EQ(hash_of(Bytes(out.begin(), middle)), golden.weighted) << graph::dtype_info(golden.dtype).name;
    EXPECT_EQ(hash_of(Bytes(middle, out.end())), golden.weighted) << graph::dtype_info(golden.dtype).name;
  }
}

// What blocks give back is near the numbers: half a step of the largest magnitude, or a little more.
TEST(Quantize, BlocksGiveNearlyTheNumbers) {
  const Floats row = generated_row();
  const std::pair<graph::DType, float> bounds[] = {{graph::DType::q8_0, 0.005F}, {graph::DType::q6_k, 0.04F},
                                                   {graph::DType::q5_k, 0.05F},  {graph::DType::q4_k, 0.1F},
                                                   {graph::DType::q4_0, 0.13F},  {graph::DType::q3_k, 0.3F}};
  for (const auto& [dtype, bound] : bounds) {
    Floats back(row.size());
    convert::dequantize(dtype, quantized(dtype, row), back);
    for (std::size_t i = 0; i < row.size(); ++i)
      EXPECT_NEAR(back[i], row[i], bound) << graph::dtype_info(dtype).name << " " << i;
  }
}

}  // namespace

}  // namespace loadline::tests
