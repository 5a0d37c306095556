// Converts a group of elements into a small buffer, then puts the numbers in their places.
#include "core/convert/numbers/prepack.h"

#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/quantize.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <limits>

namespace loadline::convert {
namespace {

constexpr std::size_t kGroup = 1024;  // elements; whole blocks of each type

// Numbers of one group in the type that is asked for.
std::size_t convert(const Prepack& how, std::span<const std::byte> source, std::span<std::byte> out) {
  const graph::DTypeInfo& from = graph::dtype_info(how.from);
  const std::size_t count = source.size() / from.block_bytes * from.block_elements;
  const std::span<std::byte> numbers = out.first(count * graph::dtype_info(how.to).block_bytes);
  if (is_cast_target(how.from)) {
    cast(how.from, source, how.to, numbers);
  } else {
    std::array<float, kGroup> wide{};
    const std::span<float> values = std::span(wide).first(count);
    dequantize(how.from, source, values);
    for (float& value : values)
      if (value != value) value = std::numeric_limits<float>::quiet_NaN();
    cast(graph::DType::f32, std::as_bytes(values), how.to, numbers);
  }
  return count;
}

std::uint64_t place_of(const Prepack& how, std::uint64_t row, std::uint64_t column) {
  if (how.layout == PrepackLayout::transposed) return column * how.rows + row;
  return (row / 4 * how.columns + column) * 4 + row % 4;
}

// `Bits` is a number of the target type.
template <typename Bits>
void put(const Prepack& how, std::uint64_t first, std::span<const std::byte> numbers,
         std::span<std::byte> out) {
  std::uint64_t row = first / how.columns, column = first % how.columns;
  for (std::size_t at = 0; at < numbers.size(); at += sizeof(Bits)) {
    const std::uint64_t place = place_of(how, row, column) * sizeof(Bits);
    std::memcpy(out.data() + place, numbers.data() + at, sizeof(Bits));
    if (how.layout == PrepackLayout::four_rows && row + 1 == how.rows && row % 4 < 3)
      std::memset(out.data() + place + sizeof(Bits), 0, (3 - row % 4) * sizeof(Bits));
    if (++column == how.columns) {
      column = 0;
      ++row;
    }
  }
}

}  // namespace

bool can_prepack(graph::DType from, graph::DType to) {
  if (is_cast_target(from)) return is_cast_target(to);
  return to == graph::DType::f16 &&
         (from == graph::DType::q8_0 || from == graph::DType::q4_0 || from == graph::DType::q4_k);
}

std::uint64_t stored_bytes(const Prepack& prepack) {
  const graph::DTypeInfo& info = graph::dtype_info(prepack.from);
  return prepack.elements() / info.block_elements * info.block_bytes;
}

std::uint64_t prepacked_bytes(const Prepack& prepack) {
  const std::uint64_t rows =
      prepack.layout == PrepackLayout::four_rows ? (prepack.rows + 3) / 4 * 4 : prepack.rows;
  return rows * prepack.columns * graph::dtype_info(prepack.to).block_bytes;
}

void prepack(const Prepack& prepack, std::uint64_t first, std::span<const std::byte> source,
             std::span<std::byte> out) {
  assert(can_prepack(prepack.from, prepack.to) && out.size() == prepacked_bytes(prepack));
  const graph::DTypeInfo& from = graph::dtype_info(prepack.from);
  const std::size_t wide = graph::dtype_info(prepack.to).block_bytes;
  const std::size_t group_bytes = kGroup / from.block_elements * from.block_bytes;
  alignas(64) std::array<std::byte, kGroup * sizeof(float)> made;
  for (std::size_t at = 0; at < source.size(); at += group_bytes) {
    const std::size_t count =
        convert(prepack, source.subspan(at, std::min(group_bytes, source.size() - at)), made);
    const std::span<const std::byte> numbers = std::span(made).first(count * wide);
    if (prepack.layout == PrepackLayout::rows)
      std::memcpy(out.data() + first * wide, numbers.data(), numbers.size());
    else if (wide == 2)
      put<std::uint16_t>(prepack, first, numbers, out);
    else
      put<std::uint32_t>(prepack, first, numbers, out);
    first += count;
  }
}

}  // namespace loadline::convert
