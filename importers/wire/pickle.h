// A Python pickle as plain values: nothing is imported, nothing is called.
#pragma once

#include "core/io/cursor.h"
#include "importers/wire/pickle_store.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// The value that a pickle stream describes. Torch's subset of the protocols up to 2 (formats: torch's
// _weights_only_unpickler.py); anything else is refused, as are streams whose only use is to harm:
//   - opcodes outside the subset, numbers and names that do not fit the caps below
//   - REDUCE, NEWOBJ and BUILD on globals of modules that run code (os, sys, subprocess, eval, ...)
//   - APPEND to what is no list, SETITEM to what is no dict
class Pickle {
 public:
  using Kind = PickleValue::Kind;

  // Reads from the cursor up to and with STOP. Throws Error{malformed | unsupported | limit} naming the byte.
  explicit Pickle(Cursor& cursor);

  PickleValue root() const { return root_; }
  // Of a text, bytes or global; a global is "module.name", in the names of Python 3. Empty for others.
  std::string_view text(PickleValue value) const {
    return value.is(Kind::text) || value.is(Kind::bytes) || value.is(Kind::global) ? values_.text(value)
                                                                                   : std::string_view();
  }
  // Of an integer, and of a real: of no other.
  std::int64_t integer(PickleValue value) const { return values_.integer(value); }
  double real(PickleValue value) const { return values_.real(value); }
  // Of a tuple, list or set; of a dict its keys and values by turns. Empty for others.
  std::span<const PickleValue> items(PickleValue value) const { return values_.items(value); }
  // Nothing for what is no object.
  const PickleObject* object(PickleValue value) const {
    return value.is(Kind::object) ? &values_.object(value) : nullptr;
  }
  // The tuples that stand for what lies outside; a persistent value's number is its position here.
  std::span<const PickleValue> persistent_ids() const { return persistent_; }
  bool is_global(PickleValue value, std::string_view name) const {
    return value.is(Kind::global) && text(value) == name;
  }
  // Of the stream.
  std::uint64_t bytes() const { return bytes_; }

  static constexpr std::uint64_t kMostOpcodes = 64'000'000;
  static constexpr std::size_t kMostMarks = 10'000;
  static constexpr std::uint64_t kMostText = 16 << 20;
  static constexpr std::uint64_t kMostTexts = PickleStore::kMostTexts;  // all together
  static constexpr std::uint64_t kMostValues = 8'000'000;
  // Bytes of memory for each byte of the stream. Lists of one item take the most, 20; more can only come from
  // copying what is there already.
  static constexpr std::uint64_t kMostGrowth = 24;

 private:
  friend class PickleMachine;

  PickleStore values_;
  PickleValue root_;
  std::vector<PickleValue> persistent_;
  std::uint64_t bytes_ = 0;
};

}  // namespace loadline
