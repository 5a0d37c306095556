// A Python pickle as plain values; nothing is imported, nothing is called.
#pragma once

#include "core/io/source_file.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {

// --- Stores the values of a pickle compactly: a large checkpoint has millions of them.

// A value in 32 bits: its kind, and a number that is small enough or gives a position in the PickleStore. A
// copy of a list, dict, set or object refers to the same one, so sharing and cycles of the file are kept.
class PickleValue {
 public:
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,      // fits in 64 bits
    big_integer,  // does not fit in 64 bits: its value is not kept
    real,
    text,
    bytes,
    global,  // a name in a module: never looked up
    tuple,
    list,
    dict,  // also an OrderedDict, defaultdict or Counter
    set,
    object,      // the result of calling a global, which is never called
    persistent,  // an object outside the pickle: a storage
    absent,      // no value at all
  };
  static constexpr std::uint32_t kMostNumber = (std::uint32_t{1} << 28) - 1;

  PickleValue() = default;  // none
  PickleValue(Kind kind, std::uint32_t number) : raw_(number << 4 | static_cast<std::uint32_t>(kind)) {}

  Kind kind() const { return static_cast<Kind>(raw_ & 15); }
  std::uint32_t number() const { return raw_ >> 4; }
  bool is(Kind wanted) const { return kind() == wanted; }
  // The same scalar, or the same container; equal containers at different positions compare unequal.
  bool operator==(const PickleValue&) const = default;
  std::uint32_t raw() const { return raw_; }

 private:
  std::uint32_t raw_ = 0;
};

static_assert(sizeof(PickleValue) == 4);

// An object as REDUCE, NEWOBJ and BUILD describe it: the global to call, its arguments and the object's
// state.
struct PickleObject {
  PickleValue callee;
  PickleValue arguments;  // a tuple
  PickleValue state;      // none without BUILD
};

// The items of one list, dict or set. One pointer in size, because most dicts are a tensor's hooks and empty.
class PickleItems {
 public:
  std::span<const PickleValue> view() const;
  // `items` must not be part of this object.
  void append(std::span<const PickleValue> items);
  std::uint64_t bytes() const;

 private:
  std::unique_ptr<PickleValue[]> held_;  // the count, the capacity, then the items
};

// Only grows. Spans and views stay valid, except those of a container that is appended to. The caller must
// not exceed kMostTexts, and must add fewer than 2^27 values of each kind.
class PickleStore {
 public:
  using Kind = PickleValue::Kind;

  PickleStore();

  PickleValue add_integer(std::int64_t value);
  PickleValue add_real(std::uint64_t bits);
  PickleValue add_text(Kind kind, std::string_view text);  // text, bytes or global
  // Equal tuples of numbers may be stored once.
  PickleValue add_tuple(std::span<const PickleValue> items);
  PickleValue add_container(Kind kind);  // list, dict or set
  PickleValue add_object(PickleValue callee, PickleValue arguments);
  void append(PickleValue container, std::span<const PickleValue> items);

  std::int64_t integer(PickleValue value) const;
  double real(PickleValue value) const { return std::bit_cast<double>(wide_[value.number()]); }
  std::string_view text(PickleValue value) const;
  std::span<const PickleValue> items(PickleValue value) const;
  PickleObject& object(PickleValue value) { return objects_[value.number()]; }
  const PickleObject& object(PickleValue value) const { return objects_[value.number()]; }

  // Its approximate memory in bytes, and the part of it used by texts.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t text_bytes() const { return text_bytes_; }

  static constexpr std::uint64_t kMostTexts = 100 << 20;

 private:
  PickleValue* shape_slot(std::span<const PickleValue> items);

  // Blocks, which never move: a single array would be copied whenever it grows.
  std::deque<std::uint64_t> wide_;                    // numbers that need all 64 bits
  std::vector<std::unique_ptr<char[]>> text_blocks_;  // short texts, each after its length in 2 bytes
  std::deque<std::string> long_texts_;
  std::vector<std::unique_ptr<PickleValue[]>> tuple_blocks_;  // short tuples, each after its size
  std::deque<PickleItems> containers_;                        // containers and long tuples
  std::deque<PickleObject> objects_;
  std::size_t text_used_ = 0;   // of the last block
  std::size_t tuple_used_ = 0;  // of the last block
  std::uint64_t bytes_ = 0;
  std::uint64_t text_bytes_ = 0;
  // The last short tuples of numbers, by hash: a model has few different shapes, but each tensor writes its
  // own.
  std::array<PickleValue, 64> shapes_ = {};
};

// --- Reads a Python pickle as plain values. Nothing is imported and nothing is called.

// The value of a pickle stream. Supports torch's subset of the protocols up to 3 (torch's
// _weights_only_unpickler.py) and what protocol 1 writes. Anything else is refused, and so are harmful
// streams:
//   - opcodes outside the subset, numbers and names above the limits below
//   - REDUCE, NEWOBJ and BUILD on globals of modules that run code (os, sys, subprocess, eval, ...)
//   - APPEND to a value that is not a list, SETITEM to a value that is not a dict
class Pickle {
 public:
  using Kind = PickleValue::Kind;

  // Reads from the cursor through STOP. Throws Error{malformed | unsupported | limit} naming the byte.
  explicit Pickle(io::Cursor& cursor);

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

}  // namespace loadline::importers
