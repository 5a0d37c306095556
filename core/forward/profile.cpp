// From a profile's JSON to a Profile.
#include "core/forward/profile.h"

#include "core/base/text.h"
#include "core/forward/asset_json.h"
#include "core/forward/operators.h"
#include "embedded/profiles_files.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

using Kind = AssetNode::Kind;

constexpr std::size_t kMostSizes = 16;  // temporaries of an operator
constexpr std::size_t kMostShared = 16;

std::string text(const AssetNode& root, std::string_view key, std::string_view otherwise) {
  const AssetNode* const node = root.find(key);
  return node == nullptr ? std::string(otherwise) : node->as(Kind::text, fmt::format("'{}'", key)).text;
}

std::optional<DType> dtype(const AssetNode& root, std::string_view key) {
  const std::string name = text(root, key, "model");
  if (name == "model") return std::nullopt;
  const auto found = dtype_from_safetensors(name);
  if (!found || dtype_info(*found).block_elements != 1)
    root.find(key)->place.fail(fmt::format("'{}' is neither a dtype nor 'model'", safe_display(name, 40)));
  return found;
}

OpRule rule(const AssetNode& node) {
  OpRule result;
  node.as(Kind::object, "an operator")
      .allow(
          {"before", "kept", "temporaries", "in_place", "without", "until", "view", "returned", "windowed"});
  const auto sizes = [&](const char* key) {
    std::vector<Expression> list;
    const AssetNode* const found = node.find(key);
    if (found == nullptr) return list;
    const std::string what = fmt::format("'{}'", key);
    found->as(Kind::list, what).at_most(kMostSizes, what);
    for (const AssetNode& item : found->items)
      list.push_back(Expression::parse(item.as(Kind::text, "a size").text, item.place));
    return list;
  };
  result.before = sizes("before");
  result.kept = sizes("kept");
  result.returned = sizes("returned");
  result.temporaries = sizes("temporaries");
  const auto expression = [&](const char* key) {
    const AssetNode* const found = node.find(key);
    if (found == nullptr) return Expression();
    return Expression::parse(found->as(Kind::text, fmt::format("'{}'", key)).text, found->place);
  };
  result.in_place = expression("in_place");
  result.until = expression("until");
  result.without = expression("without");
  result.view = expression("view");
  result.windowed = expression("windowed");
  return result;
}

SharedValue shared(const std::string& name, const AssetNode& node) {
  node.as(Kind::object, "a shared value").allow({"bytes", "ops", "if"});
  const AssetNode* const bytes = node.find("bytes");
  const AssetNode* const ops = node.find("ops");
  if (bytes == nullptr || ops == nullptr) node.place.fail("'bytes' and 'ops' expected");
  SharedValue result = {name, Expression::parse(bytes->as(Kind::text, "'bytes'").text, bytes->place), {}, {}};
  if (const AssetNode* const condition = node.find("if"))
    result.condition = Expression::parse(condition->as(Kind::text, "'if'").text, condition->place);
  result.ops = ops->texts("'ops'", kMostAssetNames, kMostAssetName);
  return result;
}

AllocatorModel pass_allocator(const AssetNode& root) {
  const std::string id = text(root, "allocator", "exact");
  std::string ids;
  for (const AllocatorRow& row : allocators()) {
    if (!row.of_passes) continue;
    if (row.id == id) return row.model;
    ids += fmt::format("{}'{}'", ids.empty() ? "" : ", ", row.id);
  }
  root.find("allocator")->place.fail("one of " + ids + " expected");
}

// Operators of an architecture; a file's own have names that nobody lists.
void check_operator(const Profile& profile, const std::string& name, const AssetPlace& place) {
  if (profile.format.empty() && find_operator(name) == nullptr)
    place.fail(
        fmt::format("there is no operator '{}'; there are: {}", safe_display(name, 40), operator_list()));
}

