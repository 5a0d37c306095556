// Reads tokenizer_config.json and its neighbors, as transformers 5 and llama.cpp's converter use them.
// Fields of another type than expected count as absent, as they do there; broken JSON and impossible ids are
// errors.
#include "core/tokenizer/model_tokenizer.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

namespace loadline::tokenizer {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostSettings = 32 << 20;
constexpr std::uint64_t kMostTemplate = 4 << 20;
constexpr std::size_t kMostTemplates = 64;

std::string whole_text(const io::SourceFile& file, std::uint64_t most) {
  if (file.size() > most)
    throw Error(ErrorCode::limit, {.file = file.path()}, "has {}; {} are allowed", format_bytes(file.size()),
                format_bytes(most));
  std::string text = file.text_at(0, file.size());
  if (!is_valid_utf8(text)) throw Error(ErrorCode::malformed, {.file = file.path()}, "is not UTF-8");
  return text;
}

// An object; a null without the file.
struct Settings {
  std::string path = {};
  Json json = {};

  const Json* find(const std::string& key) const {
    if (!json.is_object()) return nullptr;
    const auto found = json.find(key);
    return found == json.end() ? nullptr : &*found;
  }
  Error malformed(std::string_view key, std::string_view detail) const {
    return Error(ErrorCode::malformed, {.file = path}, "{}: {}", safe_display(key, 60), detail);
  }
  std::uint32_t token_id(std::string_view key, const Json& value) const {
    if (!value.is_number_unsigned()) throw malformed(key, "is not a token id");
    const auto id = value.get<std::uint64_t>();
    if (id >= kMostTokens)
      throw Error(ErrorCode::limit, {.file = path}, "{}: token id {} is not below {}", safe_display(key, 60),
                  id, format_grouped(kMostTokens));
    return static_cast<std::uint32_t>(id);
  }
};

Settings read_settings(const OpenTokenizerFile& open, const std::string& name) {
  const auto file = open(name);
  if (!file) return {};
  const std::string text = whole_text(*file, kMostSettings);
  Settings settings = {file->path(), small_json<Json>(text)};
  if (settings.json.is_discarded()) throw Error(ErrorCode::malformed, {.file = file->path()}, "is not JSON");
  if (!settings.json.is_object())
    throw Error(ErrorCode::malformed, {.file = file->path()}, "is not a JSON object");
  return settings;
}

// "bos_token" -> "bos"; nothing for a name with another ending.
std::optional<std::string> without_ending(const std::string& name, std::string_view ending) {
  if (!name.ends_with(ending) || name.size() == ending.size()) return std::nullopt;
  return name.substr(0, name.size() - ending.size());
}

std::optional<SpecialText> special_text(const Json& value) {
  if (value.is_string()) return SpecialText{value.get<std::string>(), false};
  if (!value.is_object()) return std::nullopt;
  const auto content = value.find("content");
  if (content == value.end() || !content->is_string()) return std::nullopt;
  return SpecialText{content->get<std::string>(), true};
}

std::vector<std::string> texts_of(const Json* list) {
  std::vector<std::string> texts;
  if (list == nullptr || !list->is_array()) return texts;
  for (const Json& item : *list)
    if (const auto special = special_text(item)) texts.push_back(special->text);
  return texts;
}

bool flag_of(const Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

void read_added_decoder(const Settings& config, TokenizerSettings& settings) {
  const Json* const decoder = config.find("added_tokens_decoder");
  if (decoder == nullptr || !decoder->is_object()) return;
  for (const auto& [key, value] : decoder->items()) {
    std::uint32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id >= kMostTokens)
      throw config.malformed("added_tokens_decoder", "'" + safe_display(key, 60) + "' is not a token id");
    if (!value.is_object() || !value.contains("content") || !value["content"].is_string())
      throw config.malformed("added_tokens_decoder." + key, "has no content");
    AddedToken token;
    token.id = id;
    token.text = value["content"].get<std::string>();
    token.special = flag_of(value, "special", false);
    token.single_word = flag_of(value, "single_word", false);
    token.lstrip = flag_of(value, "lstrip", false);
    token.rstrip = flag_of(value, "rstrip", false);
    token.normalized = flag_of(value, "normalized", !token.special);
    settings.added_decoder.push_back(std::move(token));
  }
  std::ranges::sort(settings.added_decoder, {}, &AddedToken::id);
}

void read_tokenizer_config(const Settings& config, TokenizerSettings& settings) {
  // an empty object counts as no file
  settings.has_tokenizer_config = !config.json.empty();
  if (!settings.has_tokenizer_config) return;
  for (const auto& [key, value] : config.json.items()) {
    const auto name = without_ending(key, "_token");
    if (!name) continue;
    if (name->starts_with("add_")) {
      if (value.is_boolean()) settings.adds[name->substr(4)] = value.get<bool>();
    } else if (const auto special = special_text(value)) {
      settings.special[*name] = *special;
    }
  }
  for (const char* const key : {"additional_special_tokens", "extra_special_tokens"})
    for (std::string& text : texts_of(config.find(key))) settings.extra_special.push_back(std::move(text));
  const auto flag = [&](const char* key) -> std::optional<bool> {
    const Json* const value = config.find(key);
    return value != nullptr && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
  };
  settings.add_prefix_space = flag("add_prefix_space");
  settings.clean_up_spaces = flag("clean_up_tokenization_spaces");
  if (const Json* const name = config.find("tokenizer_class"); name != nullptr && name->is_string())
    settings.tokenizer_class = name->get<std::string>();
  read_added_decoder(config, settings);
}

void read_template_value(const Settings& from, const Json& value, TokenizerSettings& settings) {
  if (value.is_string()) {
    settings.chat_templates.push_back({"", value.get<std::string>()});
  } else if (value.is_array()) {
    for (const Json& item : value) {
      if (settings.chat_templates.size() == kMostTemplates)
        throw from.malformed("chat_template", "there are too many templates");
      if (!item.is_object()) continue;
      const auto name = item.find("name"), text = item.find("template");
      if (name == item.end() || text == item.end() || !name->is_string() || !text->is_string()) continue;
      settings.chat_templates.push_back({name->get<std::string>(), text->get<std::string>()});
    }
  }
}

void read_chat_templates(const OpenTokenizerFile& open, const ListTokenizerFiles& list,
                         const Settings& config, TokenizerSettings& settings) {
  if (!settings.has_tokenizer_config) return;
  // transformers writes this file, and leaves an older template where it was
  if (const auto file = open("chat_template.jinja")) {
    settings.chat_templates.push_back({"", whole_text(*file, kMostTemplate)});
    const std::string folder = "additional_chat_templates";
    for (const std::string& name : list ? list(folder) : std::vector<std::string>()) {
      const auto stem = without_ending(name, ".jinja");
      const auto more = stem ? open(folder + "/" + name) : nullptr;
      if (!more) continue;
      if (settings.chat_templates.size() == kMostTemplates)
        throw Error(ErrorCode::limit, {.file = more->path()}, "there are more than {} chat templates",
                    kMostTemplates);
      settings.chat_templates[0].name = "default";
      settings.chat_templates.push_back({*stem, whole_text(*more, kMostTemplate)});
    }
    return;
  }
  // even a null there hides the older file
  if (const Json* const value = config.find("chat_template"))
    return read_template_value(config, *value, settings);
  const Settings other = read_settings(open, "chat_template.json");
  if (const Json* const value = other.find("chat_template")) read_template_value(other, *value, settings);
}

std::optional<std::uint64_t> count_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? std::optional(found->get<std::uint64_t>())
                                                              : std::nullopt;
}

