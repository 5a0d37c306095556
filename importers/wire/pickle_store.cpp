// A value's number encodes its block and position. Its lowest bit says that the value is stored elsewhere.
//
//   integer   28 bits: 27 of the number, 0      or a position among the wide ones, 1
//   text      28 bits: block 11, byte 16, 0     or a position among the long ones, 1
//   tuple     28 bits: block 13, item 14, 0     or a position among the containers, 1
//   others    a position
#include "importers/wire/pickle.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace loadline::importers {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kTextBlock = std::size_t{1} << 16;   // bytes
constexpr std::size_t kTupleBlock = std::size_t{1} << 14;  // items
constexpr std::size_t kLongText = 1000;                    // and longer: by itself
constexpr std::size_t kLongTuple = 1000;
constexpr std::int64_t kInlineNumber = std::int64_t{1} << 26;
constexpr std::uint64_t kAllocation = 16;  // least overhead of an allocation

std::uint32_t elsewhere(std::size_t position) {
  assert(position < PickleValue::kMostNumber / 2);
  return static_cast<std::uint32_t>(position) << 1 | 1;
}
bool is_elsewhere(PickleValue value) { return (value.number() & 1) != 0; }
std::uint32_t place_of(PickleValue value) { return value.number() >> 1; }

// The size of a tuple, stored in its block before the items.
PickleValue size_mark(std::size_t size) { return {Kind::absent, static_cast<std::uint32_t>(size)}; }

}  // namespace

std::span<const PickleValue> PickleItems::view() const {
  if (held_ == nullptr) return {};
  return {held_.get() + 2, held_[0].number()};
}

std::uint64_t PickleItems::bytes() const {
  return held_ == nullptr ? 0 : (held_[1].number() + 2) * sizeof(PickleValue) + kAllocation;
}

void PickleItems::append(std::span<const PickleValue> items) {
  if (items.empty()) return;
  const std::size_t size = view().size() + items.size();
  if (held_ == nullptr || size > held_[1].number()) {
    const std::size_t least = held_ == nullptr ? 4 : std::size_t{2} * held_[1].number();
    const std::size_t capacity = std::max(size, least);
    std::unique_ptr<PickleValue[]> larger(new PickleValue[capacity + 2]);
    larger[1] = size_mark(capacity);
    std::copy(view().begin(), view().end(), larger.get() + 2);
    larger[0] = size_mark(view().size());
    held_ = std::move(larger);
  }
  std::copy(items.begin(), items.end(), held_.get() + 2 + held_[0].number());
  held_[0] = size_mark(size);
}

// The first tuple is the empty one, which all empty ones are.
PickleStore::PickleStore() {
  tuple_blocks_.emplace_back(new PickleValue[kTupleBlock]);
  tuple_blocks_[0][0] = size_mark(0);
  tuple_used_ = 1;
}

PickleValue PickleStore::add_integer(std::int64_t value) {
  if (value >= -kInlineNumber && value < kInlineNumber)
    return {Kind::integer, (static_cast<std::uint32_t>(value) << 1) & PickleValue::kMostNumber};
  wide_.push_back(static_cast<std::uint64_t>(value));
  bytes_ += sizeof(std::uint64_t);
  return {Kind::integer, elsewhere(wide_.size() - 1)};
}

std::int64_t PickleStore::integer(PickleValue value) const {
  if (is_elsewhere(value)) return static_cast<std::int64_t>(wide_[place_of(value)]);
  // the highest of the 27 bits is the sign
  const auto bits = static_cast<std::int64_t>(place_of(value));
  return bits < kInlineNumber ? bits : bits - 2 * kInlineNumber;
}

PickleValue PickleStore::add_real(std::uint64_t bits) {
  wide_.push_back(bits);
  bytes_ += sizeof(std::uint64_t);
  return {Kind::real, static_cast<std::uint32_t>(wide_.size() - 1)};
}

