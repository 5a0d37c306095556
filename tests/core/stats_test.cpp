// Statistics and dequantisation against plain definitions and gguf-py's results.
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/float_bits.h"
#include "core/convert/numbers/kernels.h"
#include "core/convert/numbers/quantize.h"
#include "core/convert/numbers/statistics.h"
#include "tests/support/vector_targets.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace loadline {
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
Bytes generated_blocks(DType dtype, std::size_t blocks) {
  Bytes bytes(blocks * dtype_info(dtype).block_bytes);
  std::uint32_t state = 12345;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

std::vector<float> dequantized(DType dtype, const Bytes& blocks) {
  std::vector<float> out(blocks.size() / dtype_info(dtype).block_bytes * dtype_info(dtype).block_elements);
  dequantize(dtype, blocks, out);
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

// --- dequantisation

// Hashes of gguf.quants.dequantize of gguf-py 0.19 over 64 generated blocks.
const std::map<DType, std::uint64_t> kReference = {
    {DType::q4_0, 0xF0578C343661FA24},    {DType::q4_1, 0xBF1983FAD454EC96},
    {DType::q5_0, 0xD3338D5D3CDC89BE},    {DType::q5_1, 0xC5937C551E9C8864},
    {DType::q8_0, 0xBD33EE8125F4A202},    {DType::q2_k, 0x60C9992F2D89D764},
    {DType::q3_k, 0xBDCA013DEDD31A3E},    {DType::q4_k, 0xE733CDD4DE7DA261},
    {DType::q5_k, 0x9FED6B798F66E22E},    {DType::q6_k, 0xDB6E56A0A8443E8A},
    {DType::iq4_nl, 0xB5B372EF73BD9E61},  {DType::iq4_xs, 0x21AE6CBC7518A30C},
    {DType::tq1_0, 0x06B6F052A26641F7},   {DType::tq2_0, 0x54ABF92F016893D6},
    {DType::mxfp4, 0x172926FF04D1B11E},   {DType::nvfp4, 0xD3DD393F0446E03C},
    {DType::iq2_xxs, 0xBF71527FA5A58710}, {DType::iq2_xs, 0xF275950FA8426ADA},
    {DType::iq2_s, 0x9B44E62526A2229C},   {DType::iq3_xxs, 0xFF2F9EB6CEDAB037},
    {DType::iq3_s, 0x6722C0DC2F6EB3EC},   {DType::iq1_s, 0x2F82DE64C9955C7B},
    {DType::iq1_m, 0x452AC811B77E69D7}};

TEST(Dequantize, EqualsGgufPyBitForBitOnEveryVectorTarget) {
  testing::for_each_vector_target([](const char* target) {
    for (const auto& [dtype, hash] : kReference)
      EXPECT_EQ(hash_of(dequantized(dtype, generated_blocks(dtype, 64))), hash)
          << dtype_info(dtype).name << " with " << target;
  });
}

TEST(Dequantize, SaysWhichTypesItKnows) {
  int known = 0;
  for (const DTypeInfo& info : dtype_table()) {
    if (can_dequantize(info.id)) ++known;
    if (info.kind != DTypeKind::block) EXPECT_FALSE(can_dequantize(info.id)) << info.name;
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
    const float d = half_to_float(static_cast<std::uint16_t>(byte(0) | byte(1) << 8));
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
    const Bytes ones = generated_blocks(DType::q1_0, 64), pairs = generated_blocks(DType::q2_0, 64);
    EXPECT_EQ(hash_of(dequantized(DType::q1_0, ones)), hash_of(as_ggml_reads(ones, 1))) << target;
    EXPECT_EQ(hash_of(dequantized(DType::q2_0, pairs)), hash_of(as_ggml_reads(pairs, 2))) << target;
  });
}

TEST(Dequantize, BlocksByHand) {
  // d = 1 (0x3C00): elements 0, 1 and 8 are set; numbers 3, 0, 0, 0 and then 1s
  const auto q1_0 = dequantized(DType::q1_0, block({{0x00, 1}, {0x3C, 1}, {0x03, 1}, {0x01, 1}, {0, 14}}));
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(q1_0[i], i < 2 || i == 8 ? 1.0f : -1.0f) << i;
  const auto pq2_0 = dequantized(DType::pq2_0, block({{0x00, 1}, {0x3C, 1}, {0x55, 31}, {0x80, 1}}));
  EXPECT_EQ(pq2_0[0], 0.0f);
  EXPECT_EQ(pq2_0[124], -1.0f);
  EXPECT_EQ(pq2_0[127], 1.0f);
  const auto q2_0 = dequantized(DType::q2_0, block({{0x00, 1}, {0x3C, 1}, {0x03, 1}, {0x55, 15}}));
  EXPECT_EQ(q2_0[0], 2.0f);
  EXPECT_EQ(q2_0[1], -1.0f);
  EXPECT_EQ(q2_0[4], 0.0f);

  // d = 0.5 (0x3800); low nibbles 9, high nibbles 6
  const auto q4_0 = dequantized(DType::q4_0, block({{0x00, 1}, {0x38, 1}, {0x69, 16}}));
  EXPECT_EQ(q4_0[0], 0.5f);
  EXPECT_EQ(q4_0[15], 0.5f);
  EXPECT_EQ(q4_0[16], -1.0f);
  // the same with a minimum of 1 (0x3C00)
  const auto q4_1 = dequantized(DType::q4_1, block({{0x00, 1}, {0x38, 1}, {0x00, 1}, {0x3C, 1}, {0x69, 16}}));
  EXPECT_EQ(q4_1[0], 5.5f);
  EXPECT_EQ(q4_1[31], 4.0f);
  // the fifth bit of element 0 alone
  const auto q5_0 = dequantized(DType::q5_0, block({{0x00, 1}, {0x38, 1}, {0x01, 1}, {0, 3}, {0x69, 16}}));
  EXPECT_EQ(q5_0[0], 0.5f * (9 + 16 - 16));
  EXPECT_EQ(q5_0[1], 0.5f * (9 - 16));
  // Q8_1 has a sum between scale and numbers, Q8_K a float scale and 16 sums behind
  const auto q8_1 = dequantized(DType::q8_1, block({{0x00, 1}, {0x38, 1}, {0x77, 2}, {0x80, 32}}));
  EXPECT_EQ(q8_1[31], -64.0f);
  const auto q8_k = dequantized(DType::q8_k, block({{0, 2}, {0x80, 1}, {0x3E, 1}, {0x7F, 256}, {0x11, 32}}));
  EXPECT_EQ(q8_k[0], 127 * 0.25f);
  EXPECT_EQ(q8_k[255], 127 * 0.25f);
  // 2^(0x7F - 128) = 0.5; code 7 is 12, code 0xF is -12
  const auto mxfp4 = dequantized(DType::mxfp4, block({{0x7F, 1}, {0xF7, 16}}));
  EXPECT_EQ(mxfp4[0], 6.0f);
  EXPECT_EQ(mxfp4[16], -6.0f);
  // the constant block of ones: d s = 1/15 each, all minima 0, all numbers 15
  const auto q4_k = dequantized(
      DType::q4_k, block({{0x56, 1}, {0x14, 1}, {0, 2}, {0xFF, 4}, {0, 4}, {0x0F, 4}, {0xFF, 128}}));
  for (const float value : q4_k) EXPECT_NEAR(value, 1.0f, 1e-3f);
}

// --- codes

TEST(Codes, SmallFloatsByTheirSpecifications) {
  const auto e4m3 = code_values(DType::f8_e4m3), e5m2 = code_values(DType::f8_e5m2);
  const auto fnuz = code_values(DType::f8_e4m3fnuz), fnuz5 = code_values(DType::f8_e5m2fnuz);
  EXPECT_EQ(e4m3[0x7E], 448);
  EXPECT_EQ(e4m3[0x01], 0x1p-9);
  EXPECT_TRUE(std::isnan(e4m3[0x7F]) && std::isnan(e4m3[0xFF]));
  EXPECT_EQ(e5m2[0x7B], 57344);
  EXPECT_EQ(e5m2[0xFC], -INFINITY);
  EXPECT_TRUE(std::isnan(e5m2[0x7D]));
  EXPECT_EQ(fnuz[0x7F], 240);
  EXPECT_TRUE(std::isnan(fnuz[0x80]) && std::isnan(fnuz5[0x80]));
  EXPECT_EQ(fnuz5[0x7F], 57344);
  EXPECT_EQ(code_values(DType::f8_e8m0)[127], 1);
  EXPECT_EQ(code_values(DType::f8_e8m0)[0], 0x1p-127);
  EXPECT_EQ(code_values(DType::f4_e2m1)[7], 6);
  EXPECT_EQ(code_values(DType::f4_e2m1)[9], -0.5);
  EXPECT_EQ(code_values(DType::f6_e2m3)[31], 7.5);
  EXPECT_EQ(code_values(DType::f6_e3m2)[31], 28);
  EXPECT_EQ(code_values(DType::i4)[15], -1);
  EXPECT_EQ(code_values(DType::i2)[2], -2);
  EXPECT_EQ(code_values(DType::i8)[0x80], -128);
  EXPECT_EQ(code_values(DType::boolean)[7], 1);
}

TEST(Codes, NarrowElementsLieLowestBitsFirst) {
  const Bytes bytes = block({{0x21, 1}, {0x43, 1}, {0x65, 1}});
  std::vector<std::uint8_t> nibbles(5), pairs(12), sixes(4);
  unpack_codes(DType::u4, bytes, nibbles);
  EXPECT_EQ(nibbles, (std::vector<std::uint8_t>{1, 2, 3, 4, 5}));
  unpack_codes(DType::u2, bytes, pairs);
  EXPECT_EQ(pairs, (std::vector<std::uint8_t>{1, 0, 2, 0, 3, 0, 0, 1, 1, 1, 2, 1}));
  unpack_codes(DType::f6_e2m3, bytes, sixes);  // 0x654321
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

std::vector<double> decoded(DType dtype, const Bytes& bytes) {
  std::vector<double> values;
  switch (dtype) {
    case DType::f32:
    case DType::c64:
      return numbers<float>(bytes);
    case DType::f64:
    case DType::c128:
      return numbers<double>(bytes);
    case DType::i16:
      return numbers<std::int16_t>(bytes);
    case DType::u16:
      return numbers<std::uint16_t>(bytes);
    case DType::i32:
      return numbers<std::int32_t>(bytes);
    case DType::u32:
      return numbers<std::uint32_t>(bytes);
    case DType::i64:
      return numbers<std::int64_t>(bytes);
    case DType::u64:
      return numbers<std::uint64_t>(bytes);
    case DType::f16:
      for (const double bits : numbers<std::uint16_t>(bytes))
        values.push_back(half_by_definition(static_cast<std::uint32_t>(bits)));
      return values;
    case DType::bf16:
      for (const double bits : numbers<std::uint16_t>(bytes))
        values.push_back(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)));
      return values;
    default:
      break;
  }
  if (is_code_type(dtype)) {
    std::vector<std::uint8_t> codes(bytes.size() / dtype_info(dtype).block_bytes *
                                    dtype_info(dtype).block_elements);
    unpack_codes(dtype, bytes, codes);
    const auto table = code_values(dtype);
    for (const std::uint8_t code : codes) values.push_back(table[code]);
    return values;
  }
  for (const float value : dequantized(dtype, bytes)) values.push_back(static_cast<double>(value));
  return values;
}

