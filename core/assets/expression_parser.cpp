// Recursive descent over one line, with bounded depth.
#include "core/assets/parsing.h"
#include "core/base/error.h"

#include <array>
#include <charconv>

namespace loadline::assets {

class ExpressionParser : public AssetScanner {
 public:
  using Node = Expression::Node;
  using Kind = Node::Kind;

  using AssetScanner::AssetScanner;

  std::uint32_t expression() {
    constexpr int kMostDepth = 50;
    if (++depth_ > kMostDepth) fail("nested more than 50 levels deep");
    const std::uint32_t root = choice();
    --depth_;
    return root;
  }

  Expression take(std::uint32_t root) {
    // evaluation begins at the last node
    if (root + 1 != nodes_.size()) throw Error(ErrorCode::malformed, "the root is not the last node");
    Expression result;
    result.nodes_ = std::make_shared<const std::vector<Node>>(std::move(nodes_));
    result.text_ = std::string(text_.substr(0, at_));
    result.place_ = place_;
    return result;
  }

 private:
  std::uint32_t add(Kind kind, std::size_t at, std::vector<std::uint32_t> children = {}) {
    constexpr std::size_t kMostNodes = 1000;
    if (nodes_.size() == kMostNodes) fail("longer than 1,000 parts");
    Node& node = nodes_.emplace_back();
    node.kind = kind;
    node.at = static_cast<std::uint32_t>(at);
    node.children = std::move(children);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  // Consumes the next token if it is exactly this one, not a longer token with the same beginning.
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const char next = at_ + token.size() < text_.size() ? text_[at_ + token.size()] : ' ';
    const bool word = is_name(token.back());
    if (word ? is_name(next) : (token == "?" && next == '?')) return false;
    if ((token == "<" || token == ">") && next == '=') return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail("'{}' expected", token);
  }
  std::uint32_t choice() {
    const std::uint32_t condition = logical(0);
    const std::size_t at = at_;
    if (!take("?")) return condition;
    const std::uint32_t yes = expression();
    expect(":");
    const std::uint32_t no = expression();
    return add(Kind::choice, at, {condition, yes, no});
  }

  struct Operator {
    std::string_view token;
    Kind kind;
  };

  const Operator* take_one(std::span<const Operator> operators) {
    for (const Operator& candidate : operators)
      if (take(candidate.token)) return &candidate;
    return nullptr;
  }

  template <typename Next>
  std::uint32_t chain(std::span<const Operator> operators, const Next& next) {
    std::uint32_t left = next();
    while (true) {
      skip_space();
      const std::size_t at = at_;
      const Operator* const found = take_one(operators);
      if (found == nullptr) return left;
      left = add(found->kind, at, {left, next()});
    }
  }

  // Weakest binding first; all bind weaker than "not".
  std::uint32_t logical(std::size_t strength) {
    static constexpr std::array<Operator, 3> kOperators = {
        {{"??", Kind::otherwise}, {"or", Kind::logical_or}, {"and", Kind::logical_and}}};
    if (strength == kOperators.size()) return negation();
    return chain(std::span(kOperators).subspan(strength, 1), [&] { return logical(strength + 1); });
  }

