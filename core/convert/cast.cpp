// Scalar conversions that compilers vectorise; every narrowing goes through one rounding.
#include "core/convert/cast.h"

#include "core/convert/half.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace loadline {
namespace {

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

struct F32 {
  using Bits = std::uint32_t;
  static float widen(Bits bits) { return float_of(bits); }
  static Bits narrow(float value) { return bits_of(value); }
};

struct BF16 {
  using Bits = std::uint16_t;
  static float widen(Bits bits) { return float_of(static_cast<std::uint32_t>(bits) << 16); }
  // round to nearest even by adding just under half; NaN would round into infinity, so it is quieted
  static Bits narrow(float value) {
    const std::uint32_t bits = bits_of(value);
    if (value != value) return static_cast<Bits>((bits >> 16) | 0x40u);
    return static_cast<Bits>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
  }
};

struct F16 {
  using Bits = std::uint16_t;
  static float widen(Bits bits) { return half_to_float(bits); }
  static Bits narrow(float value) {
    const std::uint32_t bits = bits_of(value);
    const auto sign = static_cast<std::uint32_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    std::uint32_t result = 0;
    if (magnitude > 0x7F800000u)
      result = 0x7E00u;  // NaN
    else if (magnitude >= 0x477FF000u)
      result = 0x7C00u;  // 65520 and above round to infinity
    else if (magnitude >= 0x38800000u)
      result = (magnitude - (112u << 23) + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
    else  // subnormal: adding 0.5 lets the hardware round to nearest even at 2^-24
      result = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    return static_cast<Bits>(sign | result);
  }
};

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename From, typename To>
void convert(std::span<const std::byte> source, std::span<std::byte> out) {
  using In = typename From::Bits;
  using Out = typename To::Bits;
  const std::size_t count = source.size() / sizeof(In);
  assert(out.size() / sizeof(Out) == count);
  for (std::size_t i = 0; i < count; ++i) {
    const Out bits = To::narrow(From::widen(load<In>(source.data() + i * sizeof(In))));
    std::memcpy(out.data() + i * sizeof(Out), &bits, sizeof bits);
  }
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

// Calls `run` with the C++ type of the target `dtype`.
template <typename Run>
void with_type(DType dtype, Run run) {
  if (dtype == DType::f32) return run(F32());
  if (dtype == DType::f16) return run(F16());
  run(BF16());
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
  with_type(to, [&](auto target) {
    using To = decltype(target);
    if (from == DType::f64) return convert_f64<To>(source, out);
    with_type(from, [&](auto given) { convert<decltype(given), To>(source, out); });
  });
}

}  // namespace loadline
