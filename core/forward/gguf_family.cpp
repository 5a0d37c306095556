// Parses an asset's JSON into a GgufFamily. Every line is parsed at once, so that any fault is reported.
#include "core/forward/gguf_family.h"

#include "core/base/text.h"
#include "core/forward/asset_folder.h"
#include "core/forward/asset_json.h"
#include "core/forward/asset_scanner.h"
#include "embedded/gguf_files.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace loadline {
namespace {

using Kind = AssetNode::Kind;

constexpr std::size_t kMostLines = 500;

struct TypeWord {
  std::string_view word;
  GgufType type;
};
constexpr TypeWord kTypes[] = {
    {"u32", GgufType::u32}, {"f32", GgufType::f32}, {"bool", GgufType::boolean}, {"str", GgufType::text}};

// "embedding_length u32 = d"
class KeyParser : public AssetScanner {
 public:
  using AssetScanner::AssetScanner;

  GgufKeyRule parse() {
    GgufKeyRule rule;
    skip_space();
    rule.name = name();
    rule.whole = rule.name.starts_with("general.") || rule.name.starts_with("tokenizer.");
    const std::string type = word("a type");
    const auto known = std::ranges::find(kTypes, std::string_view(type), &TypeWord::word);
    if (known == std::end(kTypes)) fail("there is no type '{}'", safe_display(type, 40));
    rule.type = known->type;
    expect('=');
    rule.value = expression();
    skip_space();
    if (!at_end()) fail("nothing more expected here");
    return rule;
  }
};

class FamilyParser {
 public:
  FamilyParser(std::string_view json, const std::string& path) : root_(parse_asset(json, path)) {
    result_.path = path;
  }

  GgufFamily parse() {
    result_.architecture = root_.at("architecture").expression("'architecture'");
    result_.model_types = texts("model_types");
    result_.classes = texts("classes");
    result_.prefixes = texts("prefix");
    if (const AssetNode* const spellings = root_.find("spellings"))
      result_.spellings = spellings->pairs("'spellings'", kMostAssetNames, kMostAssetName);
    result_.f32 = texts("f32");
    result_.drop = texts("drop");
    for_each_field(root_, "let", kMostAssetNames, [&](const std::string& key, const AssetNode& node) {
      result_.let.emplace_back(key, node.expression("'let'"));
    });
    for_each_field(root_, "refuse", kMostAssetNames, [&](const std::string& reason, const AssetNode& node) {
      result_.refuse.emplace_back(reason, node.expression("'refuse'"));
    });
    for (const AssetNode& item : lines("keys"))
      result_.keys.push_back(KeyParser(item.text, item.place).parse());
    for (const AssetNode& item : lines("tensors"))
      result_.tensors.push_back(parse_name_rule(item.text, item.place));
    blocks();
    return std::move(result_);
  }

 private:
  std::vector<std::string> texts(std::string_view key) {
    const AssetNode* const list = root_.find(key);
    return list == nullptr ? std::vector<std::string>()
                           : list->texts(fmt::format("'{}'", key), kMostAssetNames, kMostAssetName);
  }
  const std::vector<AssetNode>& lines(std::string_view key) {
    const AssetNode& list = root_.at(key);
    const std::string what = fmt::format("'{}'", key);
    list.as(Kind::list, what).at_most(kMostLines, what);
    for (const AssetNode& item : list.items) item.as(Kind::text, "a line");
    return list.items;
  }

  void blocks() {
    constexpr std::string_view kOthers[] = {"architecture", "about",  "model_types", "classes",
                                            "let",          "keys",   "tensors",     "prefix",
                                            "spellings",    "refuse", "f32",         "drop"};
    root_.at_most(kMostAssetNames, "an asset");
    for (const std::string& name : root_.keys)
      if (std::ranges::find(kOthers, std::string_view(name)) == std::end(kOthers))
        for (const AssetNode& item : lines(name))
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

  AssetNode root_;
  GgufFamily result_;
};

}  // namespace

GgufFamily parse_gguf_family(std::string_view json, const std::string& path) {
  return FamilyParser(json, path).parse();
}

std::span<const GgufFamily> built_in_gguf_families() {
  static const auto rows = parse_all(embedded::gguf_files(), parse_gguf_family);
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

}  // namespace loadline
