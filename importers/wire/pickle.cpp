// The pickle machine: opcodes, limits, globals that run code.
#include "importers/wire/pickle.h"

#include "core/base/text.h"
#include "core/graph/name.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace loadline::importers {

// --- Names in Python modules as pickles give them: their modern spelling, and whether they only serve to run
// code.

namespace {

struct PickleGlobal {
  std::string module;
  std::string name;
};

// Modules that only a pickle meant to run code names. Reading is safe without this list, because nothing is
// ever called. The list allows a clear error message.
constexpr std::string_view kCodeModules =
    "_posixsubprocess asyncio bdb code codeop commands cProfile ctypes doctest ensurepip idlelib imp "
    "importlib marshal nt operator os pdb pickle pip pkgutil posix profile pty pydoc runpy shelve shutil "
    "socket subprocess sys timeit venv webbrowser";
// The names in builtins that do not run code.
constexpr std::string_view kDataBuiltins =
    "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple Ellipsis";

// The Python 3 name of a global. Protocol 2 writes Python 2 names.
PickleGlobal modern_global(PickleGlobal global) {
  if (global.module == "copy_reg") global.module = "copyreg";
  if (global.module == "__builtin__") {
    global.module = "builtins";
    if (global.name == "long") global.name = "int";
    if (global.name == "unicode") global.name = "str";
    if (global.name == "xrange") global.name = "range";
  }
  return global;
}

// Whether the global only serves to run code, so that no honest checkpoint names it. Takes the Python 3 name.
bool runs_code(const PickleGlobal& global) {
  if (global.module == "builtins") return !has_word(kDataBuiltins, global.name);
  const std::string_view package = std::string_view(global.module).substr(0, global.module.find('.'));
  return has_word(kCodeModules, package);
}

}  // namespace

// --- Python pickle, protocols 1 to 3 (Lib/pickletools.py), as far as torch writes it: the opcodes of torch's
// _weights_only_unpickler.py, and the two that protocol 1 has for booleans and large numbers. One byte each,
// then their argument; a stack machine with a memo:
//
//   80 PROTO u8       2e STOP           28 MARK           63 GLOBAL "module\nname\n"
//   71 BINPUT u8      72 LONG_BINPUT u32    68 BINGET u8  6a LONG_BINGET u32      51 BINPERSID
//   4e NONE   88 NEWTRUE   89 NEWFALSE      4b BININT1 u8   4d BININT2 u16   4a BININT i32
//   8a LONG1 u8 n, n bytes two's complement               47 BINFLOAT f64 big-endian
//   49 INT "00\n" (False), "01\n" (True), "12\n"          4c LONG "12L\n"
//   58 BINUNICODE u32 n, n bytes            55 SHORT_BINSTRING u8 n, n bytes
//   29 EMPTY_TUPLE  85 86 87 TUPLE1-3  74 TUPLE           5d EMPTY_LIST  61 APPEND  65 APPENDS
//   7d EMPTY_DICT   73 SETITEM  75 SETITEMS               8f EMPTY_SET
//   52 REDUCE callee(arguments)    81 NEWOBJ class(arguments)    62 BUILD sets the state of an object

namespace {

using Kind = PickleValue::Kind;

constexpr std::uint64_t kMostLine = 1000;  // bytes of a module, a name or a number as text
constexpr std::uint64_t kMostStack = 4'000'000;
constexpr std::size_t kMostLong = 32;           // bytes of a number; a UUID takes 17
constexpr std::uint64_t kFirstBytes = 1 << 20;  // of memory, that every pickle may take
const PickleValue kAbsent(Kind::absent, 0);

// The protocol that an opcode came with; nothing for a byte that is none, and for opcodes that are read.
std::optional<int> protocol_of(std::uint8_t opcode) {
  constexpr std::string_view kText = "FPSVdgilp02", kBinary = "To1";
  const char letter = static_cast<char>(opcode);
  if (kText.find(letter) != std::string_view::npos) return 0;
  if (kBinary.find(letter) != std::string_view::npos) return 1;
  if ((opcode >= 0x82 && opcode <= 0x84) || opcode == 0x8B) return 2;
  if (letter == 'B' || letter == 'C') return 3;
  if (opcode >= 0x8C && opcode <= 0x95) return 4;
  if (opcode >= 0x96 && opcode <= 0x98) return 5;
  return std::nullopt;
}

bool is_dict_type(std::string_view name) {
  return name == "collections.OrderedDict" || name == "collections.Counter" || name == "builtins.dict" ||
         name == "collections.defaultdict";
}

}  // namespace

