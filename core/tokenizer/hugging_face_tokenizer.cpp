// GGUF keys read, and the tokenizer.json and settings written.

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/meta_graph.h"
#include "core/io/graph_reader.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "core/tokenizer/gguf_vocabulary.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/unicode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::tokenizer {

// --- What a GGUF file says about its tokenizer, read from its keys.

namespace {

// Names of keys are without "tokenizer.ggml.".
struct GgufTokenizerKeys {
  std::string file = {};
  std::string model = {}, pre = {};
  std::vector<std::string> tokens = {};
  std::vector<float> scores = {};        // one a token, or none
  std::vector<std::int32_t> types = {};  // PieceType, one a token, or none
  std::vector<std::string> merges = {};
  std::string charsmap = {};
  std::vector<std::pair<std::string, std::uint32_t>> ids = {};      // "bos_token_id"; of tokens that exist
  std::vector<std::pair<std::string, bool>> flags = {};             // "add_bos_token"
  std::vector<std::pair<std::string, std::string>> templates = {};  // by name; the usual one has none
  std::optional<std::uint64_t> context = {};                        // tokens that the model was trained for

  std::optional<std::uint32_t> id(std::string_view name) const;
  std::optional<bool> flag(std::string_view name) const;
  Error fail(std::string_view key, std::string_view detail) const;
};

constexpr std::string_view kPrefix = "tokenizer.ggml.", kTemplate = "tokenizer.chat_template";

class Reader {
 public:
  explicit Reader(const graph::MetaGraph& graph) : graph_(graph) {
    keys_.file = graph.files.empty() ? "" : graph.files.front().path;
  }

