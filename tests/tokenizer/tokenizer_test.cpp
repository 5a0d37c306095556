// Small tokenizers written here: what each step does, and what hostile files give.
#include "core/tokenizer/encoder.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "core/tokenizer/gguf_vocabulary.h"
#include "core/tokenizer/model_tokenizer.h"
#include "tests/support/builders.h"
#include "tests/support/onnx_builder.h"

#include <algorithm>
#include <bit>
#include <map>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace loadline::tests {
namespace {

using testing::Proto;
using Ids = std::vector<std::uint32_t>;

tokenizer::Tokenizer from_json(std::string_view json) {
  return tokenizer::read_tokenizer_json(
      io::SourceFile::from_memory("tokenizer.json", testing::as_bytes(json)));
}

// A tokenizer that looks whole words up first, so that ids show how a text was cut. Every other word is
// unknown: 0.
std::string words_json(std::string_view more, std::string_view words) {
  std::string vocabulary = R"("<unk>":0)";
  std::uint32_t id = 0;
  std::size_t at = 0;
  while (at < words.size()) {
    const std::size_t end = std::min(words.find('|', at), words.size());
    vocabulary += fmt::format(R"(,"{}":{})", words.substr(at, end - at), ++id);
    at = end + 1;
  }
  return fmt::format(
      R"({{{}"model":{{"type":"BPE","vocab":{{{}}},"merges":[],"ignore_merges":true,"fuse_unk":true,"unk_token":"<unk>"}}}})",
      more, vocabulary);
}

Ids encoded(std::string_view json, std::string_view text, bool special = false) {
  const tokenizer::Tokenizer tokenizer = from_json(json);
  return tokenizer::Encoder(tokenizer).encode(text, special);
}

std::string encode_error(std::string_view json, std::string_view text) {
  return testing::facts_of([&] { encoded(json, text); });
}

TEST(TokenizerReading, KeepsWhatTheFileSays) {
  const tokenizer::Tokenizer tokenizer = from_json(R"({
    "added_tokens": [{"id": 5, "content": "<s>", "special": true, "lstrip": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}]},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                       "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"b": 1, "a": 0, "ab": 2}, "merges": [["a", "b"]], "ignore_merges": true}})");
  EXPECT_EQ(tokenizer.kind, tokenizer::VocabularyKind::bpe);
  ASSERT_EQ(tokenizer.pieces.size(), 3U);
  EXPECT_EQ(tokenizer.pieces[0].text, "a");
  EXPECT_EQ(tokenizer.normalizers.size(), 2U);
  EXPECT_EQ(tokenizer.merges.size(), 1U);
  EXPECT_TRUE(tokenizer.ignore_merges);
  EXPECT_TRUE(tokenizer.added[0].lstrip);
  EXPECT_FALSE(tokenizer.added[0].normalized);
  EXPECT_EQ(tokenizer.decoder_type, "ByteLevel");
  EXPECT_EQ(tokenizer::Encoder(tokenizer).encode("ab <s>", true), (Ids{5, 2, 5}));
  EXPECT_EQ(tokenizer::Encoder(tokenizer).decode({2, 5}), "ab<s>");
}

