// Looks up the hash of a fixed text's ids in the table that llama.cpp's converter has (its name and version
// stand in the asset).
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/gguf_vocabulary.h"
#include "embedded/tokenizers_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>

namespace loadline::tokenizer {
namespace {

using Kind = PreTokenizerStep::Kind;

constexpr std::string_view kNoRules = "default";  // what llama.cpp takes where a file states none

struct Table {
  std::string text;
  std::vector<std::pair<std::string, std::string>> ids;                              // by hash
  std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> rules;  // steps, ids
};

const Table& table() {
  static const Table made = [] {
    Table read;
    const auto json = nlohmann::json::parse(embedded::tokenizers_files()[0].bytes);
    read.text = json.at("text");
    for (const auto& row : json.at("hashes")) read.ids.emplace_back(row.at("sha256"), row.at("id"));
    for (const auto& row : json.at("rules")) read.rules.emplace_back(row.at("steps"), row.at("ids"));
    return read;
  }();
  return made;
}

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw Error(ErrorCode::io, "libcrypto cannot compute SHA-256");
  std::string shown;
  for (unsigned i = 0; i < size; ++i) shown += fmt::format("{:02x}", digest[i]);
  return shown;
}

std::string_view behavior_name(SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::removed:
      return "removed";
    case SplitBehavior::isolated:
      return "isolated";
    case SplitBehavior::merged_with_previous:
      return "merged with the previous";
    case SplitBehavior::merged_with_next:
      return "merged with the next";
    case SplitBehavior::contiguous:
      return "contiguous";
  }
  return "";
}

std::string step_words(const PreTokenizerStep& step) {
  switch (step.kind) {
    case Kind::byte_level:
      return fmt::format("ByteLevel{}{}", step.use_regex ? " with its expression" : "",
                         step.add_prefix_space ? " and a space in front" : "");
    case Kind::split:
      return fmt::format("Split {}{}: {}", behavior_name(step.behavior), step.invert ? " inverted" : "",
                         step.pattern.text);
    case Kind::whitespace:
      return "Whitespace";
    case Kind::whitespace_split:
      return "WhitespaceSplit";
    case Kind::punctuation:
      return fmt::format("Punctuation {}", behavior_name(step.behavior));
    case Kind::digits:
      return step.individual ? "Digits one by one" : "Digits";
    case Kind::bert:
      return "BertPreTokenizer";
    case Kind::metaspace:
      return "Metaspace";
    case Kind::char_delimiter:
      return "CharDelimiterSplit";
    case Kind::fixed_length:
      return fmt::format("FixedLength {}", step.length);
    case Kind::unicode_scripts:
      return "UnicodeScripts";
  }
  return "";
}

// The ids of the rule with these steps; none if there is no such rule.
std::vector<std::string> ids_of_steps(const std::vector<std::string>& steps) {
  for (const auto& [rule, ids] : table().rules)
    if (rule == steps) return ids;
  return {};
}

}  // namespace

std::vector<std::string> pre_tokenizer_steps(const Tokenizer& tokenizer) {
  std::vector<std::string> words;
  for (const PreTokenizerStep& step : tokenizer.pre_tokenizers) words.push_back(step_words(step));
  return words;
}

std::optional<std::vector<std::string>> steps_of_pre_tokenizer(std::string_view id) {
  for (const auto& [rule, ids] : table().rules)
    if (std::ranges::find(ids, id) != ids.end()) return rule;
  return std::nullopt;
}

namespace {

// llama.cpp's llama_vocab::impl::load() (src/llama-vocab.cpp, autumn 2026).
constexpr std::array<std::string_view, 9> kLlama3 = {
    "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"};
constexpr std::array<std::string_view, 4> kWholeWords = {"tekken", "minicpm5", "youtu",
                                                         "granite-embed-multi-97m"};
constexpr std::array<std::string_view, 2> kBegin = {"tekken", "chameleon"};
// By which llama.cpp (2026.10) cuts all texts as the tokenizers library does by the steps that the rules give
// for them: marks, letters and capitals of many scripts, numbers, spaces and lines.
constexpr std::array<std::string_view, 30> kCutAlike = {
    "pixtral",      "gpt-2",       "phi-2",      "roberta-bpe", "mpt",
    "olmo",         "jais",        "jina-v1-en", "jina-v2-es",  "jina-v2-de",
    "jina-v2-code", "modern-bert", "gigachat",   "llama-bpe",   "smaug-bpe",
    "falcon-h1",    "lfm2",        "qwen2",      "stablelm2",   "deepseek-r1-qwen",
    "megrez",       "f2llmv2",     "starcoder",  "refact",      "command-r",
    "smollm",       "codeshell",   "exaone",     "deepseek-v3", "joyai-llm"};

template <std::size_t n>
bool holds(const std::array<std::string_view, n>& ids, std::string_view id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

bool takes_whole_words(std::string_view id) { return holds(kLlama3, id) || holds(kWholeWords, id); }

bool begins_texts(std::string_view id) { return holds(kLlama3, id) || holds(kBegin, id); }

std::string pre_tokenizer_doubt(std::string_view id, const Tokenizer& tokenizer) {
  const std::vector<std::string> found = ids_of_steps(pre_tokenizer_steps(tokenizer));
  const bool of_a_rule = std::ranges::find(found, id) != found.end();
  if (of_a_rule && holds(kCutAlike, id) && holds(kCutAlike, found.front())) return {};  // pixtral is of two
  if (of_a_rule)
    return fmt::format("its own rules for '{}' cut some texts otherwise than this tokenizer",
                       safe_display(id, 60));
  if (!steps_of_pre_tokenizer(id)) {
    const bool known = std::ranges::any_of(table().ids, [&](const auto& row) { return row.second == id; });
    if (known || id == kNoRules) return {};
    return fmt::format("llama.cpp may refuse the file: its converter has no pre-tokenizer '{}'",
                       safe_display(id, 60));
  }
  const std::string others = found.empty() ? "" : fmt::format(", but those of {}", join_names(found, 3));
  return fmt::format(
      "it will cut texts as '{}' does, but the steps of tokenizer.json are not those known of '{}'{}", id, id,
      others);
}

std::string pre_tokenizer_id(const Tokenizer& tokenizer, const Encoder& encoder) {
  const std::string hash = sha256(fmt::format("[{}]", fmt::join(encoder.encode(table().text, true), ", ")));
  const std::vector<std::string> by_rules = ids_of_steps(pre_tokenizer_steps(tokenizer));
  // Some hashes are in two rows (BGE and Jina v2, both BERT's): llama.cpp's converter takes the last one.
  const auto& ids = table().ids;
  const auto found =
      std::find_if(ids.rbegin(), ids.rend(), [&](const auto& row) { return row.first == hash; });
  if (found != ids.rend()) return found->second;
  const std::string suggested = by_rules.empty()
                                    ? "no known pre-tokenizer has the same steps"
                                    : fmt::format("its steps are those of {}", join_names(by_rules, 6));
  const Error error(
      ErrorCode::unsupported, {.file = tokenizer.file},
      "the pre-tokenizer is not known to llama.cpp: the token ids of its test text have the SHA-256 "
      "{}, which is in no row of its table; {}. If the vocabulary was trained anew and texts are cut "
      "as in a known model, state that model's pre-tokenizer; otherwise llama.cpp has to learn it first",
      hash, suggested);
  throw by_rules.empty() ? error : error.with({"pre_tokenizer", by_rules.front()});
}

}  // namespace loadline::tokenizer