  GgufTokenizerKeys read() {
    for (const graph::MetaEntry& entry : graph_.metadata) {
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
  static std::optional<std::uint64_t> number(const graph::MetaValue& value) {
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

  void read_key(std::string_view name, const graph::MetaValue& value) {
    const auto* const text = std::get_if<std::string>(&value);
    if (name == "model" && text != nullptr) keys_.model = *text;
    if (name == "pre" && text != nullptr) keys_.pre = *text;
    if (const auto* const array = std::get_if<graph::MetaArray>(&value)) read_array(name, *array);
    if (const auto* const flag = std::get_if<bool>(&value)) keys_.flags.emplace_back(name, *flag);
    if (name.ends_with("_token_id"))
      if (const auto id = number(value); id && *id < kMostTokens)
        keys_.ids.emplace_back(name, static_cast<std::uint32_t>(*id));
  }

  template <typename Held, typename Convert>
  auto values(std::string_view name, const graph::MetaArray& array, graph::MetaType type,
              Convert convert) const {
    constexpr std::uint64_t kMostBytes = 64 << 20;  // of a charsmap
    expect(name, array, type,
           type == graph::MetaType::u8 || type == graph::MetaType::i8 ? kMostBytes : kMostTokens);
    std::vector<decltype(convert(Held()))> result;
    for (io::MetaArrayReader reader(graph_, array); reader.remaining() > 0;)
      result.push_back(convert(std::get<Held>(reader.next())));
    return result;
  }

  void read_array(std::string_view name, const graph::MetaArray& array) {
    if (name == "tokens") keys_.tokens = texts(name, array, kMostTokens);
    if (name == "merges") keys_.merges = texts(name, array, std::uint64_t{4} * kMostTokens);
    if (name == "scores")
      keys_.scores = values<float>(name, array, graph::MetaType::f32, [](float score) { return score; });
    if (name == "token_type") {
      if (array.element == graph::MetaType::u32)
        keys_.types = values<std::uint32_t>(name, array, graph::MetaType::u32, [](std::uint32_t type) {
          return static_cast<std::int32_t>(type);
        });
      else
        keys_.types =
            values<std::int32_t>(name, array, graph::MetaType::i32, [](std::int32_t type) { return type; });
    }
    if (name == "precompiled_charsmap") {
      const auto bytes = array.element == graph::MetaType::i8
                             ? values<std::int8_t>(name, array, graph::MetaType::i8,
                                                   [](std::int8_t byte) { return static_cast<char>(byte); })
                             : values<std::uint8_t>(name, array, graph::MetaType::u8, [](std::uint8_t byte) {
                                 return static_cast<char>(byte);
                               });
      keys_.charsmap.assign(bytes.begin(), bytes.end());
    }
  }

  void expect(std::string_view name, const graph::MetaArray& array, graph::MetaType type,
              std::uint64_t most) const {
    if (array.element != type)
      throw keys_.fail(name, fmt::format("is an array of {}, not of {}", graph::meta_type_name(array.element),
                                         graph::meta_type_name(type)));
    if (array.count > most)
      throw Error(ErrorCode::limit, {.file = keys_.file}, "'{}{}' has {} elements, the limit is {}", kPrefix,
                  name, array.count, most);
  }

  std::vector<std::string> texts(std::string_view name, const graph::MetaArray& array,
                                 std::uint64_t most) const {
    expect(name, array, graph::MetaType::string, most);
    std::vector<std::string> result;
    for (io::MetaArrayReader reader(graph_, array); reader.remaining() > 0;) {
      result.push_back(std::get<std::string>(reader.next()));
      if (!is_valid_utf8(result.back()))
        throw keys_.fail(name, fmt::format("element {} is not UTF-8 text", result.size() - 1));
    }
    return result;
  }

  void read_template(std::string_view name, const graph::MetaValue& value) {
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

  const graph::MetaGraph& graph_;
  GgufTokenizerKeys keys_;
};

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

// Throws Error{malformed} naming the key: another type, scores or types that are not one a token. Throws
// Error{limit} for more than kMostTokens tokens or four times as many merges, and Error{io}.
GgufTokenizerKeys read_tokenizer_keys(const graph::MetaGraph& gguf) { return Reader(gguf).read(); }

}  // namespace

// --- One way back for each of llama.cpp's kinds of vocabulary. tokenizer.json is that of the tokenizers
// library (docs, "Components"); its vocabularies are composed by hand, because they are long.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

// Pre-tokenizers that normalize texts.
constexpr std::array<std::string_view, 1> kComposed = {"qwen2"};

template <std::size_t n>
bool holds(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// A step of a rule, as pre_tokenizer_steps() words it.
Json step_json(const std::string& words) {
  constexpr std::string_view kSplit = "Split isolated: ";
  if (words.starts_with(kSplit))
    return {{"type", "Split"},
            {"pattern", {{"Regex", words.substr(kSplit.size())}}},
            {"behavior", "Isolated"},
            {"invert", false}};
  if (words.starts_with("Digits"))
    return {{"type", "Digits"}, {"individual_digits", words == "Digits one by one"}};
  if (words == "Punctuation contiguous") return {{"type", "Punctuation"}, {"behavior", "Contiguous"}};
  if (words == "BertPreTokenizer") return {{"type", "BertPreTokenizer"}};
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", words == "ByteLevel with its expression"}};
}

Json sequence(std::string_view list, Json steps) {
  if (steps.size() == 1) return steps.front();
  return {{"type", "Sequence"}, {list, std::move(steps)}};
}

Json replace(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

class Writer {
 public:
  explicit Writer(const GgufTokenizerKeys& keys) : keys_(keys) {}

  HuggingFaceTokenizer write() {
    const bool known = keys_.model == "gpt2"    ? write_bpe()
                       : keys_.model == "llama" ? write_sentencepiece()
                       : keys_.model == "bert"  ? write_wordpiece()
                       : keys_.model == "t5"    ? write_unigram()
                                                : false;
    if (known) {
      result_.files.push_back({"tokenizer.json", tokenizer_json()});
      result_.files.push_back({"tokenizer_config.json", settings().dump(2) + "\n"});
    } else if (keys_.model != "none" && !keys_.model.empty() && result_.lost.empty()) {
      result_.lost.push_back(
          fmt::format("tokenizer.json is not written: there is no way back from a vocabulary '{}'",
                      safe_display(keys_.model, 40)));
    }
    if (const Json generation = generation_settings(); generation.size() > 1)
      result_.files.push_back({"generation_config.json", generation.dump(2) + "\n"});
    return std::move(result_);
  }

 private:
  bool is(std::size_t id, PieceType type) const {
    return id < keys_.types.size() && keys_.types[id] == static_cast<std::int32_t>(type);
  }
  // An id that no piece had, to which the converter gave a text.
  bool is_padding(std::size_t id) const {
    return is(id, PieceType::unused) && keys_.tokens[id] == fmt::format("[PAD{}]", id);
  }
  bool is_added(std::size_t id) const {
    return is(id, PieceType::control) || is(id, PieceType::user_defined) || is(id, PieceType::unknown);
  }
  const std::string* text(std::string_view name) const {
    const auto id = keys_.id(name);
    return id && *id < keys_.tokens.size() ? &keys_.tokens[*id] : nullptr;
  }

  static std::string quoted(const std::string& text) { return Json(text).dump(); }

  // {"text": id, ...}, of ids that have a piece. A text that occurs twice is an entry of its first id.
  template <typename TextOf>
  std::string vocabulary(TextOf text_of) {
    std::unordered_map<std::string, std::size_t> seen;
    std::string json = "{";
    std::uint64_t twice = 0;
    for (std::size_t id = 0; id < keys_.tokens.size(); ++id) {
      if (is_padding(id)) continue;
      std::string text = text_of(id);
      std::string entry = fmt::format("{}{}:{}", json.size() == 1 ? "" : ",", quoted(text), id);
      if (seen.emplace(std::move(text), id).second)
        json += entry;
      else
        ++twice;
    }
    if (twice > 0)
      result_.lost.push_back(fmt::format("{} {} the text of another: tokenizer.json has the first of each",
                                         counted(twice, "token"), twice == 1 ? "has" : "have"));
    return json + "}";
  }
  std::string vocabulary() {
    return vocabulary([&](std::size_t id) { return keys_.tokens[id]; });
  }

  bool write_bpe() {
    const auto steps = steps_of_pre_tokenizer(keys_.pre);
    if (!steps) {
      result_.lost.push_back(
          fmt::format("tokenizer.json is not written: how '{}' cuts texts is known to llama.cpp only",
                      safe_display(keys_.pre, 40)));
      return false;
    }
    Json list = Json::array();
    for (const std::string& step : *steps) list.push_back(step_json(step));
    if (holds(kComposed, keys_.pre)) normalizer_ = {{"type", "NFC"}};
    pre_tokenizer_ = sequence("pretokenizers", std::move(list));
    decoder_ = step_json("ByteLevel with its expression");
    std::string merges = "[";
    for (const std::string& merge : keys_.merges) {
      const std::size_t space = merge.find(' ', 1);  // a piece has at least one byte
      if (space == std::string::npos || space + 1 == merge.size())
        throw keys_.fail("merges", fmt::format("'{}' is not a pair", safe_display(merge, 60)));
      merges += fmt::format("{}[{},{}]", merges.size() == 1 ? "" : ",", quoted(merge.substr(0, space)),
                            quoted(merge.substr(space + 1)));
    }
    model_ = fmt::format(
        R"({{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
        R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":{},"vocab":{},"merges":{}]}})",
        takes_whole_words(keys_.pre), vocabulary(), merges);
    around_texts(keys_.flag("add_bos_token").value_or(begins_texts(keys_.pre)));
    return true;
  }

  // SentencePiece's BPE: two pieces merge to any piece that is the text of both, the highest score first.
  bool write_sentencepiece() {
    const bool prefix = keys_.flag("add_space_prefix").value_or(true);
    Json normal = Json::array();
    if (prefix) normal.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    normal.push_back(replace(" ", kSpace));
    normalizer_ = sequence("normalizers", std::move(normal));
    Json decode = {replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (prefix) decode.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    decoder_ = sequence("decoders", std::move(decode));
    const std::string* const unknown = text("unknown_token_id");
    model_ = fmt::format(
        R"({{"type":"BPE","dropout":null,"unk_token":{},"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
        R"("fuse_unk":true,"byte_fallback":true,"ignore_merges":false,"vocab":{},"merges":{}}})",
        unknown == nullptr ? "null" : quoted(*unknown), vocabulary(), merges_by_score());
    around_texts(keys_.flag("add_bos_token").value_or(true));
    return true;
  }

  std::string merges_by_score() const {
    if (keys_.scores.size() != keys_.tokens.size())
      throw keys_.fail("scores",
                       fmt::format("{} scores for {} tokens", keys_.scores.size(), keys_.tokens.size()));
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t id = 0; id < keys_.tokens.size(); ++id)
      if (!is_added(id) && !is(id, PieceType::byte) && !is(id, PieceType::unused))
        ids.emplace(keys_.tokens[id], id);
    struct Pair {
      std::string_view left, right;
      float score;
    };
    std::vector<Pair> pairs;
    for (std::size_t id = 0; id < keys_.tokens.size(); ++id) {
      const std::string_view piece = keys_.tokens[id];
      const auto own = ids.find(piece);
      if (own == ids.end() || own->second != id || piece.size() > kMostPiece) continue;
      for (std::size_t cut = 1; cut < piece.size(); ++cut)
        if (ids.contains(piece.substr(0, cut)) && ids.contains(piece.substr(cut)))
          pairs.push_back({piece.substr(0, cut), piece.substr(cut), keys_.scores[id]});
      if (pairs.size() > kMostMerges)
        throw keys_.fail("tokens", fmt::format("more than {} pairs of pieces", kMostMerges));
    }
    std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) { return a.score > b.score; });
    std::string json = "[";
    for (const Pair& pair : pairs)
      json += fmt::format("{}[{},{}]", json.size() == 1 ? "" : ",", quoted(std::string(pair.left)),
                          quoted(std::string(pair.right)));
    return json + "]";
  }

  // Words begin with U+2581 in the file, with nothing in tokenizer.json; other pieces begin with "##" there.
  bool write_wordpiece() {
    const bool lower = keys_.flag("normalizer.lowercase").value_or(true);
    const auto bare = keys_.flag("normalizer.strip_accents");
    normalizer_ = {{"type", "BertNormalizer"},
                   {"clean_text", true},
                   {"handle_chinese_chars", true},
                   {"strip_accents", bare ? Json(*bare) : Json()},
                   {"lowercase", lower}};
    pre_tokenizer_ = step_json("BertPreTokenizer");
    decoder_ = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
    const std::string* const unknown = text("unknown_token_id");
    model_ = fmt::format(R"({{"type":"WordPiece","unk_token":{},"continuing_subword_prefix":"##",)"
                         R"("max_input_chars_per_word":100,"vocab":{}}})",
                         quoted(unknown == nullptr ? "[UNK]" : *unknown), vocabulary([&](std::size_t id) {
                           const std::string& text = keys_.tokens[id];
                           if (is(id, PieceType::control)) return text;
                           return text.starts_with(kSpace) ? text.substr(kSpace.size()) : "##" + text;
                         }));
    around_texts(true, true);
    return true;
  }

  bool write_unigram() {
    Json normal = Json::array();
    if (!keys_.charsmap.empty())
      normal.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64_text(keys_.charsmap)}});
    if (keys_.flag("remove_extra_whitespaces").value_or(false)) {
      normal.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
      normal.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
    }
    if (!normal.empty()) normalizer_ = sequence("normalizers", std::move(normal));
    const char* const scheme = keys_.flag("add_space_prefix").value_or(true) ? "always" : "never";
    pre_tokenizer_ = {
        {"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", scheme}, {"split", true}};
    decoder_ = pre_tokenizer_;
    if (keys_.scores.size() != keys_.tokens.size())
      throw keys_.fail("scores",
                       fmt::format("{} scores for {} tokens", keys_.scores.size(), keys_.tokens.size()));
    std::string pieces = "[";
    for (std::size_t id = 0; id < keys_.tokens.size(); ++id)
      pieces += fmt::format("{}[{},{}]", id == 0 ? "" : ",", quoted(keys_.tokens[id]),
                            Json(static_cast<double>(keys_.scores[id])).dump());
    const auto unknown = unknown_id();
    model_ = fmt::format(R"({{"type":"Unigram","unk_id":{},"vocab":{}],"byte_fallback":false}})",
                         unknown ? fmt::format("{}", *unknown) : "null", pieces);
    around_texts(keys_.flag("add_bos_token").value_or(false));
    return true;
  }