TEST(TokenizerReading, NamesTheEntryOfAFault) {
  const std::string model = R"("model":{"type":"BPE","vocab":{"a":0},"merges":[]})";
  const std::vector<testing::Hostile> table = {
      {"empty", "", "malformed tokenizer.json"},
      {"no object", "[]", "malformed tokenizer.json"},
      {"no model", "{}", "malformed tokenizer.json 'model'"},
      {"a large id", R"({"model":{"type":"BPE","vocab":{"a":4294967295},"merges":[]}})",
       "limit tokenizer.json model.vocab.a 4294967295 4,194,304"},
      {"a negative id", R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})",
       "malformed tokenizer.json model.vocab.a 0"},
      {"an id with a fraction", R"({"model":{"type":"BPE","vocab":{"a":1.0},"merges":[]}})",
       "malformed tokenizer.json model.vocab.a 0"},
      {"twice", R"({"model":{"type":"BPE","vocab":{"a":1,"a":2},"merges":[]}})",
       "malformed tokenizer.json model.vocab 'a'"},
      {"another model", R"({"model":{"type":"Magic","vocab":{}}})",
       "unsupported tokenizer.json model.type 'Magic'"},
      {"dropout", R"({"model":{"type":"BPE","vocab":{},"merges":[],"dropout":0.1}})",
       "unsupported tokenizer.json model.dropout"},
      {"a merge of one", R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})",
       "malformed tokenizer.json model.merges 0"},
      {"a merge of three", R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a","a","a"]]}})",
       "malformed tokenizer.json model.merges 0"},
      {"unigram id", R"({"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":1}})",
       "malformed tokenizer.json model.unk_id 1 1"},
      {"unigram text", R"({"model":{"type":"Unigram","vocab":[["a"]]}})",
       "malformed tokenizer.json model.vocab 0"},
      {"normalizer",
       "{" + model + R"(,"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Magic"}]}})",
       "unsupported tokenizer.json normalizer.normalizers 1 .type 'Magic'"},
      {"no pattern",
       "{" + model + R"(,"pre_tokenizer":{"type":"Split","behavior":"Isolated","invert":false}})",
       "malformed tokenizer.json pre_tokenizer 'pattern'"},
      {"behavior",
       "{" + model + R"(,"pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Eaten"}})",
       "malformed tokenizer.json pre_tokenizer.behavior 'Eaten'"},
      {"length", "{" + model + R"(,"pre_tokenizer":{"type":"FixedLength","length":0}})",
       "malformed tokenizer.json pre_tokenizer 0"},
      {"base64", "{" + model + R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":"a"}})",
       "malformed tokenizer.json normalizer.precompiled_charsmap base64"},
      {"template",
       "{" + model +
           R"(,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],"special_tokens":{}}})",
       "malformed tokenizer.json post_processor.special_tokens 'x'"},
      {"deep",
       "{" + model + R"(,"normalizer":)" + testing::repeat(R"({"type":"Sequence","normalizers":[)", 20) +
           testing::repeat("]}", 20) + "}",
       "limit tokenizer.json normalizer.normalizers 0 .normalizers 0 .normalizers 0 .normalizers 0 "
       ".normalizers 0 .normalizers 0 .normalizers 0 .normalizers 0 .normalizers 0 .normalizers 0 "
       ".normalizers 0 .normalizers 0 .normalizers 0 .normalizers 0 .normalizers 0 .normalizers 0 "
       ".normalizers 0 16"},
      {"deeper", "{" + model + R"(,"normalizer":)" + testing::repeat("[", 5000) + "}",
       "malformed tokenizer.json"},
  };
  testing::expect_errors(table, [](std::string_view json) { from_json(json); });
}

TEST(TokenizerReading, RefusesWhatCannotBeEncoded) {
  const auto with = [](std::string_view step) {
    return fmt::format(R"({{"pre_tokenizer":{},"model":{{"type":"BPE","vocab":{{"a":0}},"merges":[]}}}})",
                       step);
  };
  EXPECT_EQ(encode_error(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})", "a"),
            "malformed tokenizer.json model.merges 0 'b'");
  EXPECT_EQ(encode_error(R"({"model":{"type":"Unigram","vocab":[["a",0]]}})", "a"), "usage tokenizer.json");
  const auto split = [&](std::string_view regex) {
    return with(fmt::format(
        R"({{"type":"Split","pattern":{{"Regex":"{}"}},"behavior":"Isolated","invert":false}})", regex));
  };
  EXPECT_EQ(encode_error(split("("), "a"), "malformed tokenizer.json 1 1 '(' ')'");
  EXPECT_EQ(encode_error(split("a)"), "a"), "malformed tokenizer.json 1 1 ')' '('");
  EXPECT_EQ(encode_error(split("(?<n>a)"), "a"), "unsupported tokenizer.json 1 0");
  EXPECT_EQ(encode_error(split("\\\\p{Nonsense}"), "a"),
            "malformed tokenizer.json 1 '\\p{Nonsense}' U_REGEX_PROPERTY_SYNTAX 12");
  EXPECT_EQ(encode_error(split("\\\\G"), "a"), "unsupported tokenizer.json 1 0 '\\G'");
  EXPECT_EQ(encode_error(split(testing::repeat("(", 500)), "a"), "malformed tokenizer.json 1 101");
  // a pattern that tries every way to cut the text
  EXPECT_EQ(encode_error(split("(?:a|a|aa)+b"), std::string(100, 'a')),
            "limit tokenizer.json 1 '(?:a|a|aa)+b' 100 U_REGEX_TIME_OUT");
  EXPECT_EQ(
      encode_error(
          R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})",
          "a"),
      "malformed tokenizer.json 1 precompiled_charsmap 4294967295 4");
  EXPECT_EQ(encode_error(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})", "\xFF"),
            "malformed UTF-8");
}

