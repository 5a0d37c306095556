// JSON assets with the place of every text, so that what is wrong in one can be pointed at.
#pragma once

#include "core/forward/expression.h"

#include <memory>
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
  // Throws an Error at the first field that has none of these names.
  void allow(std::initializer_list<std::string_view> known) const;
};

// Throws Error{malformed | limit} naming `path` for anything but a JSON object of at most 1 MiB.
AssetNode parse_asset(std::string_view json, const std::string& path);

}  // namespace loadline
