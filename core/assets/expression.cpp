// Evaluates expressions; truth, comparison and display of their values.
#include "core/assets/expression.h"

#include "core/assets/parsing.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace loadline::assets {

void AssetPlace::fail(std::string_view detail, ErrorCode code) const {
  throw Error(code, {.file = file ? *file : std::string()}, "line {}, column {}: {}", line, column, detail);
}

// --- Evaluates parsed expressions.

class Evaluation {
 public:
  using Node = Expression::Node;
  using Kind = Node::Kind;

  Evaluation(const Expression& expression, const Scope& scope)
      : nodes_(*expression.nodes_), place_(expression.place_), scope_(scope) {}

  Datum value(std::size_t at) const {
    const Node& node = nodes_[at];
    spend(node, 1);
    const auto child = [&](std::size_t i) { return value(node.children[i]); };
    switch (node.kind) {
      case Kind::literal:
        return node.literal;
      case Kind::name:
        return name(node.name);
      case Kind::call:
        return call(node);
      case Kind::list: {
        std::vector<Datum> values;
        for (const std::uint32_t one : node.children) values.push_back(value(one));
        Datum list(std::move(values));
        constexpr std::uint64_t kMostValues = 100'000;
        if (list.total() > kMostValues) fail(node, "a list of more than 100,000 values");
        return list;
      }
      case Kind::index:
        return element(node, child(0), child(1));
      case Kind::choice:
        return child(child(0).truth() ? 1 : 2);
      case Kind::otherwise: {
        Datum first = child(0);
        return first.null() ? child(1) : first;
      }
      case Kind::logical_not:
        return Datum(std::int64_t{!child(0).truth()});
      case Kind::logical_or:
        return Datum(std::int64_t{child(0).truth() || child(1).truth()});
      case Kind::logical_and:
        return Datum(std::int64_t{child(0).truth() && child(1).truth()});
      case Kind::equal:
        return Datum(std::int64_t{equal(node, child(0), child(1))});
      case Kind::unequal:
        return Datum(std::int64_t{!equal(node, child(0), child(1))});
      case Kind::contains:
        return Datum(std::int64_t{contains(node, child(0), child(1))});
      case Kind::less:
      case Kind::less_equal:
      case Kind::greater:
      case Kind::greater_equal:
        return Datum(std::int64_t{in_order(node, child(0), child(1))});
      case Kind::negate:
        return arithmetic(node, Kind::subtract, Datum(std::int64_t{0}), child(0));
      case Kind::add:
      case Kind::subtract:
      case Kind::multiply:
      case Kind::divide:
      case Kind::remainder:
        return arithmetic(node, node.kind, child(0), child(1));
    }
    fail(node, "an unknown operator");
  }

 private:
  template <typename... Values>
  [[noreturn]] void fail(const Node& node, fmt::format_string<Values...> detail,
                         const Values&... values) const {
    place_.moved(node.at).fail(fmt::vformat(detail, fmt::make_format_args(values...)));
  }
  [[noreturn]] void too_large(const Node& node, std::string_view detail) const {
    place_.moved(node.at).fail(detail, ErrorCode::limit);
  }

  // Limits the work, since asset and configuration decide how often expressions run and how long lists are.
  void spend(const Node& node, std::uint64_t operations) const {
    if (scope_.work == nullptr) return;
    if (*scope_.work < operations) fail(node, "the expressions of this asset take too many operations");
    *scope_.work -= operations;
  }

  Datum name(const std::string& of) const {
    if (of == "true" || of == "false") return Datum(std::int64_t{of == "true"});
    return scope_.name && of != "null" ? scope_.name(of) : Datum();
  }

  // For messages: the name of the operand that is null, if it is a name.
  std::string missing(const Node& node, std::size_t child) const {
    const Node& operand = nodes_[node.children[child]];
    if (operand.kind != Kind::name) return "an operand is null";
    return fmt::format("'{}' is missing", safe_display(operand.name, 60));
  }

  std::string out_of_range(const Node& node, std::int64_t at, std::size_t size) const {
    const Node& operand = nodes_[node.children[0]];
    const bool named = operand.kind == Kind::name;
    return fmt::format("{} has {} {}, position {} (from 0) is asked for",
                       named ? fmt::format("'{}'", safe_display(operand.name, 60)) : std::string("a list"),
                       size, size == 1 ? "entry" : "entries", at);
  }