TEST(TokenizerPatterns, MeanTheSameInBothLibraries) {
  const auto cut = [](std::string_view regex, std::string_view words, std::string_view text) {
    const std::string step = fmt::format(
        R"("pre_tokenizer":{{"type":"Split","pattern":{{"Regex":"{}"}},"behavior":"Isolated","invert":false}},)",
        regex);
    return encoded(words_json(step, words), text);
  };
  // {n,m}+ and {n}? are repetitions, not possessive and lazy
  EXPECT_EQ(cut("a{1,2}+", "aaaaa|b", "aaaaab"), (Ids{1, 2}));
  EXPECT_EQ(cut("a{2}?", "aa|b", "aab"), (Ids{1, 2}));
  // a brace that begins no repetition, operators of ICU's sets
  EXPECT_EQ(cut("a{x}", "a{x}|b", "a{x}b"), (Ids{1, 2}));
  EXPECT_EQ(cut("[&-]+", "-&", "-&"), (Ids{1}));
  EXPECT_EQ(cut("[a-c&{|}~-]+", "a&{}~-", "a&{}~-"), (Ids{1}));
  EXPECT_EQ(cut("[a-z&&[^b]]+", "ac|b", "acb"), (Ids{1, 2}));
  // lines end at line feeds only, and everywhere
  EXPECT_EQ(cut("a$", "a|\\nb", "a\nb"), (Ids{1, 2}));
  EXPECT_EQ(cut(".+", "a\\rb|\\n", "a\rb\n"), (Ids{1, 2}));
  // white space is the Unicode property
  EXPECT_EQ(cut("\\\\s+", "a|\\u000B\\u0085", "a\x0B\xC2\x85"), (Ids{1, 2}));
  EXPECT_EQ(cut("(?i:'S)", "a|'s", "a's"), (Ids{1, 2}));
  EXPECT_EQ(cut("(?i)x|y", "a|Y", "aY"), (Ids{1, 2}));
  EXPECT_EQ(cut("\\\\h+", "g|aF", "gaF"), (Ids{1, 2}));
}

TEST(TokenizerPatterns, BearLongRunsOfSpaces) {
  const std::string json = words_json(
      R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\s+$"},"behavior":"Isolated","invert":false},)",
      "b");
  EXPECT_EQ(encoded(json, std::string(5000, ' ') + "a").size(), 1U);
}

