// What a tensor's elements are and how many: shapes and strides, element types with every format's code for
// them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::graph {

// --- Shapes and strides: a short list of numbers. A shape of at most two dimensions needs no heap
// allocation.

// Holds up to kInline numbers in place. A regular value with the interface of a vector.
template <std::size_t kInline>
class Dimensions {
 public:
  using value_type = std::uint64_t;
  using iterator = std::uint64_t*;
  using const_iterator = const std::uint64_t*;

  Dimensions() = default;
  Dimensions(std::initializer_list<std::uint64_t> values) { assign(values.begin(), values.size()); }
  Dimensions(const std::vector<std::uint64_t>& values) { assign(values.data(), values.size()); }
  explicit Dimensions(std::span<const std::uint64_t> values) { assign(values.data(), values.size()); }
  Dimensions(const Dimensions& other) { assign(other.data(), other.size()); }
  Dimensions(Dimensions&& other) noexcept { swap(other); }
  Dimensions& operator=(Dimensions other) noexcept {
    swap(other);
    return *this;
  }
  ~Dimensions() {
    if (size_ > kInline) delete[] held_.elsewhere;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::uint64_t* data() { return size_ > kInline ? held_.elsewhere : held_.here; }
  const std::uint64_t* data() const { return size_ > kInline ? held_.elsewhere : held_.here; }
  iterator begin() { return data(); }
  iterator end() { return data() + size_; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size_; }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }
  std::uint64_t& operator[](std::size_t i) { return data()[i]; }
  std::uint64_t operator[](std::size_t i) const { return data()[i]; }
  std::uint64_t front() const { return data()[0]; }
  std::uint64_t back() const { return data()[size_ - 1]; }

  void push_back(std::uint64_t value) {
    std::vector<std::uint64_t> longer(begin(), end());
    longer.push_back(value);
    *this = Dimensions(longer);
  }
  void clear() { *this = Dimensions(); }
  std::vector<std::uint64_t> vector() const { return {begin(), end()}; }

  friend bool operator==(const Dimensions& a, const Dimensions& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const Dimensions& a, const Dimensions& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void assign(const std::uint64_t* values, std::size_t count) {
    if (count > kInline) held_.elsewhere = new std::uint64_t[count];
    size_ = static_cast<std::uint32_t>(count);
    std::copy_n(values, count, data());
  }
  void swap(Dimensions& other) noexcept {
    std::swap(held_, other.held_);
    std::swap(size_, other.size_);
  }

  union {
    std::uint64_t here[kInline == 0 ? 1 : kInline];
    std::uint64_t* elsewhere;
  } held_ = {};
  std::uint32_t size_ = 0;
};

using Shape = Dimensions<2>;
using Strides = Dimensions<0>;  // most tensors are contiguous and store no strides

// --- Element types: one table row each, with the code that each supported format uses for the type.

enum class DType : std::uint8_t {
  opaque,  // a code that this table does not know; the model still opens, with the tensor as "N bytes"
  boolean,
  u8,
  i8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128,
  f8_e4m3,
  f8_e4m3fnuz,
  f8_e5m2,
  f8_e5m2fnuz,
  f8_e8m0,
  u4,
  i4,
  f4_e2m1,
  f6_e2m3,
  f6_e3m2,
  u2,
  i2,
  string,
  // ggml block types
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q8_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  q8_k,
  iq2_xxs,
  iq2_xs,
  iq3_xxs,
  iq1_s,
  iq4_nl,
  iq3_s,
  iq2_s,
  iq4_xs,
  iq1_m,
  tq1_0,
  tq2_0,
  mxfp4,
  nvfp4,
  q1_0,
  q2_0,
  pq2_0,  // Q2_0 in blocks of 128; older files give it the number of Q2_0 (importers/gguf/gguf_file.cpp)
};
inline constexpr int kDTypeCount = static_cast<int>(DType::pq2_0) + 1;

enum class DTypeKind : std::uint8_t { opaque, boolean, integer, floating, complex, text, block };

// A code of -1, or an empty code, means that the format does not have this type.
struct DTypeInfo {
  DType id;
  std::string_view name;  // shown to people and scripts: "F32", "BF16", "Q4_K"
  DTypeKind kind;
  // `block_elements` elements take `block_bytes` bytes; 1 element for ordinary types,
  // more for sub-byte and quantized ones. Both 0: no fixed size (opaque, string).
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
  std::string_view safetensors;
  std::string_view torch;  // dtype name in the torch module
  std::int16_t ggml;
  std::int16_t onnx;
  std::int16_t executorch;
  std::int16_t tflite;
  std::int16_t pt2;
  std::string_view npy;  // little-endian descr
};

// Every row, in the order of the enum. Facts: safetensors 0.8 tensor.rs, ggml.h (type ids up to
// 42; 142: PrismML's llama.cpp), onnx.in.proto, ExecuTorch scalar_type.fbs, LiteRT schema 3 (codes up to 22),
// torch.export schema of torch 2.13.
std::span<const DTypeInfo> dtype_table();
const DTypeInfo& dtype_info(DType id);

// The type whose DTypeInfo::name is `name`, in upper or lower case, or nothing.
std::optional<DType> dtype_named(std::string_view name);
// The type's name in lower case, as options take it.
std::string dtype_word(DType id);
// The type with that code in a column of the table, or nothing. Example: dtype_from(&DTypeInfo::onnx, 1).
std::optional<DType> dtype_from(std::string_view DTypeInfo::*column, std::string_view code);
std::optional<DType> dtype_from(std::int16_t DTypeInfo::*column, std::int64_t code);

// Bytes of `elements` elements. Nothing if they do not fill whole blocks, if the product
// overflows, or if the type has no fixed size.
std::optional<std::uint64_t> byte_size(DType id, std::uint64_t elements);

// As byte_size(), but the last block of a sub-byte type (never of a quantized one) may be partly filled: five
// 4-bit numbers take three bytes.
std::optional<std::uint64_t> packed_byte_size(DType id, std::uint64_t elements);

// "[16, 32]".
std::string shape_words(const Shape& shape);

// Product of the dimensions (1 for rank 0), or nothing on overflow. The overflow check does not
// stop at a zero dimension: [2^40, 0, 2^40] is refused, so that no product can wrap to "empty".
inline std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) {
  std::uint64_t nonzero = 1;
  bool empty = false;
  for (const std::uint64_t dimension : shape) {
    empty |= dimension == 0;
    if (__builtin_mul_overflow(nonzero, dimension + (dimension == 0 ? 1 : 0), &nonzero)) return std::nullopt;
  }
  return empty ? 0 : nonzero;
}

}  // namespace loadline::graph
