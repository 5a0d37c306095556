// The same, by simdjson; faults by nlohmann::json; lists and reads the files of a folder.
#include "core/assets/asset_file.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <new>
#include <unordered_set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>

namespace loadline::assets {

// --- Parses on demand with simdjson, which still knows the position of each token.

namespace {

using simdjson::ondemand::json_type;

class AssetReader {
 public:
  AssetReader(std::string_view json, const std::string& path)
      : padded_(json), path_(std::make_shared<const std::string>(path)) {
    if (padded_.size() != json.size()) throw std::bad_alloc();
  }

  AssetNode read() {
    try {
      simdjson::ondemand::parser parser;
      // iterate() would not see that memory for strings was refused; it allocates again what is not there
      if (parser.allocate(padded_.size()) != simdjson::SUCCESS) throw std::bad_alloc();
      simdjson::ondemand::document document = parser.iterate(padded_);
      AssetNode root = node(document.get_value(), 0);
      const char* rest = nullptr;  // an error here: nothing is left
      if (document.current_location().get(rest) == simdjson::SUCCESS)
        throw simdjson::simdjson_error(simdjson::TAPE_ERROR);
      return root;
    } catch (const simdjson::simdjson_error& error) {
      if (error.error() == simdjson::MEMALLOC) throw std::bad_alloc();
      throw Error(ErrorCode::malformed, {.file = *path_}, json_fault(padded_));
    }
  }

 private:
  // Tokens come in order, so lines are counted on from the previous token.
  AssetPlace place(std::string_view token) {
    const auto at = static_cast<std::size_t>(token.data() - padded_.data());
    for (; counted_ < at; ++counted_)
      if (padded_.data()[counted_] == '\n') {
        ++line_;
        line_start_ = counted_ + 1;
      }
    const bool quoted = token.starts_with('"');
    return {path_, line_, static_cast<std::uint32_t>(at - line_start_ + 1 + (quoted ? 1 : 0))};
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
    result.place = place({value.current_location().value(), 1});
    if (type == json_type::array) {
      result.kind = AssetNode::Kind::list;
      for (auto item : value.get_array()) result.items.push_back(node(item.value(), depth + 1));
      return result;
    }
    result.kind = AssetNode::Kind::object;
    std::unordered_set<std::string> known;
    for (auto field : value.get_object()) {
      const std::string key(std::string_view(field.unescaped_key()));
      AssetNode item = node(field.value(), depth + 1);
      if (!known.insert(key).second) item.place.fail("'{}' occurs twice", safe_display(key, 60));
      result.keys.push_back(key);
      result.items.push_back(std::move(item));
    }
    return result;
  }

  simdjson::padded_string padded_;
  std::shared_ptr<const std::string> path_;
  std::size_t counted_ = 0;  // bytes in which lines have been counted
  std::uint32_t line_ = 1;
  std::size_t line_start_ = 0;
};

}  // namespace

const AssetNode* AssetNode::find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

const AssetNode& AssetNode::at(std::string_view key) const {
  const AssetNode* const found = find(key);
  if (found == nullptr) place.fail("'{}' is missing", key);
  return *found;
}

const AssetNode& AssetNode::as(Kind expected, std::string_view what) const {
  constexpr std::string_view kKinds[] = {"a text", "a list", "an object"};
  if (kind != expected)
    place.fail("{} is {}, {} expected", what, kKinds[static_cast<std::size_t>(kind)],
               kKinds[static_cast<std::size_t>(expected)]);
  return *this;
}

Expression AssetNode::expression(std::string_view what) const {
  return Expression::parse(as(Kind::text, what).text, place);
}

void AssetNode::at_most(std::size_t most, std::string_view what) const {
  if (items.size() > most)
    items[most].place.fail("{} has {} entries, the limit is {}", what, items.size(), most);
}

const std::string& AssetNode::name(std::string_view what, std::size_t longest) const {
  if (as(Kind::text, what).text.size() > longest)
    place.fail("{} has {} bytes, the limit is {}", what, text.size(), longest);
  return text;
}

std::vector<std::string> AssetNode::texts(std::string_view what, std::size_t most,
                                          std::size_t longest) const {
  as(Kind::list, what).at_most(most, what);
  std::vector<std::string> result;
  for (const AssetNode& item : items) result.push_back(item.name(what, longest));
  return result;
}

std::vector<std::pair<std::string, std::string>> AssetNode::pairs(std::string_view what, std::size_t most,
                                                                  std::size_t longest) const {
  as(Kind::object, what).at_most(most, what);
  std::vector<std::pair<std::string, std::string>> result;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (keys[i].size() > longest)
      items[i].place.fail("{} has {} bytes, the limit is {}", what, keys[i].size(), longest);
    result.emplace_back(keys[i], items[i].name(what, longest));
  }
  return result;
}

void AssetNode::allow(std::initializer_list<std::string_view> known) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (std::ranges::find(known, keys[i]) == known.end())
      items[i].place.fail("'{}' is not known here", safe_display(keys[i], 60));
}

Expression find_expression(const AssetNode& root, std::string_view key) {
  const AssetNode* const found = root.find(key);
  return found == nullptr ? Expression() : found->expression(fmt::format("'{}'", key));
}

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;

Error too_large(const std::string& path, std::uint64_t bytes) {
  return Error(ErrorCode::limit, {.file = path}, "has {} bytes, the limit is {}", bytes, kMostBytes);
}

}  // namespace

AssetNode parse_asset(std::string_view json, const std::string& path) {
  if (json.size() > kMostBytes) throw too_large(path, json.size());
  return AssetReader(json, path).read().as(AssetNode::Kind::object, "the file");
}

// --- Lists and reads the asset files of a folder.

namespace fs = std::filesystem;

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") paths.push_back(at->path().string());
  std::ranges::sort(paths);
  return paths;
}

std::string asset_text(const std::string& path) {
  const io::SourceFile file = io::SourceFile::open(path);
  if (file.size() > kMostBytes) throw too_large(path, file.size());
  return file.head(kMostBytes);
}

// --- Parses the text again with nlohmann::json, which is slower but reports what it expected.

namespace {

using nlohmann::json;

std::string parse_error(std::string_view text) {
  const auto keep_nothing = [](int, json::parse_event_t, json&) { return false; };
  try {
    const json nothing = json::parse(text, keep_nothing);
    return "";
  } catch (const json::exception& error) {
    return error.what();
  }
}

}  // namespace

std::string json_fault(std::string_view text) {
  const std::string whole = parse_error(text);
  // "[json.exception.ID] parse error at line 1, column 2: syntax error while parsing value - unexpected X;
  // ..."
  std::string_view message = whole;
  if (message.empty()) return "no JSON: something stands behind the end, or a name occurs twice";
  const auto drop_to = [&](std::string_view mark) {
    const std::size_t at = message.find(mark);
    if (at != message.npos) message.remove_prefix(at + mark.size());
  };
  drop_to("] ");
  drop_to("parse error at ");
  const std::size_t colon = message.find(": ");
  const std::string_view place = message.starts_with("line ") ? message.substr(0, colon) : "";
  if (!place.empty()) drop_to(": ");
  if (message.starts_with("syntax error")) drop_to(" - ");
  constexpr std::size_t kShown = 160;
  return fmt::format("{}{}not valid JSON: {}", place, place.empty() ? "" : ": ",
                     safe_display(message, kShown));
}

}  // namespace loadline::assets