  Datum element(const Node& node, const Datum& of, const Datum& position) const {
    const std::vector<Datum>* const list = of.list();
    if (of.null()) fail(node, "{}", missing(node, 0));
    if (list == nullptr || position.number() == nullptr)
      fail(node, "{}[{}]: a list and a whole number expected", of.shown(), position.shown());
    const std::int64_t at = *position.number();
    if (at < 0 || static_cast<std::uint64_t>(at) >= list->size())
      fail(node, "{}", out_of_range(node, at, list->size()));
    return (*list)[static_cast<std::size_t>(at)];
  }

  bool equal(const Node& node, const Datum& a, const Datum& b) const {
    spend(node, std::min(a.total(), b.total()));
    return a == b;
  }

  bool contains(const Node& node, const Datum& what, const Datum& where) const {
    if (where.null()) return false;
    const std::vector<Datum>* const list = where.list();
    if (list == nullptr) fail(node, "in {}: a list expected", where.shown());
    spend(node, where.total());
    return std::ranges::find(*list, what) != list->end();
  }

  double real(const Node& node, std::size_t child, const Datum& of) const {
    if (of.null()) fail(node, "{}", missing(node, child));
    if (of.real() != nullptr) return *of.real();
    if (of.number() != nullptr) return static_cast<double>(*of.number());
    fail(node, "{} is not a number", of.shown());
  }

  bool in_order(const Node& node, const Datum& a, const Datum& b) const {
    const auto compare = [&](auto x, auto y) {
      if (node.kind == Kind::less) return x < y;
      if (node.kind == Kind::less_equal) return x <= y;
      return node.kind == Kind::greater ? x > y : x >= y;
    };
    if (a.number() != nullptr && b.number() != nullptr) return compare(*a.number(), *b.number());
    const double x = real(node, 0, a), y = real(node, 1, b);
    return compare(x, y);
  }

  Datum arithmetic(const Node& node, Kind kind, const Datum& a, const Datum& b) const {
    if (a.number() != nullptr && b.number() != nullptr) return whole(node, kind, *a.number(), *b.number());
    if (a.poly() != nullptr || b.poly() != nullptr) return symbolic(node, kind, a, b);
    const std::size_t second = node.children.size() - 1;
    const double x = real(node, 0, a), y = real(node, second, b);
    if (kind == Kind::add) return Datum(x + y);
    if (kind == Kind::subtract) return Datum(x - y);
    if (kind == Kind::multiply) return Datum(x * y);
    if (kind == Kind::divide && y != 0) return Datum(x / y);
    fail(node, "this needs whole numbers");
  }

  Datum whole(const Node& node, Kind kind, std::int64_t a, std::int64_t b) const {
    std::int64_t result = 0;
    bool overflow = false;
    if (kind == Kind::add) {
      overflow = __builtin_add_overflow(a, b, &result);
    } else if (kind == Kind::subtract) {
      overflow = __builtin_sub_overflow(a, b, &result);
    } else if (kind == Kind::multiply) {
      overflow = __builtin_mul_overflow(a, b, &result);
    } else {
      if (b == 0) fail(node, "{} divided by 0", a);
      if (b == -1 || a < 0 || b < 0) fail(node, "a division of negative numbers");
      if (kind == Kind::divide && a % b != 0) fail(node, "{} / {} leaves a remainder", a, b);
      result = kind == Kind::divide ? a / b : a % b;
    }
    if (overflow) too_large(node, fmt::format("{} and {}: the result does not fit in 64 bits", a, b));
    return Datum(result);
  }

  Datum symbolic(const Node& node, Kind kind, const Datum& a, const Datum& b) const {
    const auto operand = [&](const Datum& of, std::size_t child) {
      if (of.null()) fail(node, "{}", missing(node, child));
      const auto size = of.size();
      if (!size) fail(node, "{} is not a size", of.shown());
      return *size;
    };
    constexpr std::uint64_t kOperations = 10;  // a rough cost, since polynomials may have many terms
    spend(node, kOperations);
    const graph::SizePoly x = operand(a, 0), y = operand(b, node.children.size() - 1);
    std::optional<graph::SizePoly> result;
    if (kind == Kind::add) result = graph::SizePoly::sum(x, y);
    if (kind == Kind::multiply) result = graph::SizePoly::product(x, y);
    if (kind == Kind::subtract) {
      const auto negative = graph::SizePoly::product(y, graph::SizePoly(-1));
      if (negative) result = graph::SizePoly::sum(x, *negative);
    }
    if (kind == Kind::divide || kind == Kind::remainder)
      fail(node, "a size that depends on batch or sequence cannot be divided");
    if (!result) too_large(node, "the polynomial becomes too large");
    return Datum(*result);
  }

