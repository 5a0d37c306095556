// The table of operators; the parser of a line.
#include "core/forward/family/operators.h"

#include "core/assets/parsing.h"
#include "core/base/text.h"

#include <algorithm>

namespace loadline::forward {

// --- Look-ups in the table of operators.

const OperatorInfo* find_operator(std::string_view name) {
  const auto found = std::ranges::find(kOperators, name, &OperatorInfo::name);
  return found == kOperators.end() ? nullptr : &*found;
}

std::string operator_list() {
  std::string names;
  for (const OperatorInfo& one : kOperators) names.append(names.empty() ? "" : ", ").append(one.name);
  return names;
}

// --- Scans a line from left to right.

namespace {

constexpr std::size_t kMostLine = 4000;  // bytes; the longest built-in line has 200
constexpr std::size_t kMostParts = 32;   // results, inputs, weights or attributes

class LineParser : public assets::AssetScanner {
 public:
  using assets::AssetScanner::AssetScanner;

  OpLine parse() {
    if (text_.size() > kMostLine) place_.fail("a line of {} bytes, the limit is {}", text_.size(), kMostLine);
    line_.place = place_;
    if (word_is("have"))
      have();
    else if (word_is("each"))
      each();
    else
      op();
    skip_space();
    if (!at_end()) fail("unexpected text after the end");
    return std::move(line_);
  }

 private:
  void each() {
    line_.kind = OpLine::Kind::each;
    line_.variable = word("the loop's name");
    if (is_pass_size(line_.variable)) fail("'{}' stands for a size of the pass", line_.variable);
    if (!word_is("in")) fail("'in' expected");
    line_.end = expression();
    if (word_is("to")) {
      line_.first = std::move(line_.end);
      line_.end = expression();
    }
    expect(':');
    line_.block = word("the name of a block");
    if (take('@')) line_.prefix = name();
    condition();
  }

  void have() {
    line_.stored_only = true;
    if (word_is("each")) return each();
    line_.kind = OpLine::Kind::have;
    while (take('@')) weight();
    if (line_.weights.empty()) fail("'@' and a name expected");
    condition();
  }

  void op() {
    do {
      bound(line_.outputs.size());
      line_.outputs.push_back(word("the name of a result"));
    } while (!peek_word().empty());
    expect('=');
    line_.op = word("an operator");
    while (true) {
      skip_space();
      if (at_end()) return;
      if (take('@')) {
        weight();
        continue;
      }
      const std::string_view next = peek_word();
      if (next == "if") return condition();
      bound(std::max(line_.inputs.size(), line_.attributes.size()));
      const std::string found = word("an input, '@', a key or 'if'");
      const assets::AssetPlace key = place_.moved(at_ - found.size());
      if (take('='))
        attribute(found, key);
      else if (line_.weights.empty() && line_.attributes.empty())
        line_.inputs.push_back(found);
      else
        fail("'=' expected: '{}' stands behind the inputs", safe_display(found, 40));
    }
  }

  // An attribute that the operator knows. Any other is a typing error, which would have no effect.
  void attribute(const std::string& name, const assets::AssetPlace& place) {
    const OperatorInfo* const known = find_operator(line_.op);
    if (known != nullptr && !has_word(known->attributes, name))
      place.fail("'{}' has no attribute '{}'{}{}", line_.op, safe_display(name, 40),
                 known->attributes.empty() ? "" : "; it has: ", known->attributes);
    line_.attributes.emplace_back(name, expression());
  }

  void condition() {
    if (word_is("if")) line_.condition = expression();
  }

  void bound(std::size_t parts) const {
    if (parts == kMostParts) fail("more than 32 results, inputs, weights or attributes");
  }

  void weight() {
    bound(line_.weights.size());
    WeightSpec& spec = line_.weights.emplace_back();
    spec.place = place_.moved(at_);
    spec.name = name();
    expect('[');
    if (!take(']')) {
      do spec.shape.push_back(expression());
      while (take(','));
      expect(']');
    }
    while (!at_end() && text_[at_] != ' ') flag(spec);
  }

  void flag(WeightSpec& spec) {
    if (take('!')) {
      spec.bare = true;
    } else if (take('~')) {
      spec.keep = true;
    } else if (take('?')) {
      spec.optional = true;
    } else if (take(':')) {
      const std::string dtype = word("a dtype");
      spec.dtype = graph::dtype_from(&graph::DTypeInfo::safetensors, dtype);
      if (!spec.dtype) fail("'{}' is not a dtype of safetensors", safe_display(dtype, 40));
      spec.keep = true;
    } else if (take('+')) {
      if (!take('b')) fail("'+b' expected");
      spec.bias = true;
      if (!at_end() && text_[at_] == '(') {
        ++at_;
        spec.bias_if = expression();
        expect(')');
      }
    } else {
      fail("'+b', '!', '~', '?' or ':' and a dtype expected");
    }
  }

  OpLine line_;
};

}  // namespace

OpLine parse_op_line(std::string_view text, const assets::AssetPlace& place) {
  return LineParser(text, place).parse();
}

}  // namespace loadline::forward
