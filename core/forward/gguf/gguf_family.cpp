// Parses a family and its rules; the built-in ones.
#include "core/forward/gguf/gguf_family.h"

#include "core/assets/asset_file.h"
#include "core/assets/parsing.h"
#include "core/base/text.h"
#include "embedded/gguf_files.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

namespace loadline::forward {

// --- Parses an asset's JSON into a GgufFamily. Every line is parsed at once, so that any fault is reported.

namespace {

using Kind = assets::AssetNode::Kind;

constexpr std::size_t kMostLines = 500;

struct TypeWord {
  std::string_view word;
  GgufType type;
};
constexpr TypeWord kTypes[] = {
    {"u32", GgufType::u32}, {"f32", GgufType::f32}, {"bool", GgufType::boolean}, {"str", GgufType::text}};

struct ConfigWord {
  std::string_view word;
  ConfigType type;
};
constexpr ConfigWord kConfigTypes[] = {{"int", ConfigType::whole},    {"real", ConfigType::real},
                                       {"bool", ConfigType::boolean}, {"str", ConfigType::text},
                                       {"list", ConfigType::list},    {"let", ConfigType::local}};

// "embedding_length u32 = d"
class KeyParser : public assets::AssetScanner {
 public:
  using assets::AssetScanner::AssetScanner;

  template <typename Row, std::size_t count>
  auto type(const Row (&rows)[count]) {
    const std::string found = word("a type");
    const auto known = std::ranges::find(rows, std::string_view(found), &Row::word);
    if (known == std::end(rows)) fail("there is no type '{}'", safe_display(found, 40));
    return known->type;
  }
  assets::Expression value() {
    expect('=');
    assets::Expression found = expression();
    skip_space();
    if (!at_end()) fail("unexpected text after the end");
    return found;
  }

  GgufKeyRule parse() {
    GgufKeyRule rule;
    skip_space();
    rule.name = name();
    rule.whole = rule.name.starts_with("general.") || rule.name.starts_with("tokenizer.");
    rule.type = type(kTypes);
    rule.value = value();
    return rule;
  }

  ConfigRule parse_config() {
    ConfigRule rule;
    skip_space();
    rule.name = name();
    rule.type = type(kConfigTypes);
    rule.write_null = take('?');
    rule.value = value();
    return rule;
  }
};

class FamilyParser {
 public:
  FamilyParser(std::string_view json, const std::string& path) : root_(assets::parse_asset(json, path)) {
    result_.path = path;
  }

  GgufFamily parse() {
    result_.architecture = root_.at("architecture").expression("'architecture'");
    result_.model_types = texts("model_types");
    result_.classes = texts("classes");
    result_.prefixes = texts("prefix");
    if (const assets::AssetNode* const spellings = root_.find("spellings"))
      result_.spellings = spellings->pairs("'spellings'", assets::kMostAssetNames, assets::kMostAssetName);
    result_.f32 = texts("f32");
    result_.drop = texts("drop");
    result_.reads = texts("reads");
    result_.let = expressions("let");
    result_.rope = texts("rope");
    result_.settings = expressions("settings");
    result_.notes = expressions("notes");
    result_.remarks = expressions("remarks");
    result_.flags = expressions("flags");
    for (const assets::AssetNode& item : lines("keys"))
      result_.keys.push_back(KeyParser(item.text, item.place).parse());
    for (const assets::AssetNode& item : lines("tensors"))
      result_.tensors.push_back(parse_name_rule(item.text, item.place));
    if (root_.find("config") != nullptr)
      for (const assets::AssetNode& item : lines("config"))
        result_.config.push_back(KeyParser(item.text, item.place).parse_config());
    blocks();
    return std::move(result_);
  }

 private:
  std::vector<std::string> texts(std::string_view key) {
    const assets::AssetNode* const list = root_.find(key);
    return list == nullptr
               ? std::vector<std::string>()
               : list->texts(fmt::format("'{}'", key), assets::kMostAssetNames, assets::kMostAssetName);
  }
  std::vector<std::pair<std::string, assets::Expression>> expressions(std::string_view key) {
    std::vector<std::pair<std::string, assets::Expression>> found;
    assets::for_each_field(root_, key, assets::kMostAssetNames,
                           [&](const std::string& name, const assets::AssetNode& node) {
                             found.emplace_back(name, node.expression(fmt::format("'{}'", key)));
                           });
    return found;
  }
  const std::vector<assets::AssetNode>& lines(std::string_view key) {
    const assets::AssetNode& list = root_.at(key);
    const std::string what = fmt::format("'{}'", key);
    list.as(Kind::list, what).at_most(kMostLines, what);
    for (const assets::AssetNode& item : list.items) item.as(Kind::text, "a line");
    return list.items;
  }

