// What the values of a tensor are like: extremes, moments, zeros, sparsity and magnitudes, in one pass.
#pragma once

#include "core/graph/dtype.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

namespace loadline {

// Exact for its type: floats and blocks as double, signed integers as int64, unsigned ones and bool as
// uint64.
using Number = std::variant<double, std::int64_t, std::uint64_t>;

// Octaves of |x|, the same for every tensor so that one pass is enough: octave k holds 2^k <= |x| < 2^(k+1).
// What is smaller than the first (subnormals of f32 and bf16) is in the first, what is larger than the last
// in the last.
inline constexpr int kFirstOctave = -127;
inline constexpr int kLastOctave = 127;
inline constexpr std::size_t kOctaves = kLastOctave - kFirstOctave + 1;
using OctaveCounts = std::array<std::uint64_t, kOctaves>;  // [i]: octave kFirstOctave + i

// A complex number counts as two elements. Extremes and moments are over the finite elements.
struct ValueStats {
  std::uint64_t count = 0;  // of all elements: zeros + nans + infs + the octaves
  std::uint64_t zeros = 0;  // of either sign
  std::uint64_t nans = 0;
  std::uint64_t positive_infs = 0;
  std::uint64_t negative_infs = 0;
  // Nothing where no element is finite. A zero is +0, whatever its sign was.
  std::optional<Number> min;
  std::optional<Number> max;
  double mean = 0;
  double deviation = 0;  // of the population: the root of the mean square distance from the mean
  // Groups of four elements that follow each other, from the first on; sparse: at least two are zero. What is
  // left at the end is no group.
  std::uint64_t groups = 0;
  std::uint64_t sparse_groups = 0;
  OctaveCounts positive = {};  // of finite elements > 0
  OctaveCounts negative = {};  // and < 0

  std::uint64_t infs() const { return positive_infs + negative_infs; }
  std::uint64_t finite() const { return count - nans - infs(); }
};

// Every type but opaque bytes, text and the blocks that dequantize() does not know.
bool can_measure(DType dtype);

// Gathers the statistics of one stream of values. Uses the widest vectors that the machine has: counts,
// extremes and octaves do not depend on them; the mean and the deviation may differ from a sum in another
// order by 1e-12 of the largest magnitude. Sums are of doubles, chunk by chunk about each chunk's own mean,
// joined after Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979. F64 values above 1e150 may overflow them: mean and deviation are then infinite or NaN.
class StatsAccumulator {
 public:
  // The dtype must satisfy can_measure.
  explicit StatsAccumulator(DType dtype);
  ~StatsAccumulator();
  StatsAccumulator(StatsAccumulator&&) noexcept;
  StatsAccumulator& operator=(StatsAccumulator&&) noexcept;

  // Whole elements, or whole blocks of a type that has them; need not be aligned.
  void add(std::span<const std::byte> bytes);
  // The same without the last elements of the last block: what fills up the byte after an odd number of
  // nibbles. Only as the last piece.
  void add(std::span<const std::byte> bytes, std::uint64_t elements);
  ValueStats result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loadline
