// Reads a Python pickle as plain values. Nothing is imported and nothing is called.
#pragma once

#include "core/io/cursor.h"
#include "importers/wire/pickle_store.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// The value of a pickle stream. Supports torch's subset of the protocols up to 2 (torch's
// _weights_only_unpickler.py). Anything else is refused, and so are harmful streams:
//   - opcodes outside the subset, numbers and names above the limits below
//   - REDUCE, NEWOBJ and BUILD on globals of modules that run code (os, sys, subprocess, eval, ...)
//   - APPEND to a value that is not a list, SETITEM to a value that is not a dict
class Pickle {
 public:
  using Kind = PickleValue::Kind;

  // Reads from the cursor through STOP. Throws Error{malformed | unsupported | limit} naming the byte.
  explicit Pickle(Cursor& cursor);

  PickleValue root() const { return root_; }
  // The text of a text, bytes or global value; a global is "module.name" with Python 3 names. Empty for
  // others.
  std::string_view text(PickleValue value) const {
    return value.is(Kind::text) || value.is(Kind::bytes) || value.is(Kind::global) ? values_.text(value)
                                                                                   : std::string_view();
  }
  // The number of an integer or a real value. Another kind is a caller's bug.
  std::int64_t integer(PickleValue value) const { return values_.integer(value); }
  double real(PickleValue value) const { return values_.real(value); }
  // The items of a tuple, list or set; the alternating keys and values of a dict. Empty for others.
  std::span<const PickleValue> items(PickleValue value) const { return values_.items(value); }
  // Null if the value is not an object.
  const PickleObject* object(PickleValue value) const {
    return value.is(Kind::object) ? &values_.object(value) : nullptr;
  }
  // The tuples that identify objects outside the pickle. A persistent value's number is its position here.
  std::span<const PickleValue> persistent_ids() const { return persistent_; }
  bool is_global(PickleValue value, std::string_view name) const {
    return value.is(Kind::global) && text(value) == name;
  }
  // Bytes of the stream.
  std::uint64_t bytes() const { return bytes_; }

  static constexpr std::uint64_t kMostOpcodes = 64'000'000;
  static constexpr std::size_t kMostMarks = 10'000;
  static constexpr std::uint64_t kMostText = 16 << 20;
  static constexpr std::uint64_t kMostTexts = PickleStore::kMostTexts;  // all together
  static constexpr std::uint64_t kMostValues = 8'000'000;
  // Bytes of memory allowed for each byte of the stream. Lists of one item need the most, 20; more can only
  // come from copying existing values.
  static constexpr std::uint64_t kMostGrowth = 24;

 private:
  friend class PickleMachine;

  PickleStore values_;
  PickleValue root_;
  std::vector<PickleValue> persistent_;
  std::uint64_t bytes_ = 0;
};

}  // namespace loadline