  // The key, else the first token of that type: converters leave the key out for some families.
  std::optional<std::uint32_t> unknown_id() const {
    if (const auto id = keys_.id("unknown_token_id")) return id;
    for (std::size_t id = 0; id < keys_.tokens.size(); ++id)
      if (is(id, PieceType::unknown)) return static_cast<std::uint32_t>(id);
    return std::nullopt;
  }

  // The tokens that go around a text.
  void around_texts(bool begin, bool end_by_default = false) {
    const bool end = keys_.flag("add_eos_token").value_or(end_by_default || keys_.model == "t5");
    const std::string* const bos = begin ? text("bos_token_id") : nullptr;
    const bool separates = keys_.model == "bert";
    const std::string_view last =
        separates && text("seperator_token_id") != nullptr ? "seperator_token_id" : "eos_token_id";
    const std::string* const eos = end ? text(last) : nullptr;
    if (bos == nullptr && eos == nullptr) {
      if (keys_.model == "gpt2") post_ = step_json("ByteLevel with its expression");
      return;
    }
    Json special = Json::object();
    const auto token = [&](const std::string& content, std::string_view name, int type) {
      special[content] = {{"id", content},
                          {"ids", Json::array({keys_.id(name).value_or(0)})},
                          {"tokens", Json::array({content})}};
      return Json{{"SpecialToken", {{"id", content}, {"type_id", type}}}};
    };
    const auto text_part = [](const char* id, int type) {
      return Json{{"Sequence", {{"id", id}, {"type_id", type}}}};
    };
    Json single = Json::array(), pair = Json::array();
    if (bos != nullptr) single.push_back(token(*bos, "bos_token_id", 0));
    single.push_back(text_part("A", 0));
    if (eos != nullptr) single.push_back(token(*eos, last, 0));
    pair = single;
    const int second = separates ? 1 : 0;
    if (bos != nullptr && !separates) pair.push_back(token(*bos, "bos_token_id", second));
    pair.push_back(text_part("B", second));
    if (eos != nullptr) pair.push_back(token(*eos, last, second));
    post_ = {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
  }

  std::string tokenizer_json() const {
    std::string added = "[";
    for (std::size_t id = 0; id < keys_.tokens.size(); ++id) {
      if (!is_added(id)) continue;
      const Json token = {{"id", id},
                          {"content", keys_.tokens[id]},
                          {"single_word", false},
                          {"lstrip", false},
                          {"rstrip", false},
                          {"normalized", false},
                          {"special", !is(id, PieceType::user_defined)}};
      added += fmt::format("{}{}", added.size() == 1 ? "" : ",", token.dump());
    }
    return fmt::format(
        R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{}],"normalizer":{},)"
        R"("pre_tokenizer":{},"post_processor":{},"decoder":{},"model":{}}})"
        "\n",
        added, normalizer_.dump(), pre_tokenizer_.dump(), post_.dump(), decoder_.dump(), model_);
  }

