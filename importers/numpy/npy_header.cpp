// npy (numpy 2.x: numpy/lib/_format_impl.py), versions 1.0, 2.0, 3.0.
//
//   [0, 6)     93 "NUMPY"
//   [6, 8)     u8 major, u8 minor
//   [8, ..)    header length: u16 little-endian in 1.0, u32 from 2.0 on
//   then       {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, spaces, line feed
//   then       the array
#include "importers/numpy/npy_header.h"

#include "core/base/text.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr int kMostNesting = 32;
constexpr std::size_t kMostRank = 64;  // numpy's own limit

// Parses everything that a header can hold: strings, booleans and tuples of whole numbers; lists are skipped.
class Literals {
 public:
  Literals(std::string_view text, const ErrorPlace& place) : text_(text), place_(place) {}

  NpyHeader header() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    const auto once = [&](bool& seen, std::string_view key) {
      if (std::exchange(seen, true)) throw malformed("'{}' occurs twice", key);
    };
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        once(has_descr, key);
        read_descr(header);
      } else if (key == "fortran_order") {
        once(has_order, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(has_shape, key);
        header.shape = shape();
      } else {
        throw malformed("has an unknown key '{}'", safe_display(key, 60));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) throw malformed("goes on after its dict");
    if (!has_descr || !has_order || !has_shape)
      throw malformed("has no '{}'", !has_descr ? "descr" : !has_order ? "fortran_order" : "shape");
    return header;
  }

 private:
  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, place_, "the npy header {}",
                 fmt::vformat(detail, fmt::make_format_args(values...)));
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  char next() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) throw malformed("lacks a '{}' at byte {}", wanted, at_);
  }

  std::string string() {
    const char quote = next();
    if (quote != '\'' && quote != '"') throw malformed("lacks a string at byte {}", at_);
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw malformed("has a string without its end");
    const std::string_view held = text_.substr(at_ + 1, end - at_ - 1);
    if (held.find('\\') != std::string_view::npos) throw malformed("has an escape in a string");
    at_ = end + 1;
    return std::string(held);
  }

  bool boolean() {
    next();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    throw malformed("has a fortran_order that is neither True nor False");
  }

  std::vector<std::uint64_t> shape() {
    std::vector<std::uint64_t> result;
    expect('(');
    while (!accept(')')) {
      next();
      std::uint64_t number = 0;
      const auto [end, failure] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      if (failure != std::errc()) throw malformed("has a shape that is no tuple of whole numbers from 0 on");
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // Python 2
      if (result.size() == kMostRank) throw malformed("has more than {} dimensions", kMostRank);
      result.push_back(number);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  void read_descr(NpyHeader& header) {
    if (next() == '[') {
      skip_list();
      header.descr = "a record";
      return;
    }
    header.descr = string();
    settle_type(header);
  }

  // Skips a list of fields.
  void skip_list() {
    int depth = 0;
    do {
      const char c = next();
      if (c == '\'' || c == '"') {
        string();
        continue;
      }
      if (c == '\0') throw malformed("has a list without its end");
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      if (depth > kMostNesting) throw malformed("has fields nested too deep");
      ++at_;
    } while (depth > 0);
  }

  // Parses "[<>|=] kind size". Numbers get a dtype; numpy's other types stay opaque bytes.
  void settle_type(NpyHeader& header) const {
    std::string_view rest = header.descr;
    char order = '|';
    if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != std::string_view::npos) {
      order = rest[0];
      rest.remove_prefix(1);
    }
    if (rest.empty()) throw malformed("has an empty descr");
    const char kind = rest[0];
    if (std::string_view("?biufcSaUVOmM").find(kind) == std::string_view::npos)
      throw malformed("has a descr '{}' that is no type of numpy", safe_display(header.descr, 60));
    if (kind == 'O') return;
    std::uint64_t size = kind == '?' ? 1 : 0;
    if (kind != '?') {
      const auto [end, failure] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), size);
      const bool unit = (kind == 'm' || kind == 'M') && *end == '[';  // M8[ns]
      if (failure != std::errc() || (end != rest.data() + rest.size() && !unit) || size > UINT32_MAX)
        throw malformed("has a descr '{}' that is no type of numpy", safe_display(header.descr, 60));
    }
    header.item_bytes = kind == 'U' ? 4 * size : size;
    const std::string code = fmt::format("{}{}", kind == '?' ? "b" : std::string(1, kind), size);
    const auto dtype =
        size == 1 ? dtype_from(&DTypeInfo::npy, "|" + code) : dtype_from(&DTypeInfo::npy, "<" + code);
    header.dtype = dtype.value_or(DType::opaque);
    if (dtype && order == '>' && size > 1)
      header.swapped = static_cast<std::uint8_t>(kind == 'c' ? size / 2 : size);
  }

  std::string_view text_;
  const ErrorPlace& place_;
  std::size_t at_ = 0;
};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

NpyHeader read_npy_header(const std::function<std::string(std::uint64_t)>& take, const ErrorPlace& place) {
  const std::string front = take(8);
  if (!front.starts_with(kNpyMagic)) throw Error(ErrorCode::malformed, place, "is no npy array");
  const int major = static_cast<unsigned char>(front[6]), minor = static_cast<unsigned char>(front[7]);
  if (major < 1 || major > 3 || minor != 0)
    throw Error(ErrorCode::unsupported, place, "npy version {}.{}, the newest known is 3.0", major, minor);
  const std::uint64_t length_bytes = major == 1 ? 2 : 4;
  const std::uint64_t length = little_endian(take(length_bytes));
  if (length > kMostNpyHeader)
    throw Error(ErrorCode::limit, place, "the npy header has {} bytes, the limit is {}", length,
                kMostNpyHeader);
  const std::string text = take(length);
  NpyHeader header = Literals(text, place).header();
  header.data = 8 + length_bytes + length;
  return header;
}

}  // namespace loadline
