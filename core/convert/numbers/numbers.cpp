// Widens elements in chunks that stay in the nearest cache.
#include "core/convert/numbers/cast.h"
#include "core/convert/numbers/codes.h"
#include "core/convert/numbers/dequantize.h"
#include "core/convert/numbers/elements.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace loadline {
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
DType number_type(DType dtype) {
  return dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
}

// Types that become floats without loss.
void read_floats(DType dtype, std::span<const std::byte> bytes, std::span<double> out) {
  std::array<float, kChunkNumbers> floats;
  const auto part = std::span(floats).first(out.size());
  if (can_dequantize(dtype)) {
    dequantize(dtype, bytes, part);
  } else {
    cast(dtype, bytes, DType::f32, std::as_writable_bytes(part));
  }
  std::copy(part.begin(), part.end(), out.begin());
}

void read_codes(DType dtype, const std::array<double, 256>& values, std::span<const std::byte> bytes,
                std::span<double> out) {
  std::array<std::uint8_t, kChunkNumbers> codes;
  if (dtype_info(dtype).block_elements == 1)
    std::memcpy(codes.data(), bytes.data(), out.size());
  else
    unpack_codes(dtype, bytes, std::span(codes).first(out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = values[codes[i]];
}

}  // namespace

Numbers::Numbers(DType dtype)
    : dtype_(number_type(dtype)), per_element_(dtype_info(dtype).kind == DTypeKind::complex ? 2 : 1) {
  assert(can_measure(dtype));
  if (is_code_type(dtype)) codes_ = code_values(dtype);
}

void Numbers::read(std::span<const std::byte> bytes, std::span<double> out) const {
  const DTypeInfo& info = dtype_info(dtype_);
  while (!out.empty()) {
    const auto part = out.first(std::min(out.size(), kChunkNumbers));
    const auto from = bytes.first(static_cast<std::size_t>(packed_byte_size(dtype_, part.size()).value()));
    if (is_code_type(dtype_))
      read_codes(dtype_, codes_, from, part);
    else if (info.kind == DTypeKind::integer && info.block_bytes == 8)
      dtype_ == DType::u64 ? widen<std::uint64_t>(from, part) : widen<std::int64_t>(from, part);
    else if (info.kind == DTypeKind::integer && info.block_bytes == 4)
      dtype_ == DType::u32 ? widen<std::uint32_t>(from, part) : widen<std::int32_t>(from, part);
    else if (info.kind == DTypeKind::integer)
      dtype_ == DType::u16 ? widen<std::uint16_t>(from, part) : widen<std::int16_t>(from, part);
    else if (dtype_ == DType::f64)
      widen<double>(from, part);
    else
      read_floats(dtype_, from, part);
    bytes = bytes.subspan(from.size());
    out = out.subspan(part.size());
  }
}

Number Numbers::at(std::span<const std::byte> bytes, std::size_t i) const {
  const DTypeInfo& info = dtype_info(dtype_);
  if (dtype_ == DType::u64) return load<std::uint64_t>(bytes, i);
  if (dtype_ == DType::i64) return load<std::int64_t>(bytes, i);
  const std::size_t block = i / info.block_elements, within = i % info.block_elements;
  std::array<double, 256> numbers = {};  // no block has more
  read(bytes.subspan(block * info.block_bytes, info.block_bytes),
       std::span(numbers).first(info.block_elements));
  const double value = numbers[within];
  if (info.kind == DTypeKind::boolean) return static_cast<std::uint64_t>(value);
  if (info.kind != DTypeKind::integer) return value;
  return info.name.front() == 'U' ? Number(static_cast<std::uint64_t>(value))
                                  : Number(static_cast<std::int64_t>(value));
}

}  // namespace loadline