void read_config(const Settings& config, TokenizerSettings& settings) {
  if (config.json.is_null()) return;
  settings.architectures = texts_of(config.find("architectures"));
  const auto add_ids = [&](const Json& object) {
    for (const auto& [key, value] : object.items()) {
      const auto name = without_ending(key, "_token_id");
      // -1 stands for none
      if (name && value.is_number_unsigned() && !settings.ids.contains(*name))
        settings.ids[*name] = config.token_id(key, value);
    }
  };
  add_ids(config.json);
  const Json* const text = config.find("text_config");
  if (text != nullptr && text->is_object()) add_ids(*text);
  // what text_config says comes before what stands beside it
  const auto count = [&](const char* key) {
    const auto inner = text != nullptr && text->is_object() ? count_of(*text, key) : std::nullopt;
    return inner ? inner : count_of(config.json, key);
  };
  settings.vocabulary_size = count("vocab_size");
  settings.vocabulary_size_per_layer_input = count("vocab_size_per_layer_input");
  settings.token_types = count("type_vocab_size").value_or(1);
}

void read_rest(const OpenTokenizerFile& open, TokenizerSettings& settings) {
  const Settings map = read_settings(open, "special_tokens_map.json");
  if (map.json.is_object()) {
    for (const auto& [key, value] : map.json.items()) {
      const auto name = without_ending(key, "_token");
      const auto special = special_text(value);
      if (name && special) settings.special_map[*name] = special->text;
    }
  }
  const Settings added = read_settings(open, "added_tokens.json");
  if (added.json.is_object())
    for (const auto& [key, value] : added.json.items())
      settings.added.emplace_back(key, added.token_id(key, value));
  const Settings generation = read_settings(open, "generation_config.json");
  if (!generation.json.is_object()) return;
  for (const auto& [key, value] : generation.json.items()) {
    const auto name = without_ending(key, "_token_id");
    if (!name) continue;
    for (const Json& item : value.is_array() ? value : Json::array({value}))
      if (item.is_number_unsigned()) settings.generation_ids[*name].push_back(generation.token_id(key, item));
  }
}

