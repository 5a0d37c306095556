// Reads scalars from the graph and arrays from the file.
#include "core/tokenizer/gguf_keys.h"

#include "core/base/text.h"
#include "core/io/graph_reader.h"
#include "core/tokenizer/tokenizer.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.", kTemplate = "tokenizer.chat_template";

class Reader {
 public:
  explicit Reader(const MetaGraph& graph) : graph_(graph) {
    keys_.file = graph.files.empty() ? "" : graph.files.front().path;
  }

  GgufTokenizerKeys read() {
    for (const MetaEntry& entry : graph_.metadata) {
      const std::string_view key = entry.key;
      if (key.starts_with(kPrefix))
        read_key(key.substr(kPrefix.size()), entry.value);
      else if (key.starts_with(kTemplate))
        read_template(key.substr(kTemplate.size()), entry.value);
      else if (key.ends_with(".context_length"))
        keys_.context = number(entry.value);
    }
    check("scores", keys_.scores.size());
    check("token_type", keys_.types.size());
    std::erase_if(keys_.ids, [&](const auto& row) { return row.second >= keys_.tokens.size(); });
    return std::move(keys_);
  }

 private:
  static std::optional<std::uint64_t> number(const MetaValue& value) {
    return std::visit(
        [](const auto& held) -> std::optional<std::uint64_t> {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_integral_v<Held> && !std::is_same_v<Held, bool>) {
            if (std::is_unsigned_v<Held> || held >= 0) return static_cast<std::uint64_t>(held);
          }
          return std::nullopt;
        },
        value);
  }

  void read_key(std::string_view name, const MetaValue& value) {
    const auto* const text = std::get_if<std::string>(&value);
    if (name == "model" && text != nullptr) keys_.model = *text;
    if (name == "pre" && text != nullptr) keys_.pre = *text;
    if (const auto* const array = std::get_if<MetaArray>(&value)) read_array(name, *array);
    if (const auto* const flag = std::get_if<bool>(&value)) keys_.flags.emplace_back(name, *flag);
    if (name.ends_with("_token_id"))
      if (const auto id = number(value); id && *id < kMostTokens)
        keys_.ids.emplace_back(name, static_cast<std::uint32_t>(*id));
  }

  template <typename Held, typename Convert>
  auto values(std::string_view name, const MetaArray& array, MetaType type, Convert convert) const {
    constexpr std::uint64_t kMostBytes = 64 << 20;  // of a charsmap
    expect(name, array, type, type == MetaType::u8 || type == MetaType::i8 ? kMostBytes : kMostTokens);
    std::vector<decltype(convert(Held()))> result;
    for (MetaArrayReader reader(graph_, array); reader.remaining() > 0;)
      result.push_back(convert(std::get<Held>(reader.next())));
    return result;
  }

  void read_array(std::string_view name, const MetaArray& array) {
    if (name == "tokens") keys_.tokens = texts(name, array, kMostTokens);
    if (name == "merges") keys_.merges = texts(name, array, std::uint64_t{4} * kMostTokens);
    if (name == "scores")
      keys_.scores = values<float>(name, array, MetaType::f32, [](float score) { return score; });
    if (name == "token_type") {
      if (array.element == MetaType::u32)
        keys_.types = values<std::uint32_t>(
            name, array, MetaType::u32, [](std::uint32_t type) { return static_cast<std::int32_t>(type); });
      else
        keys_.types =
            values<std::int32_t>(name, array, MetaType::i32, [](std::int32_t type) { return type; });
    }
    if (name == "precompiled_charsmap") {
      const auto bytes = array.element == MetaType::i8
                             ? values<std::int8_t>(name, array, MetaType::i8,
                                                   [](std::int8_t byte) { return static_cast<char>(byte); })
                             : values<std::uint8_t>(name, array, MetaType::u8, [](std::uint8_t byte) {
                                 return static_cast<char>(byte);
                               });
      keys_.charsmap.assign(bytes.begin(), bytes.end());
    }
  }

  void expect(std::string_view name, const MetaArray& array, MetaType type, std::uint64_t most) const {
    if (array.element != type)
      throw keys_.fail(name, fmt::format("is an array of {}, not of {}", meta_type_name(array.element),
                                         meta_type_name(type)));
    if (array.count > most)
      throw Error(ErrorCode::limit, {.file = keys_.file}, "'{}{}' has {} elements, the limit is {}", kPrefix,
                  name, array.count, most);
  }

  std::vector<std::string> texts(std::string_view name, const MetaArray& array, std::uint64_t most) const {
    expect(name, array, MetaType::string, most);
    std::vector<std::string> result;
    for (MetaArrayReader reader(graph_, array); reader.remaining() > 0;) {
      result.push_back(std::get<std::string>(reader.next()));
      if (!is_valid_utf8(result.back()))
        throw keys_.fail(name, fmt::format("element {} is not UTF-8 text", result.size() - 1));
    }
    return result;
  }

  void read_template(std::string_view name, const MetaValue& value) {
    const auto* const text = std::get_if<std::string>(&value);
    if (text == nullptr || !is_valid_utf8(*text) || !is_valid_utf8(name)) return;
    if (name.empty())
      keys_.templates.emplace_back("", *text);
    else if (name.front() == '.')
      keys_.templates.emplace_back(name.substr(1), *text);
  }

  void check(std::string_view name, std::size_t count) const {
    if (count != 0 && count != keys_.tokens.size())
      throw keys_.fail(name, fmt::format("has {} elements for {} tokens", count, keys_.tokens.size()));
  }

  const MetaGraph& graph_;
  GgufTokenizerKeys keys_;
};

}  // namespace

std::optional<std::uint32_t> GgufTokenizerKeys::id(std::string_view name) const {
  const auto found = std::ranges::find(ids, name, &std::pair<std::string, std::uint32_t>::first);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

std::optional<bool> GgufTokenizerKeys::flag(std::string_view name) const {
  const auto found = std::ranges::find(flags, name, &std::pair<std::string, bool>::first);
  return found == flags.end() ? std::nullopt : std::optional(found->second);
}

Error GgufTokenizerKeys::fail(std::string_view key, std::string_view detail) const {
  return Error(ErrorCode::malformed, {.file = file}, "'{}{}': {}", kPrefix, key, detail);
}

GgufTokenizerKeys read_tokenizer_keys(const MetaGraph& gguf) { return Reader(gguf).read(); }

}  // namespace loadline