// Runs the opcodes. An opcode may only take the stack's values above the last mark.
class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, io::Cursor& cursor)
      : out_(pickle), values_(pickle.values_), cursor_(cursor), begin_(cursor.at()) {}

  void run() {
    for (std::uint64_t opcodes = 0; !stopped_; ++opcodes) {
      if (opcodes == Pickle::kMostOpcodes) throw limit("opcodes", Pickle::kMostOpcodes);
      at_ = cursor_.at();
      step(cursor_.read<std::uint8_t>("a pickle without its end"));
    }
    out_.bytes_ = cursor_.at() - begin_;
  }

 private:
  template <typename... Values>
  Error fault(ErrorCode code, fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(code, cursor_.malformed(at_, "").place(), "pickle: {}",
                 fmt::vformat(detail, fmt::make_format_args(values...)));
  }
  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return fault(ErrorCode::malformed, detail, values...);
  }
  template <typename... Values>
  Error refused(fmt::format_string<Values...> detail, const Values&... values) const {
    return fault(ErrorCode::unsupported, detail, values...);
  }
  Error limit(std::string_view what, std::uint64_t most) const {
    return fault(ErrorCode::limit, "more than {} {}", most, what);
  }
  template <typename T>
  T take(std::string_view what = "a pickle opcode") {
    return cursor_.read<T>(what);
  }

  // Charges memory before it is used, so that a small file cannot fill the memory.
  void keep(std::uint64_t values) {
    kept_ += values;
    if (kept_ > Pickle::kMostValues) throw limit("values", Pickle::kMostValues);
    const std::uint64_t bytes = values_.bytes() + (memo_.size() + values) * sizeof(PickleValue);
    if (bytes > kFirstBytes + Pickle::kMostGrowth * (cursor_.at() - begin_))
      throw limit("bytes of memory for each of its own", Pickle::kMostGrowth);
  }

  void push(PickleValue value) {
    if (stack_.size() == kMostStack) throw limit("values on its stack", kMostStack);
    stack_.push_back(value);
  }
  void push(Kind kind, std::uint32_t number = 0) { push(PickleValue(kind, number)); }
  void push_integer(std::int64_t value) { push(values_.add_integer(value)); }

  std::size_t base() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleValue& top() {
    if (stack_.size() <= base()) throw malformed("an opcode takes a value from an empty stack");
    return stack_.back();
  }
  PickleValue pop() {
    const PickleValue value = top();
    stack_.pop_back();
    return value;
  }
  // How far the stack goes below its last `count` values, or below its last mark, which goes.
  std::size_t below(std::size_t count) {
    if (stack_.size() < base() + count) throw malformed("an opcode takes a value from an empty stack");
    return stack_.size() - count;
  }
  std::size_t below_mark() {
    if (marks_.empty()) throw malformed("an opcode takes values down to a mark that is not there");
    const std::size_t first = marks_.back();
    marks_.pop_back();
    return first;
  }

  PickleValue text(Kind kind, std::uint64_t bytes) {
    return keep_text(kind, cursor_.read_text(bytes, Pickle::kMostText, "a string of the pickle"));
  }
  PickleValue keep_text(Kind kind, std::string_view kept) {
    if (values_.text_bytes() + kept.size() > Pickle::kMostTexts)
      throw limit("bytes of strings", Pickle::kMostTexts);
    return values_.add_text(kind, kept);
  }
  PickleValue tuple(std::span<const PickleValue> items) {
    keep(items.size());
    return values_.add_tuple(items);
  }
  PickleValue container(Kind kind) {
    keep(2);
    return values_.add_container(kind);
  }
  // The values from `first` on the stack, as one.
  void join(std::size_t first) {
    const PickleValue joined = tuple(std::span(stack_).subspan(first));
    stack_.resize(first);
    push(joined);
  }

  std::string line(std::string_view what) {
    std::string text;
    for (char c = take<char>(what); c != '\n'; c = take<char>(what)) {
      if (text.size() == kMostLine) throw limit(fmt::format("bytes in {}", what), kMostLine);
      text.push_back(c);
    }
    return text;
  }

  void global() {
    std::string module = line("a global's name"), name = line("a global's name");
    if (module.empty() || name.empty()) throw malformed("a global without a name");
    const PickleGlobal named = modern_global({std::move(module), std::move(name)});
    std::string full = named.module + "." + named.name;
    if (runs_code(named))
      throw refused("names '{}', which runs code when loaded: refused, nothing was run",
                    safe_display(full, 100));
    const auto [found, fresh] = globals_.try_emplace(std::move(full));
    if (fresh) {
      keep(4);
      found->second = keep_text(Kind::global, found->first);
    }
    push(found->second);
  }

  void put(std::uint64_t slot) {
    // honest writers number slots one by one; large gaps only waste memory
    constexpr std::uint64_t kMostGap = 1024;
    if (slot > memo_.size() + kMostGap) throw malformed("memo slot {} after {} slots", slot, memo_.size());
    const PickleValue value = top();
    if (slot >= memo_.size()) {
      keep(slot + 1 - memo_.size());
      memo_.resize(static_cast<std::size_t>(slot) + 1, kAbsent);  // never more than a few at once
    }
    memo_[static_cast<std::size_t>(slot)] = value;
  }
  void get(std::uint64_t slot) {
    if (slot >= memo_.size() || memo_[static_cast<std::size_t>(slot)].is(Kind::absent))
      throw malformed("reads memo slot {}, which was never set", slot);
    push(memo_[static_cast<std::size_t>(slot)]);
  }

  void long_number() {
    const auto bytes = take<std::uint8_t>();
    if (bytes > kMostLong) throw limit("bytes in a number", kMostLong);
    std::uint64_t low = 0;
    bool fits = true;
    std::uint8_t last = 0, sign = 0;
    std::array<std::uint8_t, kMostLong> digits = {};
    cursor_.read_bytes(std::as_writable_bytes(std::span(digits)).first(bytes), "a number");
    if (bytes > 0) sign = (digits[bytes - 1U] & 0x80) != 0 ? 0xFF : 0;
    for (std::size_t i = 0; i < 8; ++i) {
      last = i < bytes ? digits[i] : sign;
      low |= std::uint64_t{last} << (8 * i);
    }
    for (std::size_t i = 8; i < bytes; ++i) fits = fits && digits[i] == sign;
    fits = fits && (last & 0x80) == (sign & 0x80);
    if (!fits) return push(Kind::big_integer);
    push_integer(static_cast<std::int64_t>(low));
  }

  // INT and LONG. Two digits are a boolean.
  void text_number(std::string_view suffix) {
    const std::string digits = line("a number");
    const std::string_view text = digits;
    if (suffix.empty() && (text == "00" || text == "01")) return push(Kind::boolean, text == "01" ? 1 : 0);
    const std::string_view number =
        text.substr(0, text.size() - (text.ends_with(suffix) ? suffix.size() : 0));
    const std::string_view plain = number.substr(number.starts_with('-') ? 1 : 0);
    if (plain.empty() || plain.find_first_not_of("0123456789") != std::string_view::npos)
      throw malformed("'{}' is not a whole number", safe_display(text, 40));
    const auto value = text_as<std::int64_t>(number);
    return value ? push_integer(*value) : push(Kind::big_integer);
  }

  void real() {
    std::array<std::uint8_t, 8> bytes = {};
    cursor_.read_bytes(std::as_writable_bytes(std::span(bytes)), "a number");
    std::uint64_t bits = 0;
    for (const std::uint8_t byte : bytes) bits = bits << 8 | byte;
    push(values_.add_real(bits));
  }

  // APPENDS and SETITEMS: the values from `first` on the stack go into the container below them.
  void add_items(Kind kind, std::size_t first) {
    const auto items = std::span<const PickleValue>(stack_).subspan(first);
    if (kind == Kind::dict && items.size() % 2 != 0) throw malformed("SETITEMS with a key that has no value");
    if (first <= base()) throw malformed("an opcode takes a value from an empty stack");
    const PickleValue held = target(stack_[first - 1], kind, kind == Kind::list ? "APPEND" : "SETITEM");
    keep(items.size());
    values_.append(held, items);
    stack_.resize(first);
  }

  // The target of APPEND and SETITEM: a list or dict, or the state of an opaque object, because instances of
  // classes derived from list or dict are written like this.
  PickleValue target(PickleValue value, Kind kind, std::string_view opcode) {
    if (value.is(kind)) return value;
    if (!value.is(Kind::object))
      throw malformed("{} on a value that is not a {}", opcode, kind == Kind::list ? "list" : "dict");
    PickleObject& object = values_.object(value);
    const std::string_view callee = out_.text(object.callee);
    if (callee.starts_with("torch")) throw malformed("{} on a {}", opcode, safe_display(callee, 100));
    if (!object.state.is(kind)) {
      add_state(object, container(kind));
      if (!object.state.is(kind)) throw malformed("{} on an object that has other state", opcode);
    }
    return object.state;
  }

  void add_state(PickleObject& object, PickleValue state) {
    object.state = object.state.is(Kind::none) ? state : tuple(std::array{object.state, state});
  }

  // A dict from nothing, another dict (Counter), pairs, or a factory (defaultdict).
  PickleValue make_dict(std::string_view name, std::span<const PickleValue> arguments) {
    const PickleValue dict = container(Kind::dict);
    if (name == "collections.defaultdict" && !arguments.empty()) arguments = arguments.subspan(1);
    if (arguments.empty()) return dict;
    const std::span<const PickleValue> given = out_.items(arguments[0]);
    if (arguments.size() > 1 || !(arguments[0].is(Kind::dict) || arguments[0].is(Kind::list)))
      throw refused("a {} made from something else than pairs", name);
    keep(2 * given.size());
    if (arguments[0].is(Kind::dict)) {
      values_.append(dict, given);
      return dict;
    }
    for (const PickleValue& pair : given) {
      const std::span<const PickleValue> parts = out_.items(pair);
      if (!(pair.is(Kind::tuple) || pair.is(Kind::list)) || parts.size() != 2)
        throw malformed("a {} made from something else than pairs", name);
      values_.append(dict, parts);
    }
    return dict;
  }

  void reduce(std::string_view opcode) {
    const PickleValue arguments = pop(), callee = pop();
    // ('module', class, ...): how torch before 1.6 wrote the classes of whole models
    if (callee.is(Kind::persistent)) {
      const std::span<const PickleValue> id = out_.items(out_.persistent_[callee.number()]);
      throw refused("a whole pickled model of class '{}'; save its state_dict() instead",
                    safe_display(id.size() > 1 ? out_.text(id[1]) : "", 100));
    }
    if (!callee.is(Kind::global)) throw malformed("{} calls a value that is not a global", opcode);
    if (!arguments.is(Kind::tuple)) throw malformed("{} without a tuple of arguments", opcode);
    const std::string name(out_.text(callee));
    const std::span<const PickleValue> items = out_.items(arguments);
    if (is_dict_type(name)) return push(make_dict(name, items));
    if (name == "builtins.set" || name == "builtins.frozenset") {
      const PickleValue set = container(Kind::set);
      if (!items.empty()) {
        const std::span<const PickleValue> given = out_.items(items[0]);
        keep(given.size());
        values_.append(set, given);
      }
      return push(set);
    }
    if (name == "_codecs.encode" && !items.empty() && items[0].is(Kind::text))
      return push(Kind::bytes, items[0].number());
    keep(3);
    push(values_.add_object(callee, arguments));
  }

  void build() {
    const PickleValue state = pop();
    const PickleValue value = top();
    // an OrderedDict's state holds the versions of modules (_metadata), which are not needed here
    if (value.is(Kind::dict)) return;
    if (!value.is(Kind::object)) throw malformed("BUILD on a value that is not an object");
    PickleObject& object = values_.object(value);
    if (out_.text(object.callee).starts_with("torch._utils."))
      throw refused("BUILD on {}", safe_display(out_.text(object.callee), 100));
    add_state(object, state);
  }

  void persistent() {
    const PickleValue id = pop();
    if (!id.is(Kind::tuple)) throw malformed("a persistent id that is not a tuple");
    keep(1);
    out_.persistent_.push_back(id);
    push(Kind::persistent, static_cast<std::uint32_t>(out_.persistent_.size() - 1));
  }

  void stop() {
    if (!marks_.empty() || stack_.size() != 1)
      throw malformed("STOP with {} values on the stack, not 1", stack_.size());
    out_.root_ = stack_.back();
    stopped_ = true;
  }

  void mark() {
    if (marks_.size() == Pickle::kMostMarks) throw limit("marks", Pickle::kMostMarks);
    marks_.push_back(stack_.size());
  }

  // The opcodes that follow say what is read.
  void proto() {
    constexpr std::uint8_t kMostKnown = 5;
    const auto version = take<std::uint8_t>();
    if (version > kMostKnown) throw refused("protocol {}, the newest known is {}", version, kMostKnown);
  }

  Error unknown(std::uint8_t opcode) const {
    if (const auto protocol = protocol_of(opcode))
      return refused(
          "opcode {:#04x} of protocol {}, which torch.load(weights_only=True) refuses, too: save it "
          "again with torch's default, protocol 2",
          opcode, *protocol);
    return refused("opcode {:#04x}, which torch.save does not write", opcode);
  }

  void step(std::uint8_t opcode) {
    using Machine = PickleMachine;
    struct Opcode {
      std::uint8_t code;
      void (*run)(Machine& m);
    };
    static constexpr Opcode kOpcodes[] = {
        {0x80, [](Machine& m) { m.proto(); }},
        {'.', [](Machine& m) { m.stop(); }},
        {'(', [](Machine& m) { m.mark(); }},
        {'c', [](Machine& m) { m.global(); }},
        {'q', [](Machine& m) { m.put(m.take<std::uint8_t>()); }},
        {'r', [](Machine& m) { m.put(m.take<std::uint32_t>()); }},
        {'h', [](Machine& m) { m.get(m.take<std::uint8_t>()); }},
        {'j', [](Machine& m) { m.get(m.take<std::uint32_t>()); }},
        {'Q', [](Machine& m) { m.persistent(); }},
        {'R', [](Machine& m) { m.reduce("REDUCE"); }},
        {0x81, [](Machine& m) { m.reduce("NEWOBJ"); }},
        {'b', [](Machine& m) { m.build(); }},
        {'N', [](Machine& m) { m.push(Kind::none); }},
        {0x88, [](Machine& m) { m.push(Kind::boolean, 1); }},
        {0x89, [](Machine& m) { m.push(Kind::boolean, 0); }},
        {'K', [](Machine& m) { m.push_integer(m.take<std::uint8_t>()); }},
        {'M', [](Machine& m) { m.push_integer(m.take<std::uint16_t>()); }},
        {'J', [](Machine& m) { m.push_integer(m.take<std::int32_t>()); }},
        {0x8A, [](Machine& m) { m.long_number(); }},
        {'G', [](Machine& m) { m.real(); }},
        {'I', [](Machine& m) { m.text_number(""); }},
        {'L', [](Machine& m) { m.text_number("L"); }},
        {'X', [](Machine& m) { m.push(m.text(Kind::text, m.take<std::uint32_t>())); }},
        {'U', [](Machine& m) { m.push(m.text(Kind::text, m.take<std::uint8_t>())); }},
        {')', [](Machine& m) { m.push(Kind::tuple); }},
        {0x85, [](Machine& m) { m.join(m.below(1)); }},
        {0x86, [](Machine& m) { m.join(m.below(2)); }},
        {0x87, [](Machine& m) { m.join(m.below(3)); }},
        {'t', [](Machine& m) { m.join(m.below_mark()); }},
        {']', [](Machine& m) { m.push(m.container(Kind::list)); }},
        {'}', [](Machine& m) { m.push(m.container(Kind::dict)); }},
        {0x8F, [](Machine& m) { m.push(m.container(Kind::set)); }},
        {'a', [](Machine& m) { m.add_items(Kind::list, m.below(1)); }},
        {'e', [](Machine& m) { m.add_items(Kind::list, m.below_mark()); }},
        {'s', [](Machine& m) { m.add_items(Kind::dict, m.below(2)); }},
        {'u', [](Machine& m) { m.add_items(Kind::dict, m.below_mark()); }},
    };
    static constexpr auto kByCode = [] {
      std::array<void (*)(Machine & m), 256> table = {};
      for (const Opcode& known : kOpcodes) table[known.code] = known.run;
      return table;
    }();
    if (kByCode[opcode] == nullptr) throw unknown(opcode);
    kByCode[opcode](*this);
  }

  Pickle& out_;
  PickleStore& values_;
  io::Cursor& cursor_;
  const std::uint64_t begin_;
  std::uint64_t at_ = 0;  // of the opcode being run
  std::uint64_t kept_ = 0;
  bool stopped_ = false;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<PickleValue> memo_;
  graph::TextMap<PickleValue> globals_;
};

Pickle::Pickle(io::Cursor& cursor) { PickleMachine(*this, cursor).run(); }

}  // namespace loadline::importers
