// Indices sorted by keys with vector instructions: Highway's sort, compiled once for each instruction set.
#include "core/packing/ejection.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/packing/key_order.cpp"
// clang-format off: this one comes first
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace loadline::packing {
namespace HWY_NAMESPACE {

void sort_numbers(std::uint64_t* numbers, std::size_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  using Ascending = hn::detail::TraitsLane<hn::detail::OrderAscending<std::uint64_t>>;
  static_assert(!HWY_HAVE_SCALABLE, "the sort needs a buffer for vectors whose length is known at run time");
  constexpr std::uint64_t* kNoBuffer = nullptr;
  hn::Sort(hn::SortTag<std::uint64_t>(), hn::detail::SharedTraits<Ascending>(), numbers, count, kNoBuffer);
}

}  // namespace HWY_NAMESPACE
}  // namespace loadline::packing
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

// The seed of the places where the sort looks for a pivot. Highway's library asks the system for random
// numbers; here nobody can choose keys that make the sort slow.
void hwy::Sorter::Fill24Bytes(const void*, std::size_t count, void* bytes) {
  const std::uint64_t seed[3] = {count, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03};
  static_assert(sizeof seed == 24);
  std::memcpy(bytes, seed, sizeof seed);
}

namespace loadline::packing {

HWY_EXPORT(sort_numbers);

// Packs key and index into 64 bits if both fit: such a sort is several times faster than a comparison sort.
std::span<const std::uint32_t> KeyOrder::sort(std::span<const std::uint64_t> keys) {
  constexpr std::size_t kFew = 32;  // up to this size a comparison sort is as fast
  order_.resize(keys.size());
  const std::uint64_t most = keys.empty() ? 0 : *std::ranges::max_element(keys);
  const auto bits = static_cast<unsigned>(std::bit_width(keys.size()));
  if (bits + static_cast<unsigned>(std::bit_width(most)) > 64) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::ranges::stable_sort(order_, [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
    return order_;
  }
  packed_.clear();
  for (std::size_t i = 0; i < keys.size(); ++i) packed_.push_back(keys[i] << bits | i);
  if (packed_.size() > kFew) {
    HWY_DYNAMIC_DISPATCH(sort_numbers)(packed_.data(), packed_.size());
  } else {
    std::ranges::sort(packed_);
  }
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (std::size_t i = 0; i < keys.size(); ++i) order_[i] = static_cast<std::uint32_t>(packed_[i] & mask);
  return order_;
}

}  // namespace loadline::packing

#endif  // HWY_ONCE