double as_double(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

// The definition of every figure, element by element.
void expect_measured(const std::vector<double>& values, const ValueStats& stats, const std::string& what) {
  ValueStats expected;
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
        const int octave = std::clamp(std::ilogb(value), kFirstOctave, kLastOctave);
        ++(value > 0 ? expected.positive
                     : expected.negative)[static_cast<std::size_t>(octave - kFirstOctave)];
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

ValueStats measured(DType dtype, std::span<const std::byte> bytes) {
  StatsAccumulator stats(dtype);
  stats.add(bytes);
  return stats.result();
}

// Random bits with runs of zero bytes; doubles stay where sums of squares do not overflow.
Bytes sample_bytes(DType dtype, std::size_t blocks, std::uint64_t seed) {
  Bytes bytes = random_bytes(blocks * dtype_info(dtype).block_bytes, seed);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if ((i / 24) % 3 == 1) bytes[i] = std::byte{0};
  if (dtype == DType::f64 || dtype == DType::c128)
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
  for (const DTypeInfo& info : dtype_table()) {
    if (!can_measure(info.id)) continue;
    ++measured_types;
    for (const std::size_t blocks : {std::size_t{1}, std::size_t{3}, std::size_t{67}, std::size_t{9001}}) {
      const Bytes bytes = sample_bytes(info.id, blocks, 11 + blocks);
      expect_measured(decoded(info.id, bytes), measured(info.id, bytes),
                      std::string(info.name) + " x " + std::to_string(blocks));
    }
  }
  EXPECT_EQ(measured_types, kDTypeCount - 2);  // all but opaque and text
}

TEST(Stats, EveryPatternOfSixteenAndEightBits) {
  Bytes bytes(65536 * 2);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(bytes.data() + std::size_t{2} * i, &bits, 2);
  }
  expect_measured(decoded(DType::f16, bytes), measured(DType::f16, bytes), "f16");
  expect_measured(decoded(DType::bf16, bytes), measured(DType::bf16, bytes), "bf16");
  Bytes codes(256);
  for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::byte>(i);
  for (const DType dtype : {DType::f8_e4m3, DType::f8_e4m3fnuz, DType::f8_e5m2, DType::f8_e5m2fnuz,
                            DType::f8_e8m0, DType::i8, DType::u8, DType::boolean})
    expect_measured(decoded(dtype, codes), measured(dtype, codes), std::string(dtype_info(dtype).name));
}

TEST(Stats, NumbersKeepTheirTypesAndAllTheirBits) {
  const std::int64_t signed_values[] = {INT64_MIN, INT64_MAX, (std::int64_t{1} << 53) - 1, -1};
  const ValueStats i64 = measured(DType::i64, std::as_bytes(std::span(signed_values)));
  EXPECT_EQ(i64.min, Number(INT64_MIN));
  EXPECT_EQ(i64.max, Number(INT64_MAX));
  EXPECT_EQ(i64.positive[52 - kFirstOctave], 1u);
  EXPECT_EQ(i64.positive[62 - kFirstOctave], 1u);
  EXPECT_EQ(i64.negative[63 - kFirstOctave], 1u);
  EXPECT_EQ(i64.negative[0 - kFirstOctave], 1u);
  const std::uint64_t unsigned_values[] = {UINT64_MAX, 1};
  const ValueStats u64 = measured(DType::u64, std::as_bytes(std::span(unsigned_values)));
  EXPECT_EQ(u64.max, Number(UINT64_MAX));
  EXPECT_EQ(u64.min, Number(std::uint64_t{1}));
  EXPECT_EQ(u64.positive[63 - kFirstOctave], 1u);
  const std::uint8_t flags[] = {0, 1, 7};
  EXPECT_EQ(measured(DType::boolean, std::as_bytes(std::span(flags))).max, Number(std::uint64_t{1}));
  const std::int8_t small[] = {-128, 127};
  EXPECT_EQ(measured(DType::i8, std::as_bytes(std::span(small))).min, Number(std::int64_t{-128}));
}

TEST(Stats, NothingFiniteAndNothingAtAll) {
  const ValueStats none = measured(DType::f32, {});
  EXPECT_EQ(none.count, 0u);
  EXPECT_FALSE(none.min || none.max);
  const float odd[] = {NAN, INFINITY, -INFINITY, -NAN};
  const ValueStats special = measured(DType::f32, std::as_bytes(std::span(odd)));
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
  const ValueStats stats = measured(DType::f32, std::as_bytes(std::span(values)));
  EXPECT_DOUBLE_EQ(stats.mean, 1e7);
  EXPECT_NEAR(stats.deviation, 1.0, 1e-9);
}

TEST(Stats, PiecesEqualTheWhole) {
  for (const DType dtype :
       {DType::f32, DType::bf16, DType::f64, DType::i8, DType::i64, DType::u4, DType::q4_0}) {
    const DTypeInfo& info = dtype_info(dtype);
    const Bytes bytes = sample_bytes(dtype, 20'000, 5);
    StatsAccumulator pieces(dtype);
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
  StatsAccumulator stats(DType::u4);
  stats.add(bytes, 5);
  EXPECT_EQ(stats.result().count, 5u);
  EXPECT_EQ(stats.result().max, Number(std::uint64_t{5}));
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
    for (std::size_t count = 0; count <= kChunk; count += count < 200 ? 1 : 389) {
      std::vector<float> values = awkward_floats(count, count);
      if (count % 3 == 0)  // nothing special: the shorter way through
        for (float& value : values)
          if (!std::isfinite(value)) value = 1;
      const FloatChunk plain = measure_floats_plain(values), vectors = measure_floats(values);
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
        ASSERT_EQ(zero_codes_plain(coded, mask), zero_codes(coded, mask)) << target << ' ' << count;
    }
  });
}

}  // namespace
}  // namespace loadline
