// JSON assets with the place of every text, so that what is wrong in one can be pointed at.
#pragma once

#include "core/forward/expression.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

// A value of an asset. Numbers, true and false are not told from texts: all are expressions to those who
// read them.
struct AssetNode {
  enum class Kind { text, list, object };
  Kind kind = Kind::text;
  AssetPlace place = {};  // of the first character inside the quotes
  std::string text = {};
  std::vector<AssetNode> items = {};   // of a list, and an object's values
  std::vector<std::string> keys = {};  // of an object, one for each of `items`

  // The field of that name, or nothing.
  const AssetNode* find(std::string_view key) const;
  // Throws an Error at this place unless it is of that kind.
  const AssetNode& as(Kind expected, std::string_view what) const;
  // This list of at most `most` texts of at most `longest` bytes each; throws an Error at what is more.
  std::vector<std::string> texts(std::string_view what, std::size_t most, std::size_t longest) const;
  // This object's fields, likewise.
  std::vector<std::pair<std::string, std::string>> pairs(std::string_view what, std::size_t most,
                                                         std::size_t longest) const;
  // Throws an Error unless it is a text of at most `longest` bytes.
  const std::string& name(std::string_view what, std::size_t longest) const;
  // This text as an expression.
  Expression expression(std::string_view what) const;
  // Throws an Error at the first item behind so many.
  void at_most(std::size_t most, std::string_view what) const;
  // Throws an Error at the first field that has none of these names.
  void allow(std::initializer_list<std::string_view> known) const;
};

// Calls `each(key, node)` for every field of the object that `root` has under `key`, `most` of them at most.
template <typename Each>
void for_each_field(const AssetNode& root, std::string_view key, std::size_t most, Each each) {
  const AssetNode* const object = root.find(key);
  if (object == nullptr) return;
  const std::string what = fmt::format("'{}'", key);
  object->as(AssetNode::Kind::object, what).at_most(most, what);
  for (std::size_t i = 0; i < object->items.size(); ++i) each(object->keys[i], object->items[i]);
}
// The expression that `root` has under `key`; null without one.
Expression find_expression(const AssetNode& root, std::string_view key);

// What names that an asset gives, and lists of them, may take: more than any needs.
inline constexpr std::size_t kMostAssetName = 300;
inline constexpr std::size_t kMostAssetNames = 200;

// Throws Error{malformed | limit} naming `path` for anything but a JSON object of at most 1 MiB.
AssetNode parse_asset(std::string_view json, const std::string& path);

}  // namespace loadline
