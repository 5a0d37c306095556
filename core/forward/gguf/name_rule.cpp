// Scans a line from left to right.
#include "core/forward/gguf/name_rule.h"

#include "core/assets/parsing.h"
#include "core/base/text.h"

#include <algorithm>

namespace loadline {
namespace {

constexpr std::size_t kMostLine = 2000;  // bytes
constexpr std::size_t kMostSteps = 40;

struct StepWord {
  std::string_view word;
  NameStepKind kind;
  std::size_t least, most;  // numbers
};
constexpr StepWord kSteps[] = {
    {"permute", NameStepKind::permute, 1, 1}, {"turn", NameStepKind::turn, 2, 2},
    {"part", NameStepKind::part, 3, 3},       {"half", NameStepKind::half, 2, 2},
    {"shape", NameStepKind::shape, 1, 8},     {"transpose", NameStepKind::transpose, 0, 0},
    {"add", NameStepKind::add, 1, 1},
};

class RuleParser : public AssetScanner {
 public:
  using AssetScanner::AssetScanner;

  NameRule parse() {
    if (text_.size() > kMostLine) place_.fail("a line of {} bytes, the limit is {}", text_.size(), kMostLine);
    rule_.place = place_;
    if (word_is("each"))
      each();
    else
      tensor();
    if (word_is("if")) rule_.condition = expression();
    skip_space();
    if (!at_end()) fail("nothing more expected here");
    return std::move(rule_);
  }

 private:
  void each() {
    rule_.variable = word("the loop's name");
    if (!word_is("in")) fail("'in' expected");
    rule_.count = expression();
    expect(':');
    rule_.block = word("the name of a block");
    expect('@');
    skip_space();
    rule_.name = name();
    expect('=');
    skip_space();
    rule_.source = name();
  }

  void tensor() {
    skip_space();
    rule_.name = name();
    rule_.whole = take('!');
    expect('=');
    chain();
  }

  // Returns the position of its last step.
  std::uint32_t chain() {
    std::uint32_t last = operand();
    while (take('|')) last = step(last);
    return last;
  }

  std::uint32_t operand() {
    if (word_is("stack")) {
      NameRuleStep& step = add(NameStepKind::stack);
      step.variable = word("the loop's name");
      if (!word_is("in")) fail("'in' expected");
      step.numbers.push_back(expression());
      expect(':');
      return source(step);
    }
    skip_space();
    const std::size_t begin = at_;
    if (word_is("join") && take('(')) {
      std::vector<std::uint32_t> inputs;
      do inputs.push_back(chain());
      while (take(','));
      expect(')');
      add(NameStepKind::join).inputs = std::move(inputs);
      return last();
    }
    at_ = begin;
    if (word_is("values") && take('(')) {
      add(NameStepKind::values).numbers.push_back(expression());
      expect(')');
      return last();
    }
    at_ = begin;
    return source(add(NameStepKind::source));
  }

  std::uint32_t source(NameRuleStep& step) {
    skip_space();
    step.name = name();
    step.whole = take('!');
    return last();
  }

  std::uint32_t step(std::uint32_t input) {
    const std::string found = word("a step");
    const auto known = std::ranges::find(kSteps, std::string_view(found), &StepWord::word);
    if (known == std::end(kSteps)) fail("there is no step '{}'", safe_display(found, 40));
    NameRuleStep& step = add(known->kind);
    step.inputs = {input};
    if (take('(')) {
      do step.numbers.push_back(expression());
      while (take(','));
      expect(')');
    }
    if (step.numbers.size() < known->least || step.numbers.size() > known->most)
      fail("'{}' takes {} to {} numbers", known->word, known->least, known->most);
    return last();
  }

  NameRuleStep& add(NameStepKind kind) {
    if (rule_.steps.size() == kMostSteps) fail("more than {} steps", kMostSteps);
    NameRuleStep& step = rule_.steps.emplace_back();
    step.kind = kind;
    step.place = place_.moved(at_);
    return step;
  }
  std::uint32_t last() const { return static_cast<std::uint32_t>(rule_.steps.size() - 1); }

  NameRule rule_;
};

}  // namespace

NameRule parse_name_rule(std::string_view text, const AssetPlace& place) {
  return RuleParser(text, place).parse();
}

}  // namespace loadline
