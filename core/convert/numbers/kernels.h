// The vectorized loops behind cast() and StatsAccumulator, and their plain definitions.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace loadline::convert {

// --- The vectorized loops of cast() among 16-bit and 32-bit floats.

// As cast(), bit by bit, on every instruction set. Both are one of F32, F16 and BF16 and they differ.
bool cast_floats(graph::DType from, std::span<const std::byte> source, graph::DType to,
                 std::span<std::byte> out);

// --- The vectorized inner loops of StatsAccumulator, and plain versions of them for tests.

// Elements measured at once: the chunk and its working space stay in the nearest cache.
inline constexpr std::size_t kChunk = 4096;
using ZeroBits = std::array<std::uint64_t, kChunk / 64>;  // bit i % 64 of word i / 64: element i is zero

// Extremes and moments of the finite elements among at most kChunk values.
struct Moments {
  std::uint64_t finite = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double squares = 0;  // sum of square distances from the mean
};
Moments joined(const Moments& a, const Moments& b);

struct FloatChunk {
  Moments moments;
  ZeroBits zeros;            // no bits past the end
  bool has_special = false;  // NaN or infinity
  bool has_tiny = false;     // 0 < |x| < 2^-126
};

// Vectorized and plain versions: they may differ in the last digits of mean and squares. At most kChunk
// values.
FloatChunk measure_floats(std::span<const float> values);
FloatChunk measure_floats_plain(std::span<const float> values);

// The positions of zero codes: a code is zero if it has no bit of `mask`.
ZeroBits zero_codes(std::span<const std::uint8_t> codes, std::uint8_t mask);
ZeroBits zero_codes_plain(std::span<const std::uint8_t> codes, std::uint8_t mask);

// The number of set bits in all words, with the machine's population count instruction if it has one.
std::uint64_t count_ones(std::span<const std::uint64_t> words);

}  // namespace loadline::convert
