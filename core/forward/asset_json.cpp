// On-demand parsing: each token still knows where it stands.
#include "core/forward/asset_json.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <simdjson.h>

namespace loadline {
namespace {

using simdjson::ondemand::json_type;

class AssetReader {
 public:
  AssetReader(std::string_view json, const std::string& path)
      : padded_(json), path_(std::make_shared<const std::string>(path)) {}

  AssetNode read() {
    try {
      simdjson::ondemand::parser parser;
      simdjson::ondemand::document document = parser.iterate(padded_);
      AssetNode root = node(document.get_value(), 0);
      const char* rest = nullptr;  // an error here: nothing is left
      if (document.current_location().get(rest) == simdjson::SUCCESS)
        throw simdjson::simdjson_error(simdjson::TAPE_ERROR);
      return root;
    } catch (const simdjson::simdjson_error& error) {
      throw Error(ErrorCode::malformed, {.file = *path_}, fmt::format("not valid JSON: {}", error.what()));
    }
  }

 private:
  AssetPlace place(std::string_view token) const {
    const std::string_view all(padded_.data(), padded_.size());
    const auto at = static_cast<std::size_t>(token.data() - all.data());
    const std::string_view before = all.substr(0, at);
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    const bool quoted = token.starts_with('"');
    return {path_, static_cast<std::uint32_t>(lines + 1),
            static_cast<std::uint32_t>(at - line_start + 1 + (quoted ? 1 : 0))};
  }

  AssetNode node(simdjson::ondemand::value value, int depth) {
    constexpr int kMostDepth = 16;
    AssetNode result;
    if (depth > kMostDepth)
      throw Error(ErrorCode::limit, {.file = *path_}, "nested more than 16 levels deep");
    const json_type type = value.type();
    if (type != json_type::array && type != json_type::object) {
      const std::string_view token = value.raw_json_token();
      result.place = place(token);
      result.text = type == json_type::string
                        ? std::string(std::string_view(value.get_string()))
                        : std::string(token.substr(0, token.find_last_not_of(" \n\r\t") + 1));
      return result;
    }
    result.place = place(value.current_location().value());
    if (type == json_type::array) {
      result.kind = AssetNode::Kind::list;
      for (auto item : value.get_array()) result.items.push_back(node(item.value(), depth + 1));
      return result;
    }
    result.kind = AssetNode::Kind::object;
    for (auto field : value.get_object()) {
      const std::string key(std::string_view(field.unescaped_key()));
      AssetNode item = node(field.value(), depth + 1);
      if (result.find(key) != nullptr)
        item.place.fail(fmt::format("'{}' occurs twice", safe_display(key, 60)));
      result.keys.push_back(key);
      result.items.push_back(std::move(item));
    }
    return result;
  }

  simdjson::padded_string padded_;
  std::shared_ptr<const std::string> path_;
};

}  // namespace

const AssetNode* AssetNode::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

const AssetNode& AssetNode::as(Kind expected, std::string_view what) const {
  constexpr std::string_view kKinds[] = {"a text", "a list", "an object"};
  if (kind != expected)
    place.fail(fmt::format("{} is {}, {} expected", what, kKinds[static_cast<std::size_t>(kind)],
                           kKinds[static_cast<std::size_t>(expected)]));
  return *this;
}

void AssetNode::allow(std::initializer_list<std::string_view> known) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (std::find(known.begin(), known.end(), keys[i]) == known.end())
      items[i].place.fail(fmt::format("'{}' is not known here", safe_display(keys[i], 60)));
}

AssetNode parse_asset(std::string_view json, const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (json.size() > kMostBytes)
    throw Error(ErrorCode::limit, {.file = path},
                fmt::format("an asset of {} bytes, the limit is {}", json.size(), kMostBytes));
  return AssetReader(json, path).read().as(AssetNode::Kind::object, "an asset");
}

}  // namespace loadline
