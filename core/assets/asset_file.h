// Data files: JSON with the place of every text, faults in words, folders that override what is built in.
#pragma once

#include "core/assets/expression.h"
#include "core/base/error.h"

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::assets {

// --- JSON assets in which every text keeps its line and column, for error messages.

// A value of an asset. Numbers, true and false are kept as texts, since readers parse them as expressions.
struct AssetNode {
  enum class Kind { text, list, object };
  Kind kind = Kind::text;
  AssetPlace place = {};  // of the first character inside the quotes
  std::string text = {};
  std::vector<AssetNode> items = {};   // the items of a list, or the values of an object
  std::vector<std::string> keys = {};  // the keys of an object, parallel to `items`

  // The field of that name, or null.
  const AssetNode* find(std::string_view key) const;
  // The field of that name. Throws an Error at this object's place if there is none.
  const AssetNode& at(std::string_view key) const;
  // Returns this node. Throws an Error at its place unless it is of the kind `expected`.
  const AssetNode& as(Kind expected, std::string_view what) const;
  // The texts of this list. Throws an Error at an item past `most` items or longer than `longest` bytes.
  std::vector<std::string> texts(std::string_view what, std::size_t most, std::size_t longest) const;
  // The keys and texts of this object, with the same limits.
  std::vector<std::pair<std::string, std::string>> pairs(std::string_view what, std::size_t most,
                                                         std::size_t longest) const;
  // This text. Throws an Error unless it is a text of at most `longest` bytes.
  const std::string& name(std::string_view what, std::size_t longest) const;
  // This text, parsed as an expression.
  Expression expression(std::string_view what) const;
  // Throws an Error at the first item after `most` items.
  void at_most(std::size_t most, std::string_view what) const;
  // Throws an Error at the first field whose name is not in `known`.
  void allow(std::initializer_list<std::string_view> known) const;
};

// Calls `each(key, node)` for every field of the object under `key` in `root`. Throws beyond `most` fields.
template <typename Each>
void for_each_field(const AssetNode& root, std::string_view key, std::size_t most, Each each) {
  const AssetNode* const object = root.find(key);
  if (object == nullptr) return;
  const std::string what = fmt::format("'{}'", key);
  object->as(AssetNode::Kind::object, what).at_most(most, what);
  for (std::size_t i = 0; i < object->items.size(); ++i) each(object->keys[i], object->items[i]);
}
// The expression under `key` in `root`; the null expression if there is none.
Expression find_expression(const AssetNode& root, std::string_view key);

// Limits on the bytes of a name in an asset and on the names in a list; no real asset comes near them.
inline constexpr std::size_t kMostAssetName = 300;
inline constexpr std::size_t kMostAssetNames = 200;

// Throws Error{malformed | limit} naming `path` for anything but a JSON object of at most 1 MiB.
AssetNode parse_asset(std::string_view json, const std::string& path);

// --- Reads a folder of a user's own assets, which replace built-in ones of the same name.

// The paths of a folder's .json files, sorted; none if the folder does not exist.
std::vector<std::string> json_files(const std::string& folder);
// The content of a file. Throws Error{io}, and Error{limit} for more than 1 MiB.
std::string asset_text(const std::string& path);

// Parses every embedded file into a row.
template <typename Row, typename Files>
std::vector<Row> parse_all(const Files& files, Row (*parse)(std::string_view json, const std::string& path)) {
  std::vector<Row> rows;
  for (const auto& file : files) rows.push_back(parse(file.bytes, std::string(file.name)));
  return rows;
}

// Parses each file of a folder into a row. A new row replaces a row with the same key; the new rows come
// first. A file that does not parse is left out, and its error is added to `faults`. Returns the number of
// new rows.
template <typename Row, typename Parse>
std::size_t add_folder(const std::string& folder, std::vector<Row>& rows, std::string Row::*key, Parse parse,
                       std::vector<std::string>& faults) {
  std::vector<Row> own;
  for (const std::string& path : json_files(folder)) {
    try {
      own.push_back(parse(asset_text(path), path));
    } catch (const Error& error) {
      faults.emplace_back(error.what());
    }
  }
  for (const Row& row : own) std::erase_if(rows, [&](const Row& other) { return other.*key == row.*key; });
  rows.insert(rows.begin(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  return own.size();
}

// --- Says where and why a text is not valid JSON.

// Describes the fault in a text that a parser rejected: "line 3, column 5: unexpected '}'; expected string
// literal". If there is no syntax error, "no JSON: ..." names other possible reasons.
std::string json_fault(std::string_view text);

}  // namespace loadline::assets