TEST(TokenizerSplitting, CutsAsEachBehaviorSays) {
  const auto cut = [](std::string_view behavior, std::string_view words) {
    const std::string step = fmt::format(
        R"("pre_tokenizer":{{"type":"Split","pattern":{{"String":"-"}},"behavior":"{}","invert":false}},)",
        behavior);
    return encoded(words_json(step, words), "the-final--countdown");
  };
  EXPECT_EQ(cut("Removed", "the|final|countdown"), (Ids{1, 2, 3}));
  EXPECT_EQ(cut("Isolated", "the|-|final|countdown"), (Ids{1, 2, 3, 2, 2, 4}));
  EXPECT_EQ(cut("MergedWithPrevious", "the-|final-|-|countdown"), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(cut("MergedWithNext", "the|-final|-|-countdown"), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(cut("Contiguous", "the|-|final|--|countdown"), (Ids{1, 2, 3, 4, 5}));
}

TEST(TokenizerSplitting, PutsASpaceInFrontOfTheFirstPieceOnly) {
  const auto cut = [](std::string_view scheme) {
    const std::string step = fmt::format(
        R"("added_tokens":[{{"id":9,"content":"<x>","special":true}}],"pre_tokenizer":{{"type":"Metaspace","replacement":"_","prepend_scheme":"{}"}},)",
        scheme);
    return encoded(words_json(step, "a|_a|b|_b"), "a b<x>a");
  };
  EXPECT_EQ(cut("first"), (Ids{2, 4, 9, 1}));
  EXPECT_EQ(cut("always"), (Ids{2, 4, 9, 2}));
  EXPECT_EQ(cut("never"), (Ids{1, 4, 9, 1}));
}

TEST(TokenizerAddedTokens, FollowTheirFlags) {
  const auto find = [](std::string_view flags, std::string_view text) {
    const std::string more = fmt::format(
        R"("added_tokens":[{{"id":9,"content":"Tok",{}}}],"normalizer":{{"type":"Lowercase"}},"pre_tokenizer":{{"type":"Split","pattern":{{"String":"|"}},"behavior":"Removed"}},)",
        flags);
    return encoded(words_json(more, "a|a |b| b|atokb|tok"), text);
  };
  EXPECT_EQ(find(R"("normalized":false)", "aTokb"), (Ids{1, 9, 3}));
  EXPECT_EQ(find(R"("normalized":false)", "atokb"), (Ids{5}));
  EXPECT_EQ(find(R"("normalized":true)", "atokb"), (Ids{1, 9, 3}));
  EXPECT_EQ(find(R"("normalized":false,"single_word":true)", "aTokb"), (Ids{5}));
  EXPECT_EQ(find(R"("normalized":false,"single_word":true)", "a Tok b"), (Ids{2, 9, 4}));
  EXPECT_EQ(find(R"("normalized":false,"lstrip":true)", "a Tok b"), (Ids{1, 9, 4}));
  EXPECT_EQ(find(R"("normalized":false,"rstrip":true)", "a Tok b"), (Ids{2, 9, 3}));
}

TEST(TokenizerModels, MergeInTheOrderOfRanks) {
  const std::string json =
      R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"bc":4,"abc":5},"merges":["b c","a b","a bc"]}})";
  EXPECT_EQ(encoded(json, "abc"), (Ids{5}));
  EXPECT_EQ(encoded(json, "abab"), (Ids{3, 3}));
  // long words are no trouble
  EXPECT_EQ(encoded(json, testing::repeat("ab", 200000)).size(), 200000U);
  const std::string fused =
      R"({"model":{"type":"BPE","vocab":{"<unk>":0,"a":1},"merges":[],"unk_token":"<unk>","fuse_unk":true}})";
  EXPECT_EQ(encoded(fused, "xyax"), (Ids{0, 1, 0}));
}

// Words of few symbols and of many are cut as a plain search cuts them: of all pairs the one of the lowest
// rank, of equal ones the leftmost. What is joined by no merge shows in merges_matter().
TEST(TokenizerModels, MergesAgreeWithAPlainSearch) {
  std::mt19937 random(3);
  std::vector<std::string> pieces = {"a", "b", "c"};
  std::vector<std::pair<std::string, std::string>> merges;
  while (merges.size() < 60) {
    const std::string left = pieces[random() % pieces.size()], right = pieces[random() % pieces.size()];
    if (std::ranges::find(pieces, left + right) != pieces.end()) continue;
    merges.emplace_back(left, right);
    pieces.push_back(left + right);
  }
  const auto json = [&] {
    std::string vocabulary, rules;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      vocabulary += fmt::format(R"({}"{}":{})", i == 0 ? "" : ",", pieces[i], i);
    for (const auto& [left, right] : merges)
      rules += fmt::format(R"({}"{} {}")", rules.empty() ? "" : ",", left, right);
    return fmt::format(R"({{"model":{{"type":"BPE","vocab":{{{}}},"merges":[{}]}}}})", vocabulary, rules);
  };
  for (std::size_t length = 1; length < 100; ++length) {
    std::vector<std::string> parts;
    std::string word;
    for (std::size_t i = 0; i < length; ++i) word += parts.emplace_back(1, "abc"[random() % 3]);
    for (std::size_t rank = 0; rank < merges.size();) {
      std::size_t at = 0;
      while (at + 1 < parts.size() && std::pair(parts[at], parts[at + 1]) != merges[rank]) ++at;
      if (at + 1 >= parts.size()) {
        ++rank;
        continue;
      }
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      rank = 0;  // what is new may have a lower rank
    }
    Ids ids;
    for (const std::string& part : parts)
      ids.push_back(static_cast<std::uint32_t>(std::ranges::find(pieces, part) - pieces.begin()));
    EXPECT_EQ(encoded(json(), word), ids) << word;
  }
  const std::string made = R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";
  EXPECT_FALSE(tokenizer::merges_matter(from_json(made)));
  const std::string whole =
      R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"ba":3},"merges":["a b"]}})";
  EXPECT_TRUE(tokenizer::merges_matter(from_json(whole)));
}