PickleValue PickleStore::add_text(Kind kind, std::string_view text) {
  if (text.size() >= kLongText) {
    bytes_ += text.size() + sizeof(std::string) + kAllocation;
    text_bytes_ += text.size();
    long_texts_.emplace_back(text);
    return {kind, elsewhere(long_texts_.size() - 1)};
  }
  const std::size_t needed = text.size() + 2;
  if (text_blocks_.empty() || kTextBlock - text_used_ < needed) {
    text_blocks_.emplace_back(new char[kTextBlock]);
    text_used_ = 0;
    bytes_ += kTextBlock;
    text_bytes_ += kTextBlock;
  }
  char* const to = text_blocks_.back().get() + text_used_;
  const auto length = static_cast<std::uint16_t>(text.size());
  std::memcpy(to, &length, 2);
  std::memcpy(to + 2, text.data(), text.size());
  const std::size_t place = (text_blocks_.size() - 1) * kTextBlock + text_used_;
  assert(place <= PickleValue::kMostNumber / 2);
  text_used_ += needed;
  return {kind, static_cast<std::uint32_t>(place) << 1};
}

std::string_view PickleStore::text(PickleValue value) const {
  const std::uint32_t place = place_of(value);
  if (is_elsewhere(value)) return long_texts_[place];
  const char* const from = text_blocks_[place / kTextBlock].get() + place % kTextBlock;
  std::uint16_t length = 0;
  std::memcpy(&length, from, 2);
  return {from + 2, length};
}

PickleValue PickleStore::add_tuple(std::span<const PickleValue> items) {
  if (items.empty()) return {Kind::tuple, 0};
  if (items.size() >= kLongTuple) {
    const PickleValue held = add_container(Kind::tuple);
    append({Kind::list, held.number()}, items);
    return {Kind::tuple, elsewhere(held.number())};
  }
  PickleValue* const known = shape_slot(items);
  if (known != nullptr && std::ranges::equal(this->items(*known), items)) return *known;
  const std::size_t needed = items.size() + 1;
  if (kTupleBlock - tuple_used_ < needed) {
    tuple_blocks_.emplace_back(new PickleValue[kTupleBlock]);
    tuple_used_ = 0;
    bytes_ += kTupleBlock * sizeof(PickleValue);
  }
  PickleValue* const to = tuple_blocks_.back().get() + tuple_used_;
  *to = size_mark(items.size());
  std::copy(items.begin(), items.end(), to + 1);
  const std::size_t place = (tuple_blocks_.size() - 1) * kTupleBlock + tuple_used_;
  assert(place <= PickleValue::kMostNumber / 2);
  tuple_used_ += needed;
  const PickleValue added = {Kind::tuple, static_cast<std::uint32_t>(place) << 1};
  if (known != nullptr) *known = added;
  return added;
}

// The slot of the last tuple whose hash selects the same slot as `items`; null if `items` is not a shape.
PickleValue* PickleStore::shape_slot(std::span<const PickleValue> items) {
  constexpr std::size_t kMostRank = 8;
  if (items.size() > kMostRank) return nullptr;
  std::uint64_t hash = 0;
  for (const PickleValue item : items) {
    if (!item.is(Kind::integer)) return nullptr;
    hash = (hash ^ item.raw()) * 0x9E3779B97F4A7C15;
  }
  return &shapes_[hash >> 58];
}

PickleValue PickleStore::add_container(Kind kind) {
  containers_.emplace_back();
  bytes_ += sizeof(PickleItems);
  return {kind, static_cast<std::uint32_t>(containers_.size() - 1)};
}

PickleValue PickleStore::add_object(PickleValue callee, PickleValue arguments) {
  objects_.push_back({callee, arguments, {}});
  bytes_ += sizeof(PickleObject);
  return {Kind::object, static_cast<std::uint32_t>(objects_.size() - 1)};
}

void PickleStore::append(PickleValue container, std::span<const PickleValue> items) {
  PickleItems& held = containers_[container.number()];
  bytes_ -= held.bytes();
  held.append(items);
  bytes_ += held.bytes();
}

std::span<const PickleValue> PickleStore::items(PickleValue value) const {
  switch (value.kind()) {
    case Kind::tuple: {
      const std::uint32_t place = place_of(value);
      if (is_elsewhere(value)) return containers_[place].view();
      const PickleValue* const from = tuple_blocks_[place / kTupleBlock].get() + place % kTupleBlock;
      return {from + 1, from->number()};
    }
    case Kind::list:
    case Kind::dict:
    case Kind::set:
      return containers_[value.number()].view();
    default:
      return {};
  }
}

}  // namespace loadline::importers
