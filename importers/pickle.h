// A Python pickle as plain values: nothing is imported, nothing is called.
#pragma once

#include "core/io/cursor.h"

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// A value of a Pickle, which keeps what does not fit here. Copies of a list, dict, set or object are that
// same list: what the file shares or closes to a cycle stays so.
struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,      // that fits in 64 bits
    big_integer,  // one that does not: its value is not kept
    real,
    text,
    bytes,
    global,  // a name in a module: never looked up
    tuple,
    list,
    dict,  // also an OrderedDict, defaultdict or Counter
    set,
    object,      // what calling a global would give
    persistent,  // what the reader of the file keeps outside: a storage
    absent,      // no value at all
  };
  Kind kind = Kind::none;
  std::uint32_t size = 0;    // bytes of a text; items of a tuple
  std::uint64_t number = 0;  // the integer or real; where the rest lies in the Pickle

  bool is(Kind wanted) const { return kind == wanted; }
  std::int64_t integer() const { return static_cast<std::int64_t>(number); }
  double real() const { return std::bit_cast<double>(number); }
};

// What REDUCE, NEWOBJ and BUILD make of a global: it, its arguments and its state, side by side.
struct PickleObject {
  PickleValue callee;
  PickleValue arguments;  // a tuple
  PickleValue state;      // none without BUILD
};

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

  const PickleValue& root() const { return root_; }
  // Of a text, bytes or global; a global is "module.name", in the names of Python 3. Empty for others.
  std::string_view text(const PickleValue& value) const;
  // Of a tuple, list or set; of a dict its keys and values by turns. Empty for others.
  std::span<const PickleValue> items(const PickleValue& value) const;
  // Nothing for what is no object.
  const PickleObject* object(const PickleValue& value) const;
  // The tuples that stand for what lies outside; a persistent value's number is its position here.
  std::span<const PickleValue> persistent_ids() const { return persistent_; }
  bool is_global(const PickleValue& value, std::string_view name) const {
    return value.is(Kind::global) && text(value) == name;
  }

  static constexpr std::uint64_t kMostOpcodes = 64'000'000;
  static constexpr std::size_t kMostMarks = 10'000;
  static constexpr std::uint64_t kMostText = 16 << 20;
  static constexpr std::uint64_t kMostTexts = 256 << 20;  // all together
  static constexpr std::uint64_t kMostValues = 8'000'000;

 private:
  friend class PickleMachine;

  PickleValue root_;
  std::string texts_;
  // blocks that never move: a vector of everything would double when it grows
  std::vector<std::vector<PickleValue>> tuples_;
  std::vector<std::vector<PickleValue>> containers_;  // of lists, dicts and sets
  std::vector<PickleObject> objects_;
  std::vector<PickleValue> persistent_;
};

}  // namespace loadline