  void blocks() {
    constexpr std::string_view kOthers[] = {"architecture", "about",   "model_types", "classes",   "let",
                                            "keys",         "tensors", "prefix",      "spellings", "rope",
                                            "settings",     "notes",   "f32",         "drop",      "reads",
                                            "config",       "remarks", "flags"};
    root_.at_most(assets::kMostAssetNames, "an asset");
    for (const std::string& name : root_.keys)
      if (std::ranges::find(kOthers, std::string_view(name)) == std::end(kOthers))
        for (const assets::AssetNode& item : lines(name))
          result_.blocks[name].push_back(parse_name_rule(item.text, item.place));
    check(result_.tensors, true);
    for (const auto& [name, rules] : result_.blocks) check(rules, false);
  }

  void check(const std::vector<NameRule>& rules, bool loops) const {
    for (const NameRule& rule : rules) {
      if (!rule.loop()) continue;
      if (!loops) rule.place.fail("a loop within a block");
      if (!result_.blocks.contains(rule.block))
        rule.place.fail("there is no block '{}'", safe_display(rule.block, 40));
    }
  }

  assets::AssetNode root_;
  GgufFamily result_;
};

}  // namespace

GgufFamily parse_gguf_family(std::string_view json, const std::string& path) {
  return FamilyParser(json, path).parse();
}

std::span<const GgufFamily> built_in_gguf_families() {
  static const auto rows = assets::parse_all(embedded::gguf_files(), parse_gguf_family);
  return rows;
}

const GgufFamily* find_gguf_family(const ModelConfig& config) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  const auto families = built_in_gguf_families();
  for (const std::string& name : config.architectures())
    for (const GgufFamily& family : families)
      if (has(family.classes, name)) return &family;
  for (const GgufFamily& family : families)
    if (has(family.model_types, config.model_type())) return &family;
  return nullptr;
}

const GgufFamily* find_gguf_reader(std::string_view architecture) {
  for (const GgufFamily& family : built_in_gguf_families())
    if (std::ranges::find(family.reads, architecture) != family.reads.end()) return &family;
  return nullptr;
}

// --- Scans a line from left to right.

namespace {

constexpr std::size_t kMostLine = 2000;  // bytes
constexpr std::size_t kMostSteps = 40;

struct StepWord {
  std::string_view word;
  NameStepKind kind;
  std::size_t least, most;  // arguments
};
constexpr StepWord kSteps[] = {
    {"permute", NameStepKind::permute, 1, 1}, {"turn", NameStepKind::turn, 2, 2},
    {"part", NameStepKind::part, 3, 3},       {"half", NameStepKind::half, 2, 2},
    {"shape", NameStepKind::shape, 1, 8},     {"transpose", NameStepKind::transpose, 0, 0},
    {"add", NameStepKind::add, 1, 1},
};

class RuleParser : public assets::AssetScanner {
 public:
  using assets::AssetScanner::AssetScanner;

  NameRule parse() {
    if (text_.size() > kMostLine) place_.fail("a line of {} bytes, the limit is {}", text_.size(), kMostLine);
    rule_.place = place_;
    if (word_is("each"))
      each();
    else
      tensor();
    if (word_is("if")) rule_.condition = expression();
    skip_space();
    if (!at_end()) fail("unexpected text after the end");
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
      step.arguments.push_back(expression());
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
      add(NameStepKind::values).arguments.push_back(expression());
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
      do step.arguments.push_back(expression());
      while (take(','));
      expect(')');
    }
    if (step.arguments.size() < known->least || step.arguments.size() > known->most)
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

NameRule parse_name_rule(std::string_view text, const assets::AssetPlace& place) {
  return RuleParser(text, place).parse();
}

}  // namespace loadline::forward