TEST(TokenizerModels, WordPieceTakesTheLongestPieces) {
  const std::string json =
      R"({"model":{"type":"WordPiece","vocab":{"[UNK]":0,"un":1,"##aff":2,"##able":3,"a":4},"unk_token":"[UNK]","max_input_chars_per_word":9}})";
  EXPECT_EQ(encoded(json, "unaffable"), (Ids{1, 2, 3}));
  EXPECT_EQ(encoded(json, "unaffables"), (Ids{0}));
  EXPECT_EQ(encoded(json, "unx"), (Ids{0}));
}

std::string piece(std::string_view text, float score, std::uint64_t type) {
  return Proto().text(1, text).fixed32(2, std::bit_cast<std::uint32_t>(score)).number(3, type).bytes();
}

// `trainer` and `normalizer` are more fields of the two specs.
std::string sentencepiece_model(std::uint64_t kind, Proto trainer = {}, Proto normalizer = {}) {
  Proto model;
  const std::pair<const char*, float> pieces[] = {{"\xE2\x96\x81", -1},
                                                  {"a", -2},
                                                  {"b", -3},
                                                  {"ab", -2.5F},
                                                  {"\xE2\x96\x81"
                                                   "a",
                                                   -4}};
  model.text(1, piece("<unk>", 0, 2)).text(1, piece("<s>", 0, 3)).text(1, piece("</s>", 0, 3));
  for (const auto& [text, score] : pieces) model.text(1, piece(text, score, 1));
  return model.text(2, trainer.number(3, kind)).text(3, normalizer.number(4, 1)).bytes();
}

tokenizer::Tokenizer from_proto(std::string_view bytes) {
  return tokenizer::read_sentencepiece(
      io::SourceFile::from_memory("tokenizer.model", testing::as_bytes(bytes)));
}

TEST(TokenizerSentencePiece, RefusesBrokenModels) {
  const std::string sample = sentencepiece_model(2);
  const std::vector<testing::Hostile> table = {
      {"empty", "", "malformed tokenizer.model"},
      {"no unknown", Proto().text(1, piece("a", 0, 1)).bytes(), "malformed tokenizer.model"},
      {"no text", Proto().text(1, Proto().number(3, 1)).bytes(), "malformed tokenizer.model 0"},
      {"type", Proto().text(1, piece("a", 0, 7)).bytes(), "malformed tokenizer.model 10 7"},
      {"score", Proto().text(1, piece("a", std::bit_cast<float>(0x7FC00000U), 1)).bytes(),
       "malformed tokenizer.model 0"},
      {"not UTF-8", Proto().text(1, piece("\xFF", 0, 1)).bytes(), "malformed tokenizer.model 0 UTF-8"},
      {"model", Proto().text(1, piece("a", 0, 2)).text(2, Proto().number(3, 9)).bytes(),
       "malformed tokenizer.model 14 9"},
      {"past the end", sample.substr(0, sample.size() - 1), "malformed tokenizer.model 115 3 2 1"},
      {"tiktoken", "IQ== 0\nIg== 1\n", "malformed tokenizer.model"},
  };
  testing::expect_errors(table, [](std::string_view bytes) { from_proto(bytes); });
}

