// Hash tables keyed by texts from files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace loadline {

// 0 for the empty text. The seed differs from run to run, so nobody can craft a file whose texts all collide
// and make filling a table quadratic.
std::uint64_t text_hash(std::string_view text);

// Transparent: strings, views and literals find each other.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return static_cast<std::size_t>(text_hash(text)); }
};

template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;
using TextSet = std::unordered_set<std::string, TextHash, std::equal_to<>>;
// The keys are views; the texts behind them must outlive the table.
template <typename Value>
using TextViewMap = std::unordered_map<std::string_view, Value, TextHash, std::equal_to<>>;
using TextViewSet = std::unordered_set<std::string_view, TextHash, std::equal_to<>>;

}  // namespace loadline
