// Values and expressions over a configuration: the language of all data files.
#pragma once

#include "core/base/error.h"
#include "core/graph/forward_graph.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace loadline::assets {

// --- The value type of expressions in architecture and profile assets.

// A value of a configuration or of an expression over it. Null stands for an absent key. True and false are 1
// and 0. Sizes that depend on batch, sequence and past are polynomials; a polynomial without symbols is
// always held as a whole number.
class Datum {
 public:
  // `total` counts all values in the list and in the lists inside it. A list held several times counts each
  // time.
  struct ListData {
    std::vector<Datum> items;
    std::uint64_t total = 0;
  };
  using List = std::shared_ptr<const ListData>;
  struct Object {  // a nested object of a configuration; its fields are read by their own dotted keys
    std::int64_t fields = 0;
    bool operator==(const Object&) const = default;
  };

  Datum() = default;
  Datum(std::int64_t number) : value_(number) {}
  Datum(double number) : value_(number) {}
  Datum(std::string text) : value_(std::move(text)) {}
  Datum(std::vector<Datum> list);
  Datum(Object object) : value_(object) {}
  Datum(const graph::SizePoly& poly);

  bool null() const { return std::holds_alternative<std::monostate>(value_); }
  const std::int64_t* number() const { return std::get_if<std::int64_t>(&value_); }
  const graph::SizePoly* poly() const { return std::get_if<graph::SizePoly>(&value_); }
  const double* real() const { return std::get_if<double>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const std::vector<Datum>* list() const {
    const List* const list = std::get_if<List>(&value_);
    return list == nullptr ? nullptr : &(*list)->items;
  }
  const Object* object() const { return std::get_if<Object>(&value_); }
  // The most values that a comparison may have to visit.
  std::uint64_t total() const {
    const List* const list = std::get_if<List>(&value_);
    return list == nullptr ? 1 : (*list)->total;
  }
  // A whole number or a polynomial, as a polynomial; nothing for other values.
  std::optional<graph::SizePoly> size() const;
  // False for null, 0, an empty text and an empty list; else true.
  bool truth() const;
  // The value as messages show it: "7", "'gelu'", "[2 values]", "null".
  std::string shown() const;

  friend bool operator==(const Datum& a, const Datum& b);

 private:
  std::variant<std::monostate, std::int64_t, graph::SizePoly, double, std::string, List, Object> value_;
};

// --- Expressions in architecture and profile assets: sizes and conditions over a configuration's keys.
//
//   expr    := choice            choice := either ["?" expr ":" expr]       either := or {"??" or}
//   or      := and {"or" and}    and := not {"and" not}                     not := ["not"] compare
//   compare := sum [("==" | "!=" | "<" | "<=" | ">" | ">=" | "in") sum]
//   sum     := product {("+" | "-") product}       product := unary {("*" | "/" | "%") unary}
//   unary   := ["-"] postfix                       postfix := primary {"[" expr "]"}
//   primary := number | 'text' | name {"." name} | name "(" [expr {"," expr}] ")" | "(" expr ")" | "[" list
//   "]"
//
// A number may have a fraction, "0.25", but no exponent. "/" must divide without a remainder, which exposes a
// wrong key early. An undefined name is null. `a ?? b` is b if a is null; any other use of null is an Error.

// A place in an asset, counted from 1.
struct AssetPlace {
  std::shared_ptr<const std::string> file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  AssetPlace moved(std::size_t columns) const {
    return {file, line, column + static_cast<std::uint32_t>(columns)};
  }
  // Throws Error: `FILE: line 12, column 7: DETAIL`.
  [[noreturn]] void fail(std::string_view detail, ErrorCode code = ErrorCode::malformed) const;
  template <typename First, typename... Rest>
  [[noreturn]] void fail(fmt::format_string<First, Rest...> detail, const First& first,
                         const Rest&... rest) const {
    fail(fmt::vformat(detail, fmt::make_format_args(first, rest...)));
  }
};

// Gives names and functions their meaning. Every expression has the functions min and max (of whole numbers),
// cdiv(a, b) = a / b rounded up, floor(a) of a fraction, len(list or object), count(list, value).
struct Scope {
  std::function<Datum(std::string_view name)> name;
  // Called before the common functions. Nothing for a function that the scope does not define.
  std::function<std::optional<Datum>(std::string_view function, std::span<const Datum> arguments)> call;
  // Remaining operations, shared by all expressions of the scope; null: no limit.
  std::uint64_t* work = nullptr;
};

class Expression {
 public:
  Expression() = default;  // null
  // Parses the whole of `text` as one expression. `place` is the place of its first character.
  static Expression parse(std::string_view text, const AssetPlace& place);
  // Parses one expression at the beginning of `text`. Returns it with the number of characters it takes.
  static std::pair<Expression, std::size_t> parse_beginning(std::string_view text, const AssetPlace& place);

  // Throws Error{malformed} at the place of an operator that cannot be applied, and Error{limit} if a result
  // does not fit in 64 bits.
  Datum evaluate(const Scope& scope) const;
  const AssetPlace& place() const { return place_; }
  const std::string& text() const { return text_; }

 private:
  struct Node;
  friend class ExpressionParser;
  friend class Evaluation;
  std::shared_ptr<const std::vector<Node>> nodes_;  // children before parents
  std::string text_;
  AssetPlace place_;
};

}  // namespace loadline::assets