tokenizer::ModelTokenizer model_of(const std::map<std::string, std::string>& files) {
  return tokenizer::read_model_tokenizer(
      [&](const std::string& name) {
        const auto found = files.find(name);
        return found == files.end() ? nullptr
                                    : std::make_shared<const io::SourceFile>(io::SourceFile::from_memory(
                                          name, testing::as_bytes(found->second)));
      },
      [&](const std::string& folder) {
        std::vector<std::string> names;
        for (const auto& [name, text] : files)
          if (name.starts_with(folder + "/")) names.push_back(name.substr(folder.size() + 1));
        return names;
      });
}

// The values as texts, by the ends of their names.
std::map<std::string, std::string> gguf_keys(const tokenizer::ModelTokenizer& model,
                                             const tokenizer::GgufTokenizerRequest& request = {}) {
  std::map<std::string, std::string> keys;
  for (const tokenizer::GgufTokenizerKey& key : tokenizer::gguf_tokenizer(model, request).keys)
    std::visit(
        [&](const auto& value) { keys[key.name.substr(key.name.find('.') + 1)] = fmt::format("{}", value); },
        key.value);
  return keys;
}

TEST(TokenizerGguf, WritesSentencePieceWithWhatStandsBesideIt) {
  const auto keys = gguf_keys(model_of(
      {{"tokenizer.model", sentencepiece_model(2)},
       {"config.json",
        R"({"architectures":["LlamaForCausalLM"],"vocab_size":11,"bos_token_id":1,"eos_token_id":[2,3],"pad_token_id":-1})"},
       {"tokenizer_config.json",
        R"({"add_bos_token":true,"add_prefix_space":false,"added_tokens_decoder":{"8":{"content":"<|x|>"},"9":{"content":"\u2581y"}}})"},
       {"chat_template.jinja", "{{ a }}"},
       {"additional_chat_templates/tool use.jinja", "b"}}));
  EXPECT_EQ(keys.at("ggml.model"), "llama");
  EXPECT_EQ(keys.at("ggml.pre"), "default");
  EXPECT_EQ(keys.at("ggml.token_type"), "[2, 3, 3, 1, 1, 1, 1, 1, 3, 4, 5]");
  EXPECT_NE(keys.at("ggml.tokens").find(R"("<|x|>", " y", "[PAD10]")"), std::string::npos);
  EXPECT_EQ(keys.at("ggml.bos_token_id"), "1");
  EXPECT_FALSE(keys.contains("ggml.eos_token_id"));
  EXPECT_FALSE(keys.contains("ggml.padding_token_id"));
  EXPECT_EQ(keys.at("ggml.add_bos_token"), "true");
  EXPECT_EQ(keys.at("ggml.add_space_prefix"), "false");
  EXPECT_EQ(keys.at("chat_template"), "{{ a }}");
  EXPECT_EQ(keys.at("chat_template.tool_use"), "b");
  EXPECT_EQ(keys.at("chat_templates"), R"(["tool_use"])");
}

TEST(TokenizerGguf, TheTemplateInAFileOfItsOwnCountsFirst) {
  const std::map<std::string, std::string> files = {
      {"tokenizer.model", sentencepiece_model(2)},
      {"config.json", R"({"architectures":["LlamaForCausalLM"]})"},
      {"tokenizer_config.json", R"({"chat_template":"old"})"}};
  EXPECT_EQ(gguf_keys(model_of(files)).at("chat_template"), "old");
  std::map<std::string, std::string> both = files;
  both["chat_template.jinja"] = "new";
  EXPECT_EQ(gguf_keys(model_of(both)).at("chat_template"), "new");
}

