// What the parsers of lines share: a scanner of one line, and the parsed form of an expression.
#pragma once

#include "core/assets/expression.h"
#include "core/base/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace loadline::assets {

// --- The common base of the parsers of asset lines; for expression_parser.cpp,
// core/forward/family/operators.cpp and core/forward/gguf/gguf_family.cpp only.

// A position in one line of an asset.
class AssetScanner {
 public:
  AssetScanner(std::string_view text, const AssetPlace& place) : text_(text), place_(place) {}

  std::size_t position() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }
  void skip_space() {
    while (!at_end() && text_[at_] == ' ') ++at_;
  }
  template <typename... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> detail, const Values&... values) const {
    place_.moved(at_).fail(fmt::vformat(detail, fmt::make_format_args(values...)));
  }

 protected:
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
  }

  std::string_view peek_word() {
    skip_space();
    std::size_t end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  bool word_is(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }
  std::string word(std::string_view what) {
    const std::string_view found = peek_word();
    if (found.empty()) fail("{} expected", what);
    at_ += found.size();
    return std::string(found);
  }
  bool take(char c) {
    skip_space();
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail("'{}' expected", c);
  }
  Expression expression() {
    skip_space();
    auto [parsed, length] = Expression::parse_beginning(text_.substr(at_), place_.moved(at_));
    at_ += length;
    return parsed;
  }

  // A name with its "{i}", up to a character of another kind.
  std::string name() {
    const std::size_t begin = at_;
    while (!at_end() &&
           (is_name(text_[at_]) || text_[at_] == '.' || text_[at_] == '{' || text_[at_] == '-')) {
      if (text_[at_] == '{') at_ = std::min(text_.find('}', at_), text_.size() - 1);
      ++at_;
    }
    if (at_ == begin) fail("a tensor's name expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  AssetPlace place_;
  std::size_t at_ = 0;
};

// --- The parsed form of an expression; for expression*.cpp only.

struct Expression::Node {
  enum class Kind : std::uint8_t {
    literal,
    name,
    call,
    list,
    index,
    negate,
    logical_not,
    choice,
    otherwise,  // ??
    logical_or,
    logical_and,
    equal,
    unequal,
    less,
    less_equal,
    greater,
    greater_equal,
    contains,  // in
    add,
    subtract,
    multiply,
    divide,
    remainder,
  };
  Kind kind = Kind::literal;
  std::uint32_t at = 0;                      // offset in the text
  Datum literal = {};                        // of a literal
  std::string name = {};                     // of a name or a function
  std::vector<std::uint32_t> children = {};  // positions among the nodes
};

}  // namespace loadline::assets
