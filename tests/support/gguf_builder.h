// GGUF files byte by byte, right or wrong, in either byte order.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace loadline::testing {

class GgufBuilder {
 public:
  explicit GgufBuilder(bool big_endian = false, std::uint32_t version = 3)
      : big_endian_(big_endian), version_(version) {}

  // The format's numbers of value types.
  enum Type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

  template <typename T>
  std::string number(T value) const {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    if (big_endian_) std::reverse(bytes.begin(), bytes.end());
    return bytes;
  }
  std::string text(std::string_view text) const {
    return number(std::uint64_t{text.size()}) + std::string(text);
  }

  // A key with a value that is already bytes.
  GgufBuilder& key(std::string_view name, std::uint32_t type, std::string_view value) {
    keys_ += text(name) + number(type) + std::string(value);
    ++key_count_;
    return *this;
  }
  GgufBuilder& key(std::string_view name, std::string_view value) { return key(name, string, text(value)); }
  GgufBuilder& key(std::string_view name, std::uint32_t value) { return key(name, u32, number(value)); }
  GgufBuilder& strings(std::string_view name, const std::vector<std::string>& values) {
    std::string bytes = number(std::uint32_t{string}) + number(std::uint64_t{values.size()});
    for (const std::string& value : values) bytes += text(value);
    return key(name, array, bytes);
  }

  // `sizes` fastest first, as in the file; the data is `bytes` bytes, after those before.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                      std::uint64_t bytes) {
    tensor_at(name, sizes, type, data_);
    data_ += (bytes + alignment_ - 1) / alignment_ * alignment_;
    return *this;
  }
  // An entry that says `offset`, right or wrong; no data.
  GgufBuilder& tensor_at(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                         std::uint64_t offset) {
    tensors_ += text(name) + number(static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) tensors_ += number(size);
    tensors_ += number(type) + number(offset);
    ++tensor_count_;
    return *this;
  }
  GgufBuilder& data(std::uint64_t bytes) {
    data_ += bytes;
    return *this;
  }
  // Of the data: writes the key too.
  GgufBuilder& alignment(std::uint32_t bytes) {
    alignment_ = bytes;
    return key("general.alignment", bytes);
  }
  // What the header claims instead of the truth.
  GgufBuilder& claim(std::uint64_t tensors, std::uint64_t keys) {
    tensor_count_ = tensors;
    key_count_ = keys;
    return *this;
  }

  std::string header() const {
    return "GGUF" + number(version_) + number(tensor_count_) + number(key_count_) + keys_ + tensors_;
  }
  std::string bytes() const {
    std::string all = header();
    if (tensor_count_ == 0) return all;
    all.resize((all.size() + alignment_ - 1) / alignment_ * alignment_);
    for (std::uint64_t i = 0; i < data_; ++i) all.push_back(static_cast<char>(i * 31 + 7));
    return all;
  }

 private:
  bool big_endian_;
  std::uint32_t version_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
  std::uint64_t data_ = 0;
  std::uint64_t alignment_ = 32;
  std::string keys_;
  std::string tensors_;
};

// Every value type and array type, every ggml type, ranks 0 to 4, an empty tensor.
inline std::string sample_gguf(bool big_endian = false) {
  GgufBuilder b(big_endian);
  b.key("general.architecture", "llama").alignment(64);
  b.key("u8", b.u8, b.number(std::uint8_t{200})).key("i8", b.i8, b.number(std::int8_t{-3}));
  b.key("u16", b.u16, b.number(std::uint16_t{60'000})).key("i16", b.i16, b.number(std::int16_t{-300}));
  b.key("i32", b.i32, b.number(std::int32_t{-70'000})).key("f32", b.f32, b.number(1e-5F));
  b.key("bool", b.boolean, b.number(std::uint8_t{1})).key("u64", b.u64, b.number(~std::uint64_t{0}));
  b.key("i64", b.i64, b.number(INT64_MIN)).key("f64", b.f64, b.number(0.1));
  b.strings("tokenizer.ggml.tokens", {"<s>", "", "\xE2\x96\x81the"});
  b.key("scores", b.array,
        b.number(std::uint32_t{b.f32}) + b.number(std::uint64_t{2}) + b.number(1.5F) + b.number(-2.0F));
  b.tensor("scalar", {}, 0, 4).tensor("vector", {5}, 30, 10).tensor("token_embd.weight", {3, 4}, 1, 24);
  b.tensor("cube", {2, 3, 4}, 28, 192).tensor("four", {1, 2, 3, 4}, 24, 24).tensor("empty", {0, 7}, 27, 0);
  for (const graph::DTypeInfo& info : graph::dtype_table())
    if (info.kind == graph::DTypeKind::block)
      b.tensor("blk.0." + std::string(info.name), {info.block_elements, 2},
               static_cast<std::uint32_t>(info.ggml), 2 * info.block_bytes);
  return b.bytes();
}

}  // namespace loadline::testing
