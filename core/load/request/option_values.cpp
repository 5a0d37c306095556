// Sets, prints and compares options by id, one at a time or as JSON.
#include "core/assets/asset_file.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/request/load_options.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::load {

// --- One option at a time, by its id.

const LoadOption* find_load_option(std::string_view id) { return find_option(load_options(), id); }

void set_load_option(LoadRequest& request, std::string_view id, std::string_view word) {
  const LoadOption* const option = find_load_option(id);
  if (option == nullptr) {
    std::vector<std::string_view> ids;
    for (const LoadOption& row : load_options()) ids.push_back(row.id);
    const std::string_view meant = nearest_word(id, ids);
    throw Error(ErrorCode::usage, "no option of a load is called '{}'{}", safe_display(id, 60),
                meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
  }
  set_option(*option, request, word);
  if (!std::holds_alternative<std::monostate>(option->get(request))) unset_excluded(request, *option);
}

void unset_excluded(LoadRequest& request, const LoadOption& option) {
  for (const LoadOption& other : load_options())
    if (&other != &option && !option.terms.excludes.empty() && other.terms.excludes == option.terms.excludes)
      other.set(request, {});
}

std::string load_option_text(const LoadRequest& request, const LoadOption& option) {
  return print_option(option.kind, option.get(request), option.separator);
}

bool supports(const Method& method, const LoadOption& option) {
  return option.terms.supported_by == nullptr || method.traits.*option.terms.supported_by;
}

namespace {

bool uses(const Method& method, const LoadOption& option) {
  return option.terms.used_by != nullptr && method.traits.*option.terms.used_by;
}

}  // namespace

std::vector<const LoadOption*> supported_options(const Method& method) {
  std::vector<const LoadOption*> options;
  for (const LoadOption& option : load_options())
    if ((option.terms.supported_by != nullptr && supports(method, option)) || uses(method, option))
      options.push_back(&option);
  return options;
}

std::vector<std::pair<std::string_view, std::string>> changed_options(const LoadRequest& request) {
  const LoadRequest defaults;
  std::vector<std::pair<std::string_view, std::string>> changed;
  for (const LoadOption& option : load_options())
    if (!same_option(option, request, defaults))
      changed.emplace_back(option.id, load_option_text(request, option));
  return changed;
}

std::vector<UnusedOption> unused_options(const LoadRequest& request, std::span<const Method* const> chosen,
                                         const std::vector<std::string_view>& given) {
  const LoadRequest defaults;
  const auto is_set = [&](const LoadOption& option) {
    return std::ranges::find(given, option.id) != given.end() || !same_option(option, request, defaults);
  };
  std::vector<UnusedOption> unused;
  for (const LoadOption& option : load_options()) {
    if (!is_set(option)) continue;
    if (std::ranges::none_of(chosen, [&](const Method* m) { return supports(*m, option); })) {
      unused.push_back({&option, {}, {}});
      for (const Method& method : methods())
        if (supports(method, option)) unused.back().supported_by.push_back(method.id);
      continue;
    }
    if (option.terms.needs.empty()) continue;
    if (std::ranges::any_of(chosen, [&](const Method* m) { return uses(*m, option); })) continue;
    const std::vector<std::string_view> needs = split(option.terms.needs, ',');
    if (std::ranges::none_of(needs, [&](std::string_view id) { return is_set(*find_load_option(id)); }))
      unused.push_back({&option, {}, needs});
  }
  return unused;
}

// --- Requests as JSON.

namespace {

constexpr std::size_t kMostNames = 1000;
constexpr std::size_t kLongestValue = 4096;
using Json = nlohmann::ordered_json;

void read_option(LoadRequest& request, const std::string& id, const assets::AssetNode& node) {
  const LoadOption* const option = find_load_option(id);
  // as `options` of JSON output shows what is not set
  if (option != nullptr && option->can_be_unset() && node.kind == assets::AssetNode::Kind::text &&
      node.text == "null")
    return option->set(request, {});
  try {
    if (option == nullptr || node.kind != assets::AssetNode::Kind::list)
      return set_load_option(request, id,
                             node.name(fmt::format("'{}'", safe_display(id, 60)), kLongestValue));
    if (option->kind != OptionKind::names) node.place.fail("'{}' takes one value", id);
    const std::vector<std::string> names = node.texts(fmt::format("'{}'", id), kMostNames, kLongestValue);
    if (names.empty()) throw Error(ErrorCode::usage, "a name is needed");
    set_option_value(*option, request, names);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    node.place.fail(option == nullptr ? error.what() : fmt::format("'{}': {}", id, error.what()));
  }
}

Json value_json(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

// The path from the working folder, if `named` is a path from the folder of the request that exists; else as
// it is: it may be the name of something else.
std::string from_here(const std::string& named, const std::string& request) {
  const std::filesystem::path beside = std::filesystem::path(request).parent_path() / named;
  std::error_code ignored;
  return !named.empty() && std::filesystem::path(named).is_relative() &&
                 std::filesystem::exists(beside, ignored)
             ? beside.string()
             : named;
}

// Relative paths are made relative to the file's folder; what is no path of a file stays.
std::string path_beside(const std::string& named, const std::string& file) {
  std::error_code failed;
  if (named.empty() || std::filesystem::path(named).is_absolute() || !std::filesystem::exists(named, failed))
    return named;
  const std::filesystem::path folder = std::filesystem::absolute(file, failed).parent_path();
  const std::filesystem::path beside = std::filesystem::proximate(named, folder, failed);
  return failed ? named : beside.string();
}

// A path that is not UTF-8, which JSON cannot hold: bytes from 0x80 on, and '%', as % and two hexadecimal
// digits.
constexpr std::string_view kPercent = "percent";

std::string to_percent(std::string_view path) {
  std::string text;
  for (const char c : path)
    text += static_cast<unsigned char>(c) < 0x80 && c != '%'
                ? std::string(1, c)
                : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return text;
}

std::string from_percent(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool escape = text[i] == '%' && text.size() - i > 2 &&
                        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    path += escape ? static_cast<char>(byte) : text[i];
    if (escape) i += 2;
  }
  return path;
}

// The options that may name a file.
template <typename Change>
void change_paths(LoadRequest& request, Change change) {
  if (request.rates != "assumed") request.rates = change(request.rates);
  for (std::string& order : request.orders)
    if (std::ranges::find(orders(), order, &Order::id) == orders().end()) order = change(order);
}

}  // namespace

SavedRequest parse_request(std::string_view json, const std::string& path) {
  const assets::AssetNode root = assets::parse_asset(json, path);
  root.allow({"schema_version", "model", "model_encoding", "options"});
  const assets::AssetNode& version = root.at("schema_version");
  if (version.text != std::to_string(kRequestVersion))
    version.place.fail("'schema_version' is {}, this program reads {}", safe_display(version.text, 20),
                       kRequestVersion);
  SavedRequest saved;
  if (const assets::AssetNode* const model = root.find("model")) {
    std::string named = model->name("'model'", 3 * kLongestValue);  // a byte can be "%FF"
    if (named.empty()) model->place.fail("'model' is empty");
    if (const assets::AssetNode* const encoding = root.find("model_encoding")) {
      if (encoding->text != kPercent) encoding->place.fail("'model_encoding' can be '{}' only", kPercent);
      named = from_percent(named);
      if (named.find('\0') != std::string::npos) model->place.fail("'model' has a NUL byte");
    }
    saved.model = from_here(named, path);
  }
  if (const assets::AssetNode* const options = root.find("options"))
    read_request_options(saved.request, *options);
  change_paths(saved.request, [&](const std::string& named) { return from_here(named, path); });
  return saved;
}

void read_request_options(LoadRequest& request, const assets::AssetNode& options) {
  options.as(assets::AssetNode::Kind::object, "'options'").at_most(load_options().size(), "'options'");
  for (std::size_t i = 0; i < options.items.size(); ++i)
    read_option(request, options.keys[i], options.items[i]);
}

SavedRequest read_request(const std::string& path) { return parse_request(assets::asset_text(path), path); }

std::string request_text_beside(LoadRequest request, const std::optional<std::string>& model,
                                const std::string& file) {
  change_paths(request, [&](const std::string& named) { return path_beside(named, file); });
  return request_text(request, model ? std::optional(path_beside(*model, file)) : std::nullopt);
}

std::string request_text(const LoadRequest& request, const std::optional<std::string>& model) {
  Json json = {{"schema_version", kRequestVersion}};
  if (model) json["model"] = is_valid_utf8(*model) ? *model : to_percent(*model);
  if (model && !is_valid_utf8(*model)) json["model_encoding"] = kPercent;
  json["options"] = Json::object();
  const LoadRequest defaults;
  for (const LoadOption& option : load_options())
    if (!same_option(option, request, defaults))
      json["options"][std::string(option.id)] = value_json(option.get(request));
  try {
    return json.dump(2) + "\n";
  } catch (const Json::type_error&) {  // JSON has no other text, and a changed value would ask something else
    throw Error(ErrorCode::usage, "the request cannot be saved: one of its options is not UTF-8");
  }
}

}  // namespace loadline::load
