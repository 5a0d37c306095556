// Decodes small floats by their definition and unpacks narrow elements.
#include "core/convert/numbers/codes.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace loadline {
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

double code_value(DType dtype, unsigned code) {
  switch (dtype) {
    case DType::boolean:
      return code != 0 ? 1 : 0;
    case DType::u8:
      return code;
    case DType::u4:
      return code & 15;
    case DType::u2:
      return code & 3;
    case DType::i8:
      return signed_value(code, 8);
    case DType::i4:
      return signed_value(code, 4);
    case DType::i2:
      return signed_value(code, 2);
    case DType::f8_e4m3:
      return (code & 0x7F) == 0x7F ? kNaN : float_value(code, 4, 3, 7);
    case DType::f8_e4m3fnuz:
      return code == 0x80 ? kNaN : float_value(code, 4, 3, 8);
    case DType::f8_e5m2:
      if ((code & 0x7F) > 0x7C) return kNaN;
      if ((code & 0x7F) == 0x7C) return (code & 0x80) != 0 ? -kInfinity : kInfinity;
      return float_value(code, 5, 2, 15);
    case DType::f8_e5m2fnuz:
      return code == 0x80 ? kNaN : float_value(code, 5, 2, 16);
    case DType::f8_e8m0:
      return code == 0xFF ? kNaN : std::ldexp(1.0, static_cast<int>(code) - 127);
    case DType::f4_e2m1:
      return float_value(code, 2, 1, 1);
    case DType::f6_e2m3:
      return float_value(code, 2, 3, 1);
    case DType::f6_e3m2:
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

bool is_code_type(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return info.kind != DTypeKind::block && info.block_elements != 0 &&
         (info.block_elements > 1 || info.block_bytes == 1);
}

std::array<double, 256> code_values(DType dtype) {
  std::array<double, 256> values = {};
  for (unsigned code = 0; code < values.size(); ++code) values[code] = code_value(dtype, code);
  return values;
}

std::array<float, 256> float_code_values(DType dtype) {
  const std::array<double, 256> exact = code_values(dtype);
  std::array<float, 256> values{};
  std::ranges::transform(exact, values.begin(), [](double value) { return static_cast<float>(value); });
  return values;
}

void unpack_codes(DType dtype, std::span<const std::byte> packed, std::span<std::uint8_t> out) {
  const DTypeInfo& info = dtype_info(dtype);
  assert(packed.size() / info.block_bytes == (out.size() + info.block_elements - 1) / info.block_elements);
  if (info.block_elements == 1) return unpack<1, 1>(packed, out);
  if (info.block_elements == 2) return unpack<2, 1>(packed, out);
  return info.block_bytes == 1 ? unpack<4, 1>(packed, out) : unpack<4, 3>(packed, out);
}

}  // namespace loadline