  std::uint32_t negation() {
    skip_space();
    const std::size_t at = at_;
    if (!take("not")) return comparison();
    const std::uint32_t of = comparison();
    return add(Kind::logical_not, at, {of});
  }
  std::uint32_t comparison() {
    static constexpr std::array<Operator, 7> kOperators = {{{"==", Kind::equal},
                                                            {"!=", Kind::unequal},
                                                            {"<=", Kind::less_equal},
                                                            {"<", Kind::less},
                                                            {">=", Kind::greater_equal},
                                                            {">", Kind::greater},
                                                            {"in", Kind::contains}}};
    const std::uint32_t left = sum();
    skip_space();
    const std::size_t at = at_;
    const Operator* const found = take_one(kOperators);
    if (found == nullptr) return left;
    const std::uint32_t right = sum();
    return add(found->kind, at, {left, right});
  }
  std::uint32_t sum() {
    static constexpr std::array<Operator, 2> kOperators = {{{"+", Kind::add}, {"-", Kind::subtract}}};
    return chain(kOperators, [this] { return product(); });
  }
  std::uint32_t product() {
    static constexpr std::array<Operator, 3> kOperators = {
        {{"*", Kind::multiply}, {"/", Kind::divide}, {"%", Kind::remainder}}};
    return chain(kOperators, [this] { return unary(); });
  }
  std::uint32_t unary() {
    skip_space();
    const std::size_t at = at_;
    if (!take("-")) return postfix();
    const std::uint32_t of = postfix();
    return add(Kind::negate, at, {of});
  }
  std::uint32_t postfix() {
    std::uint32_t of = primary();
    // an index follows without a space: "norm x [d]" is not an index
    while (!at_end() && text_[at_] == '[') {
      const std::size_t at = at_++;
      const std::uint32_t position = expression();
      expect("]");
      of = add(Kind::index, at, {of, position});
    }
    return of;
  }

  std::uint32_t primary() {
    skip_space();
    const std::size_t at = at_;
    if (at_end()) fail("an expression expected");
    if (take("(")) {
      const std::uint32_t inner = expression();
      expect(")");
      return inner;
    }
    if (take("[")) return add(Kind::list, at, arguments("]"));
    if (text_[at_] == '\'') return quoted();
    if (is_digit(text_[at_])) return number();
    if (is_name(text_[at_])) return named();
    fail("an expression expected");
  }

  std::vector<std::uint32_t> arguments(std::string_view end) {
    std::vector<std::uint32_t> list;
    if (take(end)) return list;
    do list.push_back(expression());
    while (take(","));
    expect(end);
    return list;
  }

  std::uint32_t quoted() {
    const std::size_t at = at_++;
    const std::size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a text without its closing quote");
    const std::uint32_t node = add(Kind::literal, at);
    nodes_[node].literal = Datum(std::string(text_.substr(at_, end - at_)));
    at_ = end + 1;
    return node;
  }

  std::uint32_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a number of more than 63 bits");
    const std::uint32_t node = add(Kind::literal, at_);
    nodes_[node].literal = Datum(value);
    const auto whole = static_cast<std::size_t>(end - text_.data());
    if (whole + 1 < text_.size() && text_[whole] == '.' && is_digit(text_[whole + 1])) {
      double fraction = 0;
      const auto [after, fault] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), fraction,
                                                  std::chars_format::fixed);
      if (fault != std::errc()) fail("a number that cannot be held");
      nodes_[node].literal = Datum(fraction);
      at_ = static_cast<std::size_t>(after - text_.data());
      return node;
    }
    at_ = whole;
    return node;
  }

  std::uint32_t named() {
    const std::size_t at = at_;
    while (!at_end() && (is_name(text_[at_]) || text_[at_] == '.')) ++at_;
    const std::string name(text_.substr(at, at_ - at));
    const bool is_call = !at_end() && text_[at_] == '(';
    if (is_call) ++at_;
    std::vector<std::uint32_t> children = is_call ? arguments(")") : std::vector<std::uint32_t>();
    const std::uint32_t node = add(is_call ? Kind::call : Kind::name, at, std::move(children));
    nodes_[node].name = name;
    return node;
  }

  int depth_ = 0;
  std::vector<Node> nodes_;
};

std::pair<Expression, std::size_t> Expression::parse_beginning(std::string_view text,
                                                               const AssetPlace& place) {
  ExpressionParser parser(text, place);
  const std::uint32_t root = parser.expression();
  const std::size_t end = parser.position();
  return {parser.take(root), end};
}

Expression Expression::parse(std::string_view text, const AssetPlace& place) {
  ExpressionParser parser(text, place);
  const std::uint32_t root = parser.expression();
  parser.skip_space();
  if (!parser.at_end()) parser.fail("unexpected text after the end");
  return parser.take(root);
}

}  // namespace loadline::assets