  Datum call(const Node& node) const {
    std::vector<Datum> arguments;
    for (const std::uint32_t child : node.children) arguments.push_back(value(child));
    if (scope_.call)
      if (auto result = scope_.call(node.name, arguments)) return *result;
    const auto expect = [&](bool fits) {
      if (fits) return;
      std::string shown;
      for (const Datum& one : arguments) shown += (shown.empty() ? "" : ", ") + one.shown();
      fail(node, "{}({}) is not possible", safe_display(node.name, 40), shown);
    };
    const auto number = [&](std::size_t i) { return arguments[i].number(); };
    if (node.name == "min" || node.name == "max" || node.name == "cdiv") {
      expect(arguments.size() == 2 && number(0) != nullptr && number(1) != nullptr);
      if (node.name == "min") return Datum(std::min(*number(0), *number(1)));
      if (node.name == "max") return Datum(std::max(*number(0), *number(1)));
      expect(*number(0) >= 0 && *number(1) > 0);
      return Datum(*number(0) / *number(1) + (*number(0) % *number(1) != 0 ? 1 : 0));
    }
    if (node.name == "floor") {
      expect(arguments.size() == 1 && (number(0) != nullptr || arguments[0].real() != nullptr));
      constexpr double kMost = 1e15;
      const double of = real(node, 0, arguments[0]);
      expect(of > -kMost && of < kMost);
      return Datum(static_cast<std::int64_t>(std::floor(of)));
    }
    if (node.name == "len") {
      expect(arguments.size() == 1 && (arguments[0].list() != nullptr || arguments[0].object() != nullptr));
      if (arguments[0].object() != nullptr) return Datum(arguments[0].object()->fields);
      return Datum(static_cast<std::int64_t>(arguments[0].list()->size()));
    }
    if (node.name == "count") {
      expect(arguments.size() == 2 && arguments[0].list() != nullptr);
      const std::vector<Datum>& list = *arguments[0].list();
      spend(node, arguments[0].total());
      return Datum(static_cast<std::int64_t>(std::ranges::count(list, arguments[1])));
    }
    fail(node, "there is no function '{}'", safe_display(node.name, 40));
  }

  const std::vector<Node>& nodes_;
  const AssetPlace& place_;
  const Scope& scope_;
};

Datum Expression::evaluate(const Scope& scope) const {
  if (!nodes_) return Datum();
  return Evaluation(*this, scope).value(nodes_->size() - 1);
}

// --- Truth, comparison and display of expression values.

Datum::Datum(std::vector<Datum> list) {
  std::uint64_t total = 1;
  for (const Datum& item : list)
    if (__builtin_add_overflow(total, item.total(), &total)) total = UINT64_MAX;
  value_ = std::make_shared<const ListData>(ListData{std::move(list), total});
}

Datum::Datum(const graph::SizePoly& poly) {
  if (const auto constant = poly.constant())
    value_ = *constant;
  else
    value_ = poly;
}

std::optional<graph::SizePoly> Datum::size() const {
  if (const std::int64_t* const whole = number()) return graph::SizePoly(*whole);
  if (const graph::SizePoly* const symbolic = poly()) return *symbolic;
  return std::nullopt;
}

bool Datum::truth() const {
  if (const std::int64_t* const whole = number()) return *whole != 0;
  if (const double* const fraction = real()) return *fraction != 0;
  if (const std::string* const words = text()) return !words->empty();
  if (const std::vector<Datum>* const values = list()) return !values->empty();
  return !null();
}

std::string Datum::shown() const {
  if (null()) return "null";
  if (const std::int64_t* const whole = number()) return fmt::format("{}", *whole);
  if (const double* const fraction = real()) return fmt::format("{}", *fraction);
  if (const std::string* const words = text()) return fmt::format("'{}'", safe_display(*words, 60));
  if (const std::vector<Datum>* const values = list()) return fmt::format("[{} values]", values->size());
  return poly() != nullptr ? "a size that depends on batch or sequence" : "an object";
}

bool operator==(const Datum& a, const Datum& b) {
  if (const std::vector<Datum>* const x = a.list()) {
    const std::vector<Datum>* const y = b.list();
    return y != nullptr && *x == *y;
  }
  // 1 and 1.0 are equal
  if (a.real() != nullptr && b.number() != nullptr) return *a.real() == static_cast<double>(*b.number());
  if (a.number() != nullptr && b.real() != nullptr) return b == a;
  return a.value_ == b.value_;
}

}  // namespace loadline::assets
