// Parses a profile's JSON into a Profile.
#include "core/forward/pass/profile.h"

#include "core/assets/asset_file.h"
#include "core/base/text.h"
#include "core/forward/family/operators.h"
#include "embedded/profiles_files.h"

#include <algorithm>

#include <fmt/core.h>

namespace loadline::forward {
namespace {

using Kind = assets::AssetNode::Kind;

constexpr std::size_t kMostSizes = 16;  // temporaries of an operator
constexpr std::size_t kMostShared = 16;

std::string text(const assets::AssetNode& root, std::string_view key, std::string_view otherwise) {
  const assets::AssetNode* const node = root.find(key);
  return node == nullptr ? std::string(otherwise) : node->as(Kind::text, fmt::format("'{}'", key)).text;
}

std::optional<graph::DType> dtype(const assets::AssetNode& root, std::string_view key) {
  const std::string name = text(root, key, "model");
  if (name == "model") return std::nullopt;
  const auto found = graph::dtype_from(&graph::DTypeInfo::safetensors, name);
  if (!found || graph::dtype_info(*found).block_elements != 1)
    root.find(key)->place.fail("'{}' is neither a dtype nor 'model'", safe_display(name, 40));
  return found;
}

// "Mul 1 a": an operator that another one runs as, at the position `at` among such steps.
OpRule::Step step(const assets::AssetNode& node, std::size_t at) {
  const std::vector<std::string_view> words = split(node.name("a step", assets::kMostAssetName), ' ');
  const auto known = [&](std::string_view word) {
    const bool result = word.size() == 1 && word[0] >= 'a' && word[0] < static_cast<char>('a' + at);
    return result || (word.size() == 1 && word[0] >= '1' && word[0] <= '9');
  };
  if (words.size() < 2 || !std::all_of(words.begin() + 1, words.end(), known))
    node.place.fail("an operator, numbers of inputs and letters of earlier steps expected");
  return {std::string(words.front()), {words.begin() + 1, words.end()}};
}

OpRule rule(const assets::AssetNode& node) {
  OpRule result;
  node.as(Kind::object, "an operator").allow({"before",   "kept",   "temporaries", "in_place",
                                              "without",  "until",  "view",        "returned",
                                              "windowed", "stages", "to_end",      "output_to_end",
                                              "first",    "early",  "for",         "attributes",
                                              "steps",    "saves",  "backward",    "passes"});
  const auto sizes = [&](const char* key) {
    std::vector<assets::Expression> list;
    const assets::AssetNode* const found = node.find(key);
    if (found == nullptr) return list;
    const std::string what = fmt::format("'{}'", key);
    found->as(Kind::list, what).at_most(kMostSizes, what);
    for (const assets::AssetNode& item : found->items) list.push_back(item.expression("a size"));
    return list;
  };
  result.before = sizes("before");
  result.kept = sizes("kept");
  result.returned = sizes("returned");
  result.temporaries = sizes("temporaries");
  result.in_place = assets::find_expression(node, "in_place");
  result.until = assets::find_expression(node, "until");
  result.without = assets::find_expression(node, "without");
  result.view = assets::find_expression(node, "view");
  result.windowed = assets::find_expression(node, "windowed");
  result.stages = sizes("stages");
  result.to_end = sizes("to_end");
  if (node.find("saves") != nullptr) result.saves = sizes("saves");
  result.backward = sizes("backward");
  result.passes = assets::find_expression(node, "passes");
  result.first = assets::find_expression(node, "first");
  result.early = assets::find_expression(node, "early");
  result.output_to_end = assets::find_expression(node, "output_to_end");
  result.condition = assets::find_expression(node, "for");
  if (const assets::AssetNode* const known = node.find("attributes"))
    result.attributes = known->texts("'attributes'", assets::kMostAssetNames, assets::kMostAssetName);
  if (const assets::AssetNode* const steps = node.find("steps")) {
    steps->as(Kind::list, "'steps'").at_most(kMostSizes, "'steps'");
    for (const assets::AssetNode& one : steps->items) result.steps.push_back(step(one, result.steps.size()));
  }
  return result;
}

SharedValue shared(const std::string& name, const assets::AssetNode& node) {
  node.as(Kind::object, "a shared value").allow({"bytes", "ops", "if", "to_end"});
  const assets::AssetNode* const bytes = node.find("bytes");
  const assets::AssetNode* const ops = node.find("ops");
  if (bytes == nullptr || ops == nullptr) node.place.fail("'bytes' and 'ops' expected");
  return {name, bytes->expression("'bytes'"), assets::find_expression(node, "if"),
          ops->texts("'ops'", assets::kMostAssetNames, assets::kMostAssetName),
          assets::find_expression(node, "to_end").evaluate({}).truth()};
}

std::uint64_t token_count(const assets::AssetNode& root, std::string_view key) {
  const assets::Expression expression = assets::find_expression(root, key);
  const assets::Datum value = expression.evaluate({});
  if (value.null()) return 0;
  constexpr std::int64_t kMost = 1 << 24;
  if (value.number() == nullptr || *value.number() < 0 || *value.number() > kMost)
    expression.place().fail("'{}' is {}: a whole number from 0 to {} expected", key, value.shown(), kMost);
  return static_cast<std::uint64_t>(*value.number());
}

allocators::AllocatorModel pass_allocator(const assets::AssetNode& root) {
  const std::string id = text(root, "allocator", "exact");
  std::string ids;
  for (const allocators::AllocatorRow& row : allocators::allocators()) {
    if (!row.of_passes) continue;
    if (row.id == id) return row.model;
    ids += fmt::format("{}'{}'", ids.empty() ? "" : ", ", row.id);
  }
  root.find("allocator")->place.fail("one of " + ids + " expected");
}

// Checks the names of an architecture's operators; names in files are not limited to a list.
void check_operator(const Profile& profile, const std::string& name, const assets::AssetPlace& place) {
  if (profile.format.empty() && find_operator(name) == nullptr)
    place.fail("there is no operator '{}'; there are: {}", safe_display(name, 40), operator_list());
}

FileRules file_rules(const assets::AssetNode* root) {
  FileRules rules;
  if (root == nullptr) return rules;
  root->as(Kind::object, "'kernels'").allow({"plain", "movers", "types", "let"});
  const auto names = [&](const char* key) {
    const assets::AssetNode* const node = root->find(key);
    if (node == nullptr) return std::vector<std::string>();
    return node->texts(fmt::format("'{}'", key), 2 * assets::kMostAssetNames, assets::kMostAssetName);
  };
  const auto set = [&](const char* key) {
    const std::vector<std::string> list = names(key);
    return std::set<std::string, std::less<>>(list.begin(), list.end());
  };
  rules.plain = set("plain");
  rules.movers = set("movers");
  for (const std::string& name : names("types")) {
    const auto known = graph::dtype_from(&graph::DTypeInfo::safetensors, name);
    if (!known) root->find("types")->place.fail("'{}' is no dtype", safe_display(name, 40));
    rules.types.push_back(*known);
  }
  assets::for_each_field(*root, "let", assets::kMostAssetNames,
                         [&](const std::string& key, const assets::AssetNode& node) {
                           rules.let.emplace_back(key, node.expression("a name"));
                         });
  return rules;
}

}  // namespace

const OpRule& Profile::rule(std::string_view op) const {
  static const OpRule nothing;
  const auto found = ops.find(op);
  return found == ops.end() ? nothing : found->second;
}

std::optional<std::size_t> input_number(const assets::Expression& rule, const assets::Scope& scope) {
  const assets::Datum number = rule.evaluate(scope);
  if (!number.truth()) return std::nullopt;
  constexpr std::int64_t kMost = 8;
  if (number.number() == nullptr || *number.number() < 1 || *number.number() > kMost)
    rule.place().fail("the number of an input expected");
  return static_cast<std::size_t>(*number.number() - 1);
}

Profile parse_profile(std::string_view json, const std::string& path) {
  const assets::AssetNode root = assets::parse_asset(json, path);
  root.allow({"profile", "about", "operators", "activation", "cache", "logits", "allocator", "order",
              "shared", "reuse", "hold_block_inputs", "flags", "ops", "default_for", "micro_batch",
              "output_rows_at", "kernels"});
  Profile profile;
  profile.path = path;
  const assets::AssetNode* const id = root.find("profile");
  if (id == nullptr || id->text.empty()) root.place.fail("'profile' is missing");
  profile.id = id->name("'profile'", assets::kMostAssetName);
  profile.about = text(root, "about", "");
  if (const assets::AssetNode* const operators = root.find("operators"))
    profile.format = operators->name("'operators'", assets::kMostAssetName);
  if (profile.format == "asset") profile.format.clear();
  if (const assets::AssetNode* const format = root.find("default_for"))
    profile.default_for = format->name("'default_for'", assets::kMostAssetName);
  if (const assets::AssetNode* const at = root.find("output_rows_at")) {
    profile.output_rows_at = at->name("'output_rows_at'", assets::kMostAssetName);
    check_operator(profile, profile.output_rows_at, at->place);
  }
  profile.micro_batch = token_count(root, "micro_batch");
  profile.activation = dtype(root, "activation");
  profile.cache = dtype(root, "cache");
  const std::string logits = text(root, "logits", "last");
  if (logits != "last" && logits != "all") root.find("logits")->place.fail("'last' or 'all' expected");
  profile.all_logits = logits == "all";
  profile.hold_block_inputs = assets::find_expression(root, "hold_block_inputs").evaluate({}).truth();
  const std::string order = text(root, "order", "listed");
  if (order == "inputs_first")
    profile.order = OpOrder::inputs_first;
  else if (order == "last_first")
    profile.order = OpOrder::last_first;
  else if (order != "listed")
    root.find("order")->place.fail("'listed', 'inputs_first' or 'last_first' expected");
  profile.reuse = assets::find_expression(root, "reuse").evaluate({}).truth();
  profile.allocator = pass_allocator(root);
  assets::for_each_field(root, "flags", assets::kMostAssetNames,
                         [&](const std::string& key, const assets::AssetNode& node) {
                           profile.flags.emplace_back(key, node.expression("a flag").evaluate({}));
                         });
  assets::for_each_field(root, "shared", kMostShared,
                         [&](const std::string& key, const assets::AssetNode& node) {
                           profile.shared.push_back(shared(key, node));
                           for (const std::string& op : profile.shared.back().ops)
                             check_operator(profile, op, node.find("ops")->place);
                         });
  profile.file = file_rules(root.find("kernels"));
  assets::for_each_field(root, "ops", assets::kMostAssetNames,
                         [&](const std::string& key, const assets::AssetNode& node) {
                           check_operator(profile, key, node.place);
                           profile.ops.emplace(key, rule(node));
                         });
  const bool holds =
      profile.hold_block_inputs || std::ranges::any_of(profile.ops, [](const auto& op) {
        return !op.second.until.text().empty() || !op.second.kept.empty() || !op.second.returned.empty();
      });
  if (profile.order == OpOrder::inputs_first && holds)
    root.find("order")->place.fail("'inputs_first' cannot be had together with values that are held");
  return profile;
}

std::span<const Profile> built_in_profiles() {
  static const auto rows = assets::parse_all(embedded::profiles_files(), parse_profile);
  return rows;
}

}  // namespace loadline::forward
