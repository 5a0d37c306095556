// Casts of numbers.

#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/kernels.h"
#include "tests/support/vector_targets.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

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

}  // namespace loadline::tests
