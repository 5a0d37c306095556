// The value type of expressions in architecture and profile assets.
#pragma once

#include "core/graph/size_poly.h"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace loadline {

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
  Datum(const SizePoly& poly);

  bool null() const { return std::holds_alternative<std::monostate>(value_); }
  const std::int64_t* number() const { return std::get_if<std::int64_t>(&value_); }
  const SizePoly* poly() const { return std::get_if<SizePoly>(&value_); }
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
  std::optional<SizePoly> size() const;
  // False for null, 0, an empty text and an empty list; else true.
  bool truth() const;
  // The value as messages show it: "7", "'gelu'", "[2 values]", "null".
  std::string shown() const;

  friend bool operator==(const Datum& a, const Datum& b);

 private:
  std::variant<std::monostate, std::int64_t, SizePoly, double, std::string, List, Object> value_;
};

}  // namespace loadline
