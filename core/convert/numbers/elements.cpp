// Casts of doubles and the choice of a loop; small floats by their definition; elements widened to doubles.
#include "core/convert/numbers/elements.h"

#include "core/convert/numbers/float_bits.h"
#include "core/convert/numbers/kernels.h"
#include "core/convert/numbers/quantize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace loadline::convert {

// --- Copies, casts of doubles, and the choice of the vectorized loops for all else.

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
bool convert_f64(std::span<const std::byte> source, std::span<std::byte> out) {
  using Out = typename To::Bits;
  constexpr Out kMagnitude = static_cast<Out>(static_cast<Out>(-1) / 2);
  bool special = false;
  for (std::size_t i = 0; i < source.size() / sizeof(double); ++i) {
    const auto value = load<double>(source.data() + i * sizeof(double));
    const Out bits = sizeof(Out) == 4 ? static_cast<Out>(F32::narrow(static_cast<float>(value)))
                                      : To::narrow(to_float_odd(value));
    std::memcpy(out.data() + i * sizeof(Out), &bits, sizeof bits);
    special |= (bits & kMagnitude) >= To::kInfinity;
  }
  return special;
}

}  // namespace

bool is_cast_target(graph::DType dtype) {
  return dtype == graph::DType::f32 || dtype == graph::DType::f16 || dtype == graph::DType::bf16;
}

bool can_cast(graph::DType from, graph::DType to) {
  return from == to || ((is_cast_target(from) || from == graph::DType::f64) && is_cast_target(to));
}

bool cast(graph::DType from, std::span<const std::byte> source, graph::DType to, std::span<std::byte> out) {
  assert(can_cast(from, to));
  if (from == to) {
    if (!source.empty()) std::memcpy(out.data(), source.data(), source.size());
    return false;
  }
  if (from != graph::DType::f64) return cast_floats(from, source, to, out);
  if (to == graph::DType::f32) return convert_f64<F32>(source, out);
  if (to == graph::DType::f16) return convert_f64<F16>(source, out);
  return convert_f64<BF16>(source, out);
}

// --- Decodes small floats by their definition and unpacks narrow elements.

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A float of sign, exponent and fraction, without special codes.
double float_value(unsigned code, unsigned exponent_bits, unsigned fraction_bits, int bias) {
  const unsigned fraction = code & ((1u << fraction_bits) - 1);
  const auto exponent = static_cast<int>((code >> fraction_bits) & ((1u << exponent_bits) - 1));
  const unsigned whole = exponent == 0 ? fraction : fraction + (1u << fraction_bits);
  const int power = (exponent == 0 ? 1 : exponent) - bias - static_cast<int>(fraction_bits);
  const double magnitude = std::ldexp(whole, power);
  return ((code >> (exponent_bits + fraction_bits)) & 1) != 0 ? -magnitude : magnitude;
}

// Two's complement of `bits` bits.
double signed_value(unsigned code, unsigned bits) {
  const unsigned low = code & ((1u << bits) - 1), sign = 1u << (bits - 1);
  return static_cast<double>(static_cast<int>(low ^ sign) - static_cast<int>(sign));
}

double code_value(graph::DType dtype, unsigned code) {
  switch (dtype) {
    case graph::DType::boolean:
      return code != 0 ? 1 : 0;
    case graph::DType::u8:
      return code;
    case graph::DType::u4:
      return code & 15;
    case graph::DType::u2:
      return code & 3;
    case graph::DType::i8:
      return signed_value(code, 8);
    case graph::DType::i4:
      return signed_value(code, 4);
    case graph::DType::i2:
      return signed_value(code, 2);
    case graph::DType::f8_e4m3:
      return (code & 0x7F) == 0x7F ? kNaN : float_value(code, 4, 3, 7);
    case graph::DType::f8_e4m3fnuz:
      return code == 0x80 ? kNaN : float_value(code, 4, 3, 8);
    case graph::DType::f8_e5m2:
      if ((code & 0x7F) > 0x7C) return kNaN;
      if ((code & 0x7F) == 0x7C) return (code & 0x80) != 0 ? -kInfinity : kInfinity;
      return float_value(code, 5, 2, 15);
    case graph::DType::f8_e5m2fnuz:
      return code == 0x80 ? kNaN : float_value(code, 5, 2, 16);
    case graph::DType::f8_e8m0:
      return code == 0xFF ? kNaN : std::ldexp(1.0, static_cast<int>(code) - 127);
    case graph::DType::f4_e2m1:
      return float_value(code, 2, 1, 1);
    case graph::DType::f6_e2m3:
      return float_value(code, 2, 3, 1);
    case graph::DType::f6_e3m2:
      return float_value(code, 3, 2, 3);
    default:
      assert(false && "is_code_type was not asked");
      return kNaN;
  }
}

// Unpacks blocks of `kBytes` bytes with `kEach` elements each.
template <std::size_t kEach, std::size_t kBytes>
void unpack(std::span<const std::byte> packed, std::span<std::uint8_t> out) {
  constexpr unsigned kBits = 8 * kBytes / kEach, kMask = (1u << kBits) - 1;
  const auto block = [&](std::size_t number) {
    std::uint32_t whole = 0;
    for (std::size_t i = 0; i < kBytes; ++i)
      whole |= std::to_integer<std::uint32_t>(packed[number * kBytes + i]) << (8 * i);
    return whole;
  };
  const auto code = [&](std::uint32_t whole, std::size_t i) {
    return static_cast<std::uint8_t>((whole >> (kBits * i)) & kMask);
  };
  const std::size_t blocks = out.size() / kEach;
  for (std::size_t number = 0; number < blocks; ++number) {
    const std::uint32_t whole = block(number);
    for (std::size_t i = 0; i < kEach; ++i) out[number * kEach + i] = code(whole, i);
  }
  for (std::size_t i = blocks * kEach; i < out.size(); ++i) out[i] = code(block(blocks), i % kEach);
}

}  // namespace

