// Compares elements one by one; only parts that are known to differ come here.
#include "core/inspect/compare_models.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace loadline::inspect {
namespace {

constexpr std::size_t kAtOnce = 2048;  // elements; a multiple of every block

double as_double(const convert::Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

// |a - b|, for integers before it is rounded.
double distance(const convert::Number& a, const convert::Number& b) {
  return std::visit(
      [&](auto x) {
        using T = decltype(x);
        const T* const y = std::get_if<T>(&b);
        if (y == nullptr) return std::abs(as_double(a) - as_double(b));
        if constexpr (std::is_integral_v<T>) {
          const auto large = static_cast<std::uint64_t>(std::max(x, *y));
          return static_cast<double>(large - static_cast<std::uint64_t>(std::min(x, *y)));
        } else {
          return std::abs(x - *y);
        }
      },
      a);
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

bool is_close(double a, double b, const Tolerance& tolerance) {
  if (a == b) return true;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return false;
  const double gap = std::abs(a - b);
  return gap <= tolerance.absolute || gap <= tolerance.relative * std::max(std::abs(a), std::abs(b));
}

void DifferenceTally::note(std::uint64_t element, const convert::Number& a, const convert::Number& b) {
  if (found_.differing == 0 || element < found_.first) {
    found_.first = element;
    found_.a = a;
    found_.b = b;
  }
  found_.total = 1;
  ++found_.differing;
  const double x = as_double(a), y = as_double(b);
  if (!std::isfinite(x) || !std::isfinite(y)) {
    ++found_.not_finite;
    return;
  }
  const double gap = distance(a, b), size = std::max(std::abs(x), std::abs(y));
  found_.max_absolute = std::max(found_.max_absolute, gap);
  if (size > 0) found_.max_relative = std::max(found_.max_relative, gap / size);
}

void DifferenceTally::add_numbers(std::uint64_t first, std::span<const double> a, std::span<const double> b,
                                  const Tolerance& tolerance) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!is_close(a[i], b[i], tolerance)) note(first + i, a[i], b[i]);
}

void DifferenceTally::add_close(graph::DType dtype, std::uint64_t first, std::uint64_t count,
                                std::span<const std::byte> a, std::span<const std::byte> b,
                                const Tolerance& tolerance) {
  const convert::Numbers numbers(dtype);
  std::array<double, kAtOnce> x, y;
  while (count > 0) {
    const auto elements = static_cast<std::size_t>(std::min<std::uint64_t>(count, kAtOnce));
    const auto bytes = static_cast<std::size_t>(graph::packed_byte_size(dtype, elements).value());
    numbers.read(a.first(bytes), std::span(x).first(elements));
    numbers.read(b.first(bytes), std::span(y).first(elements));
    add_numbers(first, std::span(x).first(elements), std::span(y).first(elements), tolerance);
    a = a.subspan(bytes);
    b = b.subspan(bytes);
    first += elements;
    count -= elements;
  }
}

void DifferenceTally::add_bytes(graph::DType dtype, std::uint64_t first, std::uint64_t count,
                                std::span<const std::byte> a, std::span<const std::byte> b) {
  const graph::DTypeInfo& type = graph::dtype_info(dtype);
  found_.total = 1;
  if (convert::can_measure(dtype))
    add_elements(convert::Numbers(dtype), type, first, count, a, b);
  else
    add_units(first, count, type, a, b);
}

// Blocks, or bytes, without numbers.
void DifferenceTally::add_units(std::uint64_t first, std::uint64_t count, const graph::DTypeInfo& type,
                                std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::size_t bytes = std::max<std::uint32_t>(type.block_bytes, 1);
  const std::uint64_t elements = std::max<std::uint32_t>(type.block_elements, 1);
  found_.unit_elements = elements;
  for (std::uint64_t i = 0; i < count / elements; ++i) {
    const auto at = static_cast<std::size_t>(i) * bytes;
    if (std::memcmp(a.data() + at, b.data() + at, bytes) == 0) continue;
    if (found_.differing++ == 0 || first + i * elements < found_.first) found_.first = first + i * elements;
  }
}

void DifferenceTally::add_elements(const convert::Numbers& numbers, const graph::DTypeInfo& type,
                                   std::uint64_t first, std::uint64_t count, std::span<const std::byte> a,
                                   std::span<const std::byte> b) {
  const std::uint32_t parts = numbers.per_element();
  const std::size_t number_bytes = type.block_bytes / parts;
  const bool exact = type.kind == graph::DTypeKind::integer && type.block_bytes == 8;
  std::array<double, 2 * kAtOnce> x, y;
  while (count > 0) {
    const auto elements = static_cast<std::size_t>(std::min<std::uint64_t>(count, kAtOnce));
    const auto bytes = static_cast<std::size_t>(graph::packed_byte_size(type.id, elements).value());
    const auto part_a = a.first(bytes), part_b = b.first(bytes);
    if (std::memcmp(part_a.data(), part_b.data(), bytes) != 0) {
      const std::size_t total = elements * parts;
      numbers.read(part_a, std::span(x).first(total));
      numbers.read(part_b, std::span(y).first(total));
      for (std::size_t i = 0; i < total; ++i) {
        const bool same = type.block_elements == 1
                              ? std::memcmp(part_a.data() + i * number_bytes,
                                            part_b.data() + i * number_bytes, number_bytes) == 0
                              : same_bits(x[i], y[i]);
        if (same) continue;
        // doubles are quicker, but not exact for every integer
        if (exact || found_.differing == 0)
          note(first + i / parts, numbers.at(part_a, i), numbers.at(part_b, i));
        else
          note(first + i / parts, x[i], y[i]);
        i += parts - 1 - i % parts;  // a complex element counts once
      }
    }
    a = a.subspan(bytes);
    b = b.subspan(bytes);
    first += elements;
    count -= elements;
  }
}

void DifferenceTally::join(const DifferenceTally& other) {
  const ValueDifference& with = other.found_;
  if (with.differing > 0 && (found_.differing == 0 || with.first < found_.first)) {
    found_.first = with.first;
    found_.a = with.a;
    found_.b = with.b;
  }
  found_.total = std::max(found_.total, with.total);
  found_.differing += with.differing;
  found_.unit_elements = std::max(found_.unit_elements, with.unit_elements);
  found_.max_absolute = std::max(found_.max_absolute, with.max_absolute);
  found_.max_relative = std::max(found_.max_relative, with.max_relative);
  found_.not_finite += with.not_finite;
}

std::optional<ValueDifference> DifferenceTally::result(std::uint64_t total) const {
  if (found_.total == 0) return std::nullopt;
  ValueDifference found = found_;
  found.total = total;
  return found;
}

}  // namespace loadline::inspect
