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
#include <type_traits>
#include <utility>
#include <vector>

namespace loadline::graph {

// --- Short lists, such as shapes and strides: models have them by the hundred thousand.

// Holds up to kInline values in place, and more of them in one allocation. A regular value with the interface
// of a vector. Declared [[no_unique_address]], it lets the next member begin right behind its last byte.
template <typename Value, std::size_t kInline>
class ShortList {
  static_assert(std::is_trivially_copyable_v<Value> && alignof(Value) <= sizeof(std::size_t));

 public:
  using value_type = Value;
  using iterator = Value*;
  using const_iterator = const Value*;

  ShortList() = default;
  ShortList(std::initializer_list<Value> values) { assign(values.begin(), values.size()); }
  ShortList(const std::vector<Value>& values) { assign(values.data(), values.size()); }
  explicit ShortList(std::span<const Value> values) { assign(values.data(), values.size()); }
  ShortList(const ShortList& other) { assign(other.data(), other.size()); }
  ShortList(ShortList&& other) noexcept { swap(other); }
  ShortList& operator=(ShortList other) noexcept {
    swap(other);
    return *this;
  }
  ~ShortList() {
    if (is_elsewhere()) ::operator delete(count_elsewhere());
  }

  std::size_t size() const { return is_elsewhere() ? *count_elsewhere() : size_here(); }
  bool empty() const { return size() == 0; }
  Value* data() { return is_elsewhere() ? held_.elsewhere : held_.here; }
  const Value* data() const { return is_elsewhere() ? held_.elsewhere : held_.here; }
  iterator begin() { return data(); }
  iterator end() { return data() + size(); }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size(); }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }
  Value& operator[](std::size_t i) { return data()[i]; }
  const Value& operator[](std::size_t i) const { return data()[i]; }
  const Value& front() const { return data()[0]; }
  const Value& back() const { return data()[size() - 1]; }

  void push_back(const Value& value) {
    if constexpr (kInline > 0) {
      if (size_ < kInline) {
        held_.here[size_++] = value;
        return;
      }
    }
    std::vector<Value> longer(begin(), end());
    longer.push_back(value);
    *this = ShortList(longer);
  }
  void clear() { *this = ShortList(); }
  std::vector<Value> vector() const { return {begin(), end()}; }

  friend bool operator==(const ShortList& a, const ShortList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const ShortList& a, const ShortList& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr std::uint8_t kElsewhere = UINT8_MAX;
  static_assert(kInline < kElsewhere);

  bool is_elsewhere() const {
    if constexpr (kInline == 0)
      return held_.elsewhere != nullptr;
    else
      return size_ == kElsewhere;
  }
  std::size_t size_here() const {
    if constexpr (kInline == 0)
      return 0;
    else
      return size_;
  }
  // Stands before the first value.
  std::size_t* count_elsewhere() const { return reinterpret_cast<std::size_t*>(held_.elsewhere) - 1; }

  void assign(const Value* values, std::size_t count) {
    if (count > kInline) {
      auto* const place =
          static_cast<std::size_t*>(::operator new(sizeof(std::size_t) + count * sizeof(Value)));
      *place = count;
      held_.elsewhere = reinterpret_cast<Value*>(place + 1);
    }
    if constexpr (kInline > 0) size_ = count > kInline ? kElsewhere : static_cast<std::uint8_t>(count);
    std::copy_n(values, count, data());
  }
  void swap(ShortList& other) noexcept {
    std::swap(held_, other.held_);
    if constexpr (kInline > 0) std::swap(size_, other.size_);
  }

  struct NoSize {};  // with nothing in place, the pointer says it
  union {
    std::uint64_t zeros[kInline == 0 ? 1 : (kInline * sizeof(Value) + 7) / 8];
    Value here[kInline == 0 ? 1 : kInline];
    Value* elsewhere;
  } held_ = {};
  // or kElsewhere
  [[no_unique_address]] std::conditional_t<kInline == 0, NoSize, std::uint8_t> size_ = {};
};

using Shape = ShortList<std::uint64_t, 2>;
using Strides = ShortList<std::uint64_t, 0>;  // most tensors are contiguous and store no strides

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

// The type whose DTypeInfo::name, or PyTorch's name with or without "torch.", is `name`, in upper or lower
// case, or nothing.
std::optional<DType> dtype_named(std::string_view name);
// "bf16" for "torch.bfloat16"; any other word as it is.
std::string spelled_dtype(std::string_view word);
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
