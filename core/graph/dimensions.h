// Shapes and strides: a short list of numbers. A shape of at most two dimensions needs no heap allocation.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace loadline {

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

}  // namespace loadline