std::vector<Profile> load_built_in() {
  std::vector<Profile> rows;
  for (const embedded::File& file : embedded::profiles_files())
    rows.push_back(parse_profile(file.bytes, std::string(file.name)));
  return rows;
}

}  // namespace

const OpRule& Profile::rule(std::string_view op) const {
  static const OpRule nothing;
  const auto found = ops.find(op);
  return found == ops.end() ? nothing : found->second;
}

Profile parse_profile(std::string_view json, const std::string& path) {
  const AssetNode root = parse_asset(json, path);
  root.allow({"profile", "about", "operators", "activation", "cache", "logits", "allocator", "order",
              "shared", "reuse", "hold_block_inputs", "flags", "ops"});
  Profile profile;
  profile.path = path;
  const AssetNode* const id = root.find("profile");
  if (id == nullptr || id->text.empty()) root.place.fail("'profile' is missing");
  profile.id = id->name("'profile'", kMostAssetName);
  profile.about = text(root, "about", "");
  if (const AssetNode* const operators = root.find("operators"))
    profile.format = operators->name("'operators'", kMostAssetName);
  if (profile.format == "asset") profile.format.clear();
  profile.activation = dtype(root, "activation");
  profile.cache = dtype(root, "cache");
  const std::string logits = text(root, "logits", "last");
  if (logits != "last" && logits != "all") root.find("logits")->place.fail("'last' or 'all' expected");
  profile.all_logits = logits == "all";
  if (const AssetNode* const hold = root.find("hold_block_inputs"))
    profile.hold_block_inputs =
        Expression::parse(hold->as(Kind::text, "'hold_block_inputs'").text, hold->place).evaluate({}).truth();
  const std::string order = text(root, "order", "listed");
  if (order == "inputs_first")
    profile.order = OpOrder::inputs_first;
  else if (order == "last_first")
    profile.order = OpOrder::last_first;
  else if (order != "listed")
    root.find("order")->place.fail("'listed', 'inputs_first' or 'last_first' expected");
  if (const AssetNode* const reuse = root.find("reuse"))
    profile.reuse =
        Expression::parse(reuse->as(Kind::text, "'reuse'").text, reuse->place).evaluate({}).truth();
  profile.allocator = pass_allocator(root);
  if (const AssetNode* const flags = root.find("flags")) {
    flags->as(Kind::object, "'flags'").at_most(kMostAssetNames, "'flags'");
    for (std::size_t i = 0; i < flags->items.size(); ++i) {
      const AssetNode& item = flags->items[i].as(Kind::text, "a flag");
      profile.flags.emplace_back(flags->keys[i], Expression::parse(item.text, item.place).evaluate({}));
    }
  }
  if (const AssetNode* const values = root.find("shared")) {
    values->as(Kind::object, "'shared'").at_most(kMostShared, "'shared'");
    for (std::size_t i = 0; i < values->items.size(); ++i) {
      profile.shared.push_back(shared(values->keys[i], values->items[i]));
      for (const std::string& op : profile.shared.back().ops)
        check_operator(profile, op, values->items[i].find("ops")->place);
    }
  }
  if (const AssetNode* const ops = root.find("ops")) {
    ops->as(Kind::object, "'ops'").at_most(kMostAssetNames, "'ops'");
    for (std::size_t i = 0; i < ops->items.size(); ++i) {
      check_operator(profile, ops->keys[i], ops->items[i].place);
      profile.ops.emplace(ops->keys[i], rule(ops->items[i]));
    }
  }
  const bool holds =
      profile.hold_block_inputs || std::any_of(profile.ops.begin(), profile.ops.end(), [](const auto& op) {
        return !op.second.until.text().empty() || !op.second.kept.empty() || !op.second.returned.empty();
      });
  if (profile.order == OpOrder::inputs_first && holds)
    root.find("order")->place.fail("'inputs_first' cannot be had together with values that are held");
  return profile;
}

std::span<const Profile> built_in_profiles() {
  static const std::vector<Profile> rows = load_built_in();
  return rows;
}

}  // namespace loadline
