// Two models value by value, and the tally of a difference.
#pragma once

#include "core/base/progress.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/statistics.h"
#include "core/inspect/model_differences.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::inspect {

// --- Compares two models weight by weight: shapes, types and values.

// Two numbers are close if |a - b| is at most `absolute`, or at most `relative` times the larger magnitude.
// Equal numbers are close, also infinities of one sign, and zeros of either sign. NaN is close to NaN only.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};
bool is_close(double a, double b, const Tolerance& tolerance);

struct CompareOptions {
  bool values = true;
  // Without it weights must have the same type and the same bytes. With it, floating point weights, quantized
  // blocks and packed weights of any type are compared as numbers; all other types must have the same bytes.
  std::optional<Tolerance> tolerance = {};
};

// How the values of a pair differ.
struct ValueDifference {
  std::uint64_t total = 0;      // elements of the weight
  std::uint64_t differing = 0;  // elements that differ; 0 if only the bytes of equal numbers do
  // The first of these elements in C order, and its numbers: of a complex element, the part that differs.
  // Without numbers for text and types whose values are not known: then `unit_elements` elements, a block or
  // a byte of an unknown type, count as one, and `first` is the first of them.
  std::uint64_t first = 0;
  std::optional<convert::Number> a, b;
  std::uint64_t unit_elements = 1;
  // Largest |a - b|, and largest |a - b| / max(|a|, |b|), where both numbers are finite.
  double max_absolute = 0, max_relative = 0;
  // Elements that are NaN or infinite in one model and differ.
  std::uint64_t not_finite = 0;
};

enum class PairState : std::uint8_t {
  equal,
  other_shape,
  other_type,
  other_values,
  refused,     // the values cannot be compared
  not_looked,  // values were not asked for
};

struct PairResult {
  PairState state = PairState::not_looked;
  std::optional<ValueDifference> difference;
  std::string refusal;
};

struct Comparison {
  Matching match;
  std::vector<PairResult> results;  // parallel to match.pairs
  std::uint64_t bytes = 0;          // of A's weights that were compared
  std::uint64_t bytes_read = 0;     // of both models; bytes of one file, or of tied weights, are read once
  std::uint64_t count(PairState state) const;
};

// Reads both models in a fixed memory, on several threads. Throws Error{io | malformed} if a file cannot be
// read or decoded, and Error{canceled}.
Comparison compare_models(const graph::MetaGraphPtr& a, const graph::MetaGraphPtr& b,
                          const CompareOptions& options, Progress& progress);
// With the weights to compare, as match_weights() pairs them.
Comparison compare_models(const graph::MetaGraphPtr& a, const graph::MetaGraphPtr& b, Matching match,
                          const CompareOptions& options, Progress& progress);

// --- Adds up how two streams of elements differ.

// Gathers the difference of a part of a pair. For one thread.
class DifferenceTally {
 public:
  // Elements [first, first + count) of the same type, whose bytes differ somewhere. `count` elements take
  // whole blocks. An element differs if its bytes do; in a block, if its value does.
  void add_bytes(graph::DType dtype, std::uint64_t first, std::uint64_t count, std::span<const std::byte> a,
                 std::span<const std::byte> b);
  // Numbers of weights that are compared as numbers. Counts those that are not close.
  void add_numbers(std::uint64_t first, std::span<const double> a, std::span<const double> b,
                   const Tolerance& tolerance);
  // The same for elements that are compared as numbers.
  void add_close(graph::DType dtype, std::uint64_t first, std::uint64_t count, std::span<const std::byte> a,
                 std::span<const std::byte> b, const Tolerance& tolerance);
  // That bytes differ of which no element may.
  void add_hidden() { found_.total = 1; }

  // The tally of two parts of one weight.
  void join(const DifferenceTally& other);
  // Nothing if nothing differs.
  std::optional<ValueDifference> result(std::uint64_t total) const;

 private:
  void note(std::uint64_t element, const convert::Number& a, const convert::Number& b);
  void add_units(std::uint64_t first, std::uint64_t count, const graph::DTypeInfo& type,
                 std::span<const std::byte> a, std::span<const std::byte> b);
  void add_elements(const convert::Numbers& numbers, const graph::DTypeInfo& type, std::uint64_t first,
                    std::uint64_t count, std::span<const std::byte> a, std::span<const std::byte> b);

  ValueDifference found_;  // `total` is not 0 once anything differs
};

}  // namespace loadline::inspect
