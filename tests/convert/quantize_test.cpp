// Quantizers.

#include "core/convert/numbers/quantize.h"

#include "core/convert/numbers/elements.h"
#include "tests/support/vector_targets.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- Quantizers against hashes of what ggml's reference gives, and vector code against the plain definition.

namespace {

using Bytes = std::vector<std::byte>;
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
