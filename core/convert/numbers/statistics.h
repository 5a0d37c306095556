// Statistics of a tensor's values in one pass: extremes, moments, zeros, sparsity and magnitudes.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

namespace loadline::convert {

// An exact value: double for floats and blocks, int64 for signed integers, uint64 for unsigned integers and
// bool.
using Number = std::variant<double, std::int64_t, std::uint64_t>;

// Octaves of |x|: octave k holds 2^k <= |x| < 2^(k+1). They are the same for every tensor, so that one pass
// is enough. Values below the first octave (subnormals of f32 and bf16) count in the first, values above the
// last in the last.
inline constexpr int kFirstOctave = -127;
inline constexpr int kLastOctave = 127;
inline constexpr std::size_t kOctaves = kLastOctave - kFirstOctave + 1;
using OctaveCounts = std::array<std::uint64_t, kOctaves>;  // [i]: octave kFirstOctave + i

// A complex number counts as two elements. Extremes and moments are over the finite elements.
struct ValueStats {
  std::uint64_t count = 0;  // all elements: zeros + nans + infs + the octaves
  std::uint64_t zeros = 0;  // of either sign
  std::uint64_t nans = 0;
  std::uint64_t positive_infs = 0;
  std::uint64_t negative_infs = 0;
  // Nothing if no element is finite. A zero is reported as +0.
  std::optional<Number> min;
  std::optional<Number> max;
  double mean = 0;
  double deviation = 0;  // population standard deviation
  // Groups of four consecutive elements, counted from the first; a rest at the end is no group. A group is
  // sparse if at least two of its elements are zero (2:4 sparsity).
  std::uint64_t groups = 0;
  std::uint64_t sparse_groups = 0;
  OctaveCounts positive = {};  // of finite elements > 0
  OctaveCounts negative = {};  // of finite elements < 0

  std::uint64_t infs() const { return positive_infs + negative_infs; }
  std::uint64_t finite() const { return count - nans - infs(); }
};

// True for every type except opaque bytes, text and the block types that dequantize() does not know.
bool can_measure(graph::DType dtype);

// Gathers the statistics of one stream of values with the machine's widest vectors. Counts, extremes and
// octaves do not depend on the vector width. Mean and deviation may differ from a sum in another order by
// 1e-12 of the largest magnitude. Sums use doubles, chunk by chunk about each chunk's own mean, and are
// joined after Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979. F64 values above 1e150 may overflow the sums: mean and deviation are then infinite or
// NaN.
class StatsAccumulator {
 public:
  // The dtype must satisfy can_measure.
  explicit StatsAccumulator(graph::DType dtype);
  ~StatsAccumulator();
  StatsAccumulator(StatsAccumulator&&) noexcept;
  StatsAccumulator& operator=(StatsAccumulator&&) noexcept;

  // Adds whole elements, or whole blocks of a block type. `bytes` need not be aligned.
  void add(std::span<const std::byte> bytes);
  // Adds only the first `elements` elements of `bytes`: the last byte of an odd number of nibbles has
  // padding. Allowed for the last piece only.
  void add(std::span<const std::byte> bytes, std::uint64_t elements);
  ValueStats result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loadline::convert