// llama.cpp has no merges for this kind: of two neighbors, those join first whose piece has the higher score.
TEST(TokenizerGguf, ScoresFollowTheOrderOfMerges) {
  const auto keys = gguf_keys(model_of(
      {{"tokenizer.json",
        R"({"decoder":{"type":"Sequence","decoders":[]},"model":{"type":"BPE","byte_fallback":true,)"
        R"("vocab":{"a":0,"b":1,"c":2,"bc":3,"ab":4,"abc":5},"merges":[["b","c"],["a","b"],["a","bc"],["ab","c"]]}})"},
       {"config.json", R"({"architectures":["LlamaForCausalLM"]})"}}));
  EXPECT_EQ(keys.at("ggml.scores"), "[-4, -4, -4, 0, -1, -2]");
}

// Gemma's pieces have scores and types of their own, which the merges do not tell; as bytes they would be
// others.
TEST(TokenizerGguf, RefusesGemmaAndPhiWithoutSentencePiecesFile) {
  const auto refusal = [](const char* architecture) {
    const std::string config = fmt::format(R"({{"architectures":["{}"]}})", architecture);
    return testing::facts_of([&] {
      (void)gguf_keys(
          model_of(
              {{"tokenizer.json",
                R"({"decoder":{"type":"Sequence","decoders":[]},"model":{"type":"BPE","byte_fallback":true,)"
                R"("vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}})"},
               {"config.json", config}}),
          {.pre_tokenizer = "gpt-2"});
    });
  };
  for (const char* const architecture :
       {"GemmaForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "Gemma3ForConditionalGeneration",
        "Gemma3nForConditionalGeneration", "Phi3ForCausalLM"})
    EXPECT_EQ(refusal(architecture), "unsupported tokenizer.json tokenizer.model") << architecture;
  EXPECT_EQ(refusal("LlamaForCausalLM"), "");
}

std::string unheeded(const tokenizer::ModelTokenizer& model, const std::string& pre = {}) {
  std::string text;
  for (const auto& [name, shown] : tokenizer::gguf_tokenizer(model, {.pre_tokenizer = pre}).unheeded)
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", name, shown);
  return text;
}

TEST(TokenizerGguf, NamesWhatNoKeySaysOfSentencePiece) {
  const auto of = [](const std::string& bytes) { return unheeded(model_of({{"tokenizer.model", bytes}})); };
  EXPECT_EQ(of(sentencepiece_model(1)), "");
  EXPECT_EQ(of(sentencepiece_model(1, Proto().number(24, 1))), "treat_whitespace_as_suffix=true");
  EXPECT_EQ(of(sentencepiece_model(2, {}, Proto().number(5, 0))), "escape_whitespaces=false");
  EXPECT_EQ(testing::error_of([&] { of(sentencepiece_model(3)); }),
            "tokenizer.model: GGUF has no form for a SentencePiece model of type word");
  EXPECT_EQ(testing::error_of([&] { of(sentencepiece_model(4)); }),
            "tokenizer.model: GGUF has no form for a SentencePiece model of type character");
}

TEST(TokenizerGguf, NamesWhatNoKeySaysOfTokenizerJson) {
  const auto of = [](const std::string& more, const std::string& added = {}, const std::string& model = {}) {
    return unheeded(
        model_of({{"tokenizer.json",
                   R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"added_tokens":[)" +
                       added + R"(],"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"])" +
                       model + "}" + more + "}"},
                  {"tokenizer_config.json", R"({"mask_token":"<mask>"})"}}),
        "gpt-2");
  };
  const auto token = [](const std::string& text, const std::string& flags) {
    return R"({"id":3,"content":")" + text + R"(","normalized":false)" + flags + "}";
  };
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of(R"(,"normalizer":{"type":"NFC"})"), "");  // a note
  EXPECT_EQ(of(R"(,"normalizer":{"type":"Lowercase"})"), "normalizer=Lowercase");
  EXPECT_EQ(of(R"(,"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"NFKD"}]})"),
            "normalizer=NFKD");
  EXPECT_EQ(of("", token("<x>", R"(,"lstrip":true)")), "added_tokens.lstrip=true for '<x>'");
  EXPECT_EQ(of("", token("<x>", R"(,"rstrip":true,"special":true)")), "added_tokens.rstrip=true for '<x>'");
  EXPECT_EQ(of("", token("<x>", R"(,"single_word":true)")), "added_tokens.single_word=true for '<x>'");
  EXPECT_EQ(of("", token("<mask>", R"(,"lstrip":true,"special":true)")), "");
  const std::string folds = R"(,"normalizer":{"type":"Lowercase"})";
  EXPECT_EQ(of("", R"({"id":3,"content":"Day","normalized":true})"), "");
  EXPECT_EQ(of(folds, R"({"id":3,"content":"Day","normalized":true})"),
            "normalizer=Lowercase; added_tokens.normalized=true for 'Day'");
  EXPECT_EQ(of("", "", R"(,"end_of_word_suffix":"</w>")"), "model.end_of_word_suffix='</w>'");
}