// Adds a token as the library does: under its own id if the vocabulary has it, else behind all others.
void add_token(Tokenizer& tokenizer, AddedToken token) {
  const auto known = std::ranges::find(tokenizer.added, token.text, &AddedToken::text);
  if (known != tokenizer.added.end()) {
    token.id = known->id;
    *known = std::move(token);
    return;
  }
  const auto piece = std::ranges::find(tokenizer.pieces, token.text, &VocabularyPiece::text);
  if (piece != tokenizer.pieces.end()) {
    token.id = piece->id;
  } else {
    std::uint32_t next = static_cast<std::uint32_t>(tokenizer.pieces.size());
    for (const AddedToken& added : tokenizer.added) next = std::max(next, added.id + 1);
    token.id = next;
  }
  tokenizer.added.push_back(std::move(token));
}

}  // namespace

ModelTokenizer read_model_tokenizer(const OpenTokenizerFile& open, const ListTokenizerFiles& list) {
  ModelTokenizer model;
  if (const auto file = open("tokenizer.json")) model.json = read_tokenizer_json(*file);
  for (const char* const name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    const auto file = model.sentencepiece ? nullptr : open(name);
    if (file) model.sentencepiece = read_sentencepiece(*file);
  }
  const Settings config = read_settings(open, "tokenizer_config.json");
  read_tokenizer_config(config, model.settings);
  read_chat_templates(open, list, config, model.settings);
  read_config(read_settings(open, "config.json"), model.settings);
  read_rest(open, model.settings);
  return model;
}

Tokenizer tokenizer_with_settings(const ModelTokenizer& model) {
  Tokenizer tokenizer = *model.json;
  const TokenizerSettings& settings = model.settings;
  for (const AddedToken& token : settings.added_decoder) add_token(tokenizer, token);
  const auto add_special = [&](const std::string& text) {
    if (text.empty() || std::ranges::count(tokenizer.added, text, &AddedToken::text) > 0) return;
    AddedToken token;
    token.text = text;
    token.special = true;
    token.normalized = false;
    add_token(tokenizer, token);
  };
  for (const char* const name : {"bos", "eos", "unk", "sep", "pad", "cls", "mask"}) {
    const auto found = settings.special.find(name);
    if (found != settings.special.end()) add_special(found->second.text);
  }
  for (const std::string& text : settings.extra_special) add_special(text);

  const bool says = settings.adds.contains("bos") || settings.adds.contains("eos");
  if (!says) return tokenizer;
  PostStep step;
  step.kind = PostStep::Kind::templated;
  const auto add_part = [&](const char* name) {
    const auto wanted = settings.adds.find(name);
    const auto special = settings.special.find(name);
    if (wanted == settings.adds.end() || !wanted->second || special == settings.special.end()) return;
    const auto token = std::ranges::find(tokenizer.added, special->second.text, &AddedToken::text);
    if (token != tokenizer.added.end()) step.single.push_back({true, token->text, {token->id}});
  };
  add_part("bos");
  step.single.push_back({false, "A", {}});
  add_part("eos");
  tokenizer.post = {std::move(step)};
  return tokenizer;
}

}  // namespace loadline::tokenizer
