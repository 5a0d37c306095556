// Copies, casts of doubles, and the choice of the vectorised loops for all else.
#include "core/convert/numbers/cast.h"

#include "core/convert/numbers/cast_kernels.h"
#include "core/convert/numbers/float_bits_2.h"

#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace loadline {
namespace {

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// A double is first rounded to float by round-to-odd, so that only the second rounding decides the result.
float to_float_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || nearest != nearest || std::isinf(value)) return nearest;
  const bool away = std::abs(static_cast<double>(nearest)) > std::abs(value);
  const std::uint32_t toward_zero = bits_of(nearest) - (away ? 1u : 0u);
  return float_of(toward_zero | 1u);
}

template <typename To>
void convert_f64(std::span<const std::byte> source, std::span<std::byte> out) {
  using Out = typename To::Bits;
  for (std::size_t i = 0; i < source.size() / sizeof(double); ++i) {
    const auto value = load<double>(source.data() + i * sizeof(double));
    const Out bits = sizeof(Out) == 4 ? static_cast<Out>(F32::narrow(static_cast<float>(value)))
                                      : To::narrow(to_float_odd(value));
    std::memcpy(out.data() + i * sizeof(Out), &bits, sizeof bits);
  }
}

bool is_cast_target(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace

bool can_cast(DType from, DType to) {
  return from == to || ((is_cast_target(from) || from == DType::f64) && is_cast_target(to));
}

void cast(DType from, std::span<const std::byte> source, DType to, std::span<std::byte> out) {
  assert(can_cast(from, to));
  if (from == to) {
    if (!source.empty()) std::memcpy(out.data(), source.data(), source.size());
    return;
  }
  if (from != DType::f64) return cast_floats(from, source, to, out);
  if (to == DType::f32) return convert_f64<F32>(source, out);
  if (to == DType::f16) return convert_f64<F16>(source, out);
  convert_f64<BF16>(source, out);
}

}  // namespace loadline