TEST(TokenizerGguf, TellsWhatItCannotName) {
  const std::string bytes =
      R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},
    "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";
  const tokenizer::ModelTokenizer model =
      model_of({{"tokenizer.json", bytes}, {"config.json", R"({"vocab_size":4})"}});
  const std::string refused = testing::facts_of([&] { tokenizer::gguf_tokenizer(model, {}); });
  EXPECT_TRUE(refused.starts_with("unsupported tokenizer.json ")) << refused;
  EXPECT_TRUE(refused.ends_with(" >pre_tokenizer=gpt-2")) << refused;
  tokenizer::GgufTokenizerRequest request;
  request.pre_tokenizer = "gpt-2";
  const auto keys = gguf_keys(model, request);
  EXPECT_EQ(keys.at("ggml.pre"), "gpt-2");
  EXPECT_EQ(keys.at("ggml.tokens"), R"(["a", "b", "ab", "[PAD3]"])");
  EXPECT_EQ(keys.at("ggml.merges"), R"(["a b"])");
  // a stated id is held against the steps
  const auto notes_with = [&](std::string id) {
    return fmt::format(
        "{}", fmt::join(tokenizer::gguf_tokenizer(model, {.pre_tokenizer = std::move(id)}).notes, "; "));
  };
  EXPECT_EQ(notes_with("gpt-2"), "");
  EXPECT_EQ(notes_with("falcon3"),
            "its own rules for 'falcon3' cut some texts otherwise than this tokenizer");
  EXPECT_EQ(notes_with("default"), "");
  EXPECT_EQ(notes_with("viking"), "");  // known, but no rule tells its steps
  EXPECT_EQ(notes_with("nonsense"),
            "llama.cpp may refuse the file: its converter has no pre-tokenizer 'nonsense'");
  EXPECT_EQ(notes_with("llama-bpe"),
            "it will cut texts as 'llama-bpe' does, but the steps of tokenizer.json are not those known of "
            "'llama-bpe', but those of 'gpt-2', 'phi-2', 'roberta-bpe' and 11 more");
  const auto error_with = [&](std::string_view config) {
    return testing::facts_of([&] {
      tokenizer::gguf_tokenizer(model_of({{"tokenizer.json", bytes}, {"config.json", std::string(config)}}),
                                request);
    });
  };
  EXPECT_EQ(error_with(R"({"vocab_size":2})"), "malformed tokenizer.json 2 config.json vocab_size 2");
  EXPECT_EQ(error_with(R"({"vocab_size":4294967296})"),
            "limit tokenizer.json config.json vocab_size 4294967296 4,194,304");
  EXPECT_EQ(error_with(R"({"architectures":["GemmaForCausalLM"]})"),
            "unsupported tokenizer.json tokenizer.model");
  EXPECT_EQ(error_with(R"({"architectures":["QWenLMHeadModel"]})"), "unsupported tokenizer.json");
  EXPECT_EQ(testing::facts_of([&] { tokenizer::gguf_tokenizer(model_of({}), {}); }),
            "unsupported config.json tokenizer.json tokenizer.model");
  EXPECT_EQ(testing::facts_of([&] {
              model_of({{"tokenizer_config.json", "{"}});
            }),
            "malformed tokenizer_config.json");
  EXPECT_EQ(testing::facts_of([&] {
              model_of({{"added_tokens.json", R"({"a":4194304})"}});
            }),
            "limit added_tokens.json 4194304 4,194,304");
}

}  // namespace
}  // namespace loadline::tests
