// Adds up how two streams of elements differ.
#pragma once

#include "core/convert/numbers/elements.h"
#include "core/inspect/compare_models.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline {

// Gathers the difference of a part of a pair. For one thread.
class DifferenceTally {
 public:
  // Elements [first, first + count) of the same type, whose bytes differ somewhere. `count` elements take
  // whole blocks. An element differs if its bytes do; in a block, if its value does.
  void add_bytes(DType dtype, std::uint64_t first, std::uint64_t count, std::span<const std::byte> a,
                 std::span<const std::byte> b);
  // Numbers of weights that are compared as numbers. Counts those that are not close.
  void add_numbers(std::uint64_t first, std::span<const double> a, std::span<const double> b,
                   const Tolerance& tolerance);
  // The same for elements that are compared as numbers.
  void add_close(DType dtype, std::uint64_t first, std::uint64_t count, std::span<const std::byte> a,
                 std::span<const std::byte> b, const Tolerance& tolerance);
  // That bytes differ of which no element may.
  void add_hidden() { found_.total = 1; }

  // The tally of two parts of one weight.
  void join(const DifferenceTally& other);
  // Nothing if nothing differs.
  std::optional<ValueDifference> result(std::uint64_t total) const;

 private:
  void note(std::uint64_t element, const Number& a, const Number& b);
  void add_units(std::uint64_t first, std::uint64_t count, const DTypeInfo& type,
                 std::span<const std::byte> a, std::span<const std::byte> b);
  void add_elements(const Numbers& numbers, const DTypeInfo& type, std::uint64_t first, std::uint64_t count,
                    std::span<const std::byte> a, std::span<const std::byte> b);

  ValueDifference found_;  // `total` is not 0 once anything differs
};

}  // namespace loadline
