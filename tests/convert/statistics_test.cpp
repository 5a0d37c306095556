// Numbers as they are stored: dequantization and statistics.

#include "core/convert/numbers/statistics.h"

#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/float_bits.h"
#include "core/convert/numbers/kernels.h"
#include "core/convert/numbers/quantize.h"
#include "tests/support/vector_targets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

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

}  // namespace loadline::tests