bool is_code_type(graph::DType dtype) {
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  return info.kind != graph::DTypeKind::block && info.block_elements != 0 &&
         (info.block_elements > 1 || info.block_bytes == 1);
}

std::array<double, 256> code_values(graph::DType dtype) {
  std::array<double, 256> values = {};
  for (unsigned code = 0; code < values.size(); ++code) values[code] = code_value(dtype, code);
  return values;
}

std::array<float, 256> float_code_values(graph::DType dtype) {
  const std::array<double, 256> exact = code_values(dtype);
  std::array<float, 256> values{};
  std::ranges::transform(exact, values.begin(), [](double value) { return static_cast<float>(value); });
  return values;
}

void unpack_codes(graph::DType dtype, std::span<const std::byte> packed, std::span<std::uint8_t> out) {
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  assert(packed.size() / info.block_bytes == (out.size() + info.block_elements - 1) / info.block_elements);
  if (info.block_elements == 1) return unpack<1, 1>(packed, out);
  if (info.block_elements == 2) return unpack<2, 1>(packed, out);
  return info.block_bytes == 1 ? unpack<4, 1>(packed, out) : unpack<4, 3>(packed, out);
}

// --- Widens elements in chunks that stay in the nearest cache.

namespace {

constexpr std::size_t kChunkNumbers = 4096;  // a multiple of every block

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void widen(std::span<const std::byte> bytes, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(load<T>(bytes, i));
}

// The type of the numbers of a complex type; any other type itself.
graph::DType number_type(graph::DType dtype) {
  return dtype == graph::DType::c64    ? graph::DType::f32
         : dtype == graph::DType::c128 ? graph::DType::f64
                                       : dtype;
}

// Types that become floats without loss.
void read_floats(graph::DType dtype, std::span<const std::byte> bytes, std::span<double> out) {
  std::array<float, kChunkNumbers> floats;
  const auto part = std::span(floats).first(out.size());
  if (can_dequantize(dtype)) {
    dequantize(dtype, bytes, part);
  } else {
    cast(dtype, bytes, graph::DType::f32, std::as_writable_bytes(part));
  }
  std::copy(part.begin(), part.end(), out.begin());
}

void read_codes(graph::DType dtype, const std::array<double, 256>& values, std::span<const std::byte> bytes,
                std::span<double> out) {
  std::array<std::uint8_t, kChunkNumbers> codes;
  if (graph::dtype_info(dtype).block_elements == 1)
    std::memcpy(codes.data(), bytes.data(), out.size());
  else
    unpack_codes(dtype, bytes, std::span(codes).first(out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = values[codes[i]];
}

}  // namespace

Numbers::Numbers(graph::DType dtype)
    : dtype_(number_type(dtype)),
      per_element_(graph::dtype_info(dtype).kind == graph::DTypeKind::complex ? 2 : 1) {
  assert(can_measure(dtype));
  if (is_code_type(dtype)) codes_ = code_values(dtype);
}

void Numbers::read(std::span<const std::byte> bytes, std::span<double> out) const {
  const graph::DTypeInfo& info = graph::dtype_info(dtype_);
  while (!out.empty()) {
    const auto part = out.first(std::min(out.size(), kChunkNumbers));
    const auto from =
        bytes.first(static_cast<std::size_t>(graph::packed_byte_size(dtype_, part.size()).value()));
    if (is_code_type(dtype_))
      read_codes(dtype_, codes_, from, part);
    else if (info.kind == graph::DTypeKind::integer && info.block_bytes == 8)
      dtype_ == graph::DType::u64 ? widen<std::uint64_t>(from, part) : widen<std::int64_t>(from, part);
    else if (info.kind == graph::DTypeKind::integer && info.block_bytes == 4)
      dtype_ == graph::DType::u32 ? widen<std::uint32_t>(from, part) : widen<std::int32_t>(from, part);
    else if (info.kind == graph::DTypeKind::integer)
      dtype_ == graph::DType::u16 ? widen<std::uint16_t>(from, part) : widen<std::int16_t>(from, part);
    else if (dtype_ == graph::DType::f64)
      widen<double>(from, part);
    else
      read_floats(dtype_, from, part);
    bytes = bytes.subspan(from.size());
    out = out.subspan(part.size());
  }
}

Number Numbers::at(std::span<const std::byte> bytes, std::size_t i) const {
  const graph::DTypeInfo& info = graph::dtype_info(dtype_);
  if (dtype_ == graph::DType::u64) return load<std::uint64_t>(bytes, i);
  if (dtype_ == graph::DType::i64) return load<std::int64_t>(bytes, i);
  const std::size_t block = i / info.block_elements, within = i % info.block_elements;
  std::array<double, 256> numbers = {};  // no block has more
  read(bytes.subspan(block * info.block_bytes, info.block_bytes),
       std::span(numbers).first(info.block_elements));
  const double value = numbers[within];
  if (info.kind == graph::DTypeKind::boolean) return static_cast<std::uint64_t>(value);
  if (info.kind != graph::DTypeKind::integer) return value;
  return info.name.front() == 'U' ? Number(static_cast<std::uint64_t>(value))
                                  : Number(static_cast<std::int64_t>(value));
}

}  // namespace loadline::convert