  Json settings() const {
    Json json = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
    constexpr std::pair<const char*, std::string_view> kTokens[] = {
        {"bos_token", "bos_token_id"},       {"eos_token", "eos_token_id"},
        {"unk_token", "unknown_token_id"},   {"pad_token", "padding_token_id"},
        {"sep_token", "seperator_token_id"}, {"mask_token", "mask_token_id"}};
    for (const auto& [name, key] : kTokens)
      if (const std::string* const token = text(key)) json[name] = *token;
    if (keys_.model == "bert" && text("bos_token_id") != nullptr) json["cls_token"] = *text("bos_token_id");
    if (keys_.context) json["model_max_length"] = *keys_.context;
    if (keys_.templates.size() == 1 && keys_.templates.front().first.empty()) {
      json["chat_template"] = keys_.templates.front().second;
    } else if (!keys_.templates.empty()) {
      json["chat_template"] = Json::array();
      for (const auto& [name, text] : keys_.templates)
        json["chat_template"].push_back({{"name", name.empty() ? "default" : name}, {"template", text}});
    }
    return json;
  }

  Json generation_settings() const {
    Json json = {{"_from_model_config", true}};
    constexpr std::pair<const char*, std::string_view> kIds[] = {{"bos_token_id", "bos_token_id"},
                                                                 {"eos_token_id", "eos_token_id"},
                                                                 {"pad_token_id", "padding_token_id"}};
    for (const auto& [name, key] : kIds)
      if (const auto id = keys_.id(key)) json[name] = *id;
    return json;
  }

  static constexpr std::size_t kMostPiece = 4096, kMostMerges = 16'000'000;

  const GgufTokenizerKeys& keys_;
  HuggingFaceTokenizer result_;
  Json normalizer_, pre_tokenizer_, post_, decoder_;
  std::string model_;
};

}  // namespace

HuggingFaceTokenizer hugging_face_tokenizer(const graph::MetaGraph& gguf) {
  return Writer(read_tokenizer_keys(gguf)).write();
}

}  // namespace loadline::tokenizer
