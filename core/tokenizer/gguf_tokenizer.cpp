// Chooses how a vocabulary is written, and composes the keys (gguf.md of ggml, llama.cpp's conversion
// package).
#include "core/tokenizer/gguf_tokenizer.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/encoder.h"
#include "core/tokenizer/gguf_vocabulary.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::tokenizer {
namespace {

// What a family's vocabulary needs beyond its files.
struct Family {
  enum class Way : std::uint8_t {
    bpe,         // byte-level BPE of tokenizer.json
    llama,       // SentencePiece, else Llama 2's BPE, else byte-level BPE
    spm,         // SentencePiece
    spm_or_bpe,  // SentencePiece, else byte-level BPE
    phi3,        // SentencePiece with tokens of tokenizer.json, or GPT-2's BPE
    wordpiece,
    roberta,  // byte-level BPE, else WordPiece
    unigram,  // SentencePiece's Unigram, or its BPE as others have it
    xlm_roberta,
    own_code  // read by Python code that comes with the model
  };
  Way way;
  std::initializer_list<std::string_view> architectures;
  bool no_space_prefix = false;           // a text begins without a space
  bool per_layer = false;                 // vocab_size_per_layer_input counts
  std::optional<std::uint32_t> eot = {};  // the end of a turn, which no file names
};

using Way = Family::Way;

const Family kFamilies[] = {
    {Way::llama,
     {"LLaMAForCausalLM", "LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM",
      "VLlama3ForCausalLM", "LlavaForConditionalGeneration", "VoxtralForConditionalGeneration",
      "IQuestCoderForCausalLM", "LlamaModel", "ArceeForCausalLM", "LlamaBidirectionalModel",
      "SmolLM3ForCausalLM", "ApertusForCausalLM", "AfmoeForCausalLM", "CogVLMForCausalLM",
      "GraniteForCausalLM", "GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM",
      "JanusForConditionalGeneration"}},
    {Way::spm,
     {"BaichuanForCausalLM", "BaiChuanForCausalLM", "BitnetForCausalLM", "BitNetForCausalLM",
      "OrionForCausalLM", "MiniCPMForCausalLM", "MiniCPM3ForCausalLM", "NemotronForCausalLM",
      "Ernie4_5_ForCausalLM", "Ernie4_5ForCausalLM", "Ernie4_5_MoeForCausalLM", "PanguEmbeddedForCausalLM"}},
    {Way::spm, {"GemmaForCausalLM"}, true, false, 107},
    {Way::spm, {"Gemma2ForCausalLM"}, true},
    {Way::spm_or_bpe, {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "Gemma3TextModel"}, true},
    {Way::spm_or_bpe, {"Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"}, true, true},
    {Way::spm_or_bpe,
     {"Qwen2Model", "Qwen2ForCausalLM", "Qwen2AudioForConditionalGeneration", "Qwen2VLModel",
      "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration", "Qwen2_5OmniModel",
      "Qwen3ForCausalLM", "Qwen3Model", "Qwen3MoeForCausalLM", "Qwen3VLForConditionalGeneration",
      "Qwen3VLMoeForConditionalGeneration", "DreamModel", "DotsOCRForCausalLM", "MPTForCausalLM",
      "KORMoForCausalLM"}},
    {Way::phi3, {"Phi3ForCausalLM", "Phi4ForCausalLMV", "PhiMoEForCausalLM"}},
    {Way::wordpiece,
     {"BertModel", "BertForMaskedLM", "CamembertModel", "BertForSequenceClassification", "DistilBertModel",
      "DistilBertForMaskedLM", "DistilBertForSequenceClassification"}},
    {Way::roberta, {"RobertaModel", "RobertaForSequenceClassification"}},
    {Way::xlm_roberta, {"XLMRobertaModel", "XLMRobertaForSequenceClassification"}},
    {Way::unigram,
     {"T5WithLMHeadModel", "T5ForConditionalGeneration", "MT5ForConditionalGeneration",
      "UMT5ForConditionalGeneration", "UMT5Model", "T5EncoderModel"}},
    {Way::own_code,
     {"QWenLMHeadModel", "ChatGLMModel", "ChatGLMForConditionalGeneration", "PlamoForCausalLM",
      "Plamo2ForCausalLM", "PLaMo2ForCausalLM", "Rwkv6ForCausalLM", "Rwkv7ForCausalLM", "RWKV7ForCausalLM",
      "RwkvHybridForCausalLM", "InternLM2ForCausalLM", "HunYuanMoEV1ForCausalLM", "XverseForCausalLM",
      "Gemma4ForConditionalGeneration", "Gemma4ForCausalLM"}},
};

const Family* family_of(const TokenizerSettings& settings) {
  for (const std::string& architecture : settings.architectures)
    for (const Family& family : kFamilies)
      if (std::ranges::count(family.architectures, architecture) > 0) return &family;
  return nullptr;
}

std::string_view file_of(const ModelTokenizer& model) {
  if (model.json) return model.json->file;
  return model.sentencepiece ? std::string_view(model.sentencepiece->file) : "config.json";
}

Error lacks(const ModelTokenizer& model, std::string_view what) {
  return Error(ErrorCode::unsupported, {.file = std::string(file_of(model))},
               "the model's vocabulary needs {}, which its folder does not have", what);
}

// BPE whose pieces have U+2581 for a space, and byte pieces: Llama 2's, without SentencePiece's own file.
bool is_llama_bpe(const ModelTokenizer& model) {
  return model.json && model.json->kind == VocabularyKind::bpe && model.json->byte_fallback &&
         model.json->decoder_type == "Sequence";
}

// For architectures that the table does not list.
GgufVocabulary way_of_files(const ModelTokenizer& model) {
  if (model.sentencepiece)
    return model.sentencepiece->sentencepiece.model == SentencePieceSpec::Model::bpe
               ? GgufVocabulary::sentencepiece
               : GgufVocabulary::unigram;
  if (!model.json) throw lacks(model, "tokenizer.json or tokenizer.model");
  switch (model.json->kind) {
    case VocabularyKind::wordpiece:
      return GgufVocabulary::wordpiece;
    case VocabularyKind::unigram:
      return GgufVocabulary::xlm_roberta;
    case VocabularyKind::bpe:
      return is_llama_bpe(model) ? GgufVocabulary::llama_bpe : GgufVocabulary::bpe;
    default:
      break;
  }
  throw Error(ErrorCode::unsupported, {.file = model.json->file}, "GGUF has no form for a {} vocabulary",
              vocabulary_kind_name(model.json->kind));
}

GgufVocabulary choose(const ModelTokenizer& model, const Family* family) {
  const GgufVocabulary bpe = GgufVocabulary::bpe;
  const bool spm = model.sentencepiece.has_value();
  if (family == nullptr) {
    // byte-level BPE is what most architectures have, even beside a tokenizer.model
    return model.json && model.json->kind == VocabularyKind::bpe && !is_llama_bpe(model)
               ? bpe
               : way_of_files(model);
  }
  switch (family->way) {
    case Way::bpe:
      return bpe;
    case Way::llama:
      return spm ? GgufVocabulary::sentencepiece : is_llama_bpe(model) ? GgufVocabulary::llama_bpe : bpe;
    case Way::spm:
      return GgufVocabulary::sentencepiece;
    case Way::spm_or_bpe:  // pieces of SentencePiece are no bytes, and need their own file
      return spm || is_llama_bpe(model) ? GgufVocabulary::sentencepiece : bpe;
    case Way::phi3:
      return model.settings.tokenizer_class == "GPT2Tokenizer" ? bpe : GgufVocabulary::sentencepiece;
    case Way::wordpiece:
      return GgufVocabulary::wordpiece;
    case Way::roberta:
      return model.json ? bpe : GgufVocabulary::wordpiece;
    case Way::xlm_roberta:
      return GgufVocabulary::xlm_roberta;
    case Way::unigram:
      return spm && model.sentencepiece->sentencepiece.model == SentencePieceSpec::Model::bpe
                 ? GgufVocabulary::sentencepiece
                 : GgufVocabulary::unigram;
    case Way::own_code:
      break;
  }
  throw Error(ErrorCode::unsupported, {.file = std::string(file_of(model))},
              "the vocabulary of {} is read by Python code that comes with the model",
              safe_display(model.settings.architectures.front(), 60));
}

constexpr std::string_view kSpacePiece = "\xE2\x96\x81";  // U+2581

std::string normalizer_words(const NormalizerStep& step) {
  using Kind = NormalizerStep::Kind;
  constexpr const char* kNames[] = {
      "NFC",     "NFD",     "NFKC",  "NFKD", "Lowercase",   "StripAccents", "BertNormalizer",
      "Replace", "Prepend", "Strip", "Nmt",  "Precompiled", "ByteLevel"};
  std::string words = kNames[static_cast<std::size_t>(step.kind)];
  if (step.kind == Kind::bert && !step.clean_text) words += " without clean_text";
  if (step.kind == Kind::bert && !step.spaced_ideographs) words += " without handle_chinese_chars";
  return words;
}

class Writer {
 public:
  Writer(const ModelTokenizer& model, const GgufTokenizerRequest& request)
      : model_(model), request_(request), family_(family_of(model.settings)) {}

  GgufTokenizer write() {
    result_.vocabulary =
        request_.vocabulary == GgufVocabulary::automatic ? choose(model_, family_) : request_.vocabulary;
    check_files();
    const bool llama = family_ != nullptr && family_->way == Way::llama;
    if (llama && model_.settings.add_prefix_space) add("add_space_prefix", *model_.settings.add_prefix_space);
    write_vocabulary();
    if (family_ != nullptr && family_->eot) add("eot_token_id", *family_->eot);
    if (family_ != nullptr && family_->no_space_prefix && result_.vocabulary == GgufVocabulary::sentencepiece)
      add("add_space_prefix", false);
    const auto size = model_.settings.vocabulary_size.value_or(0);
    // Code Llama's and Granite's small models are known by their sizes
    if (llama && size == 32016) add("eot_token_id", std::uint32_t{32010});
    if (llama && size == 49152) add("add_bos_token", false);
    account();
    return std::move(result_);
  }

 private:
  // A key that is there already gets the new value.
  void add_key(const std::string& name, GgufTokenizerValue value) {
    const auto known = std::ranges::find(result_.keys, name, &GgufTokenizerKey::name);
    if (known != result_.keys.end()) {
      known->value = std::move(value);
    } else {
      result_.keys.push_back({name, std::move(value)});
    }
  }
  void add(std::string_view name, GgufTokenizerValue value) {
    add_key(fmt::format("tokenizer.ggml.{}", name), std::move(value));
  }

  void check_files() {
    const GgufVocabulary way = result_.vocabulary;
    const bool from_spm = way == GgufVocabulary::sentencepiece || way == GgufVocabulary::unigram;
    if (from_spm && !model_.sentencepiece) throw lacks(model_, "tokenizer.model");
    if (!from_spm && !model_.json) throw lacks(model_, "tokenizer.json");
    if (from_spm) check_sentencepiece();
    const auto must_be = [&](VocabularyKind kind) {
      if (model_.json->kind != kind)
        throw Error(ErrorCode::unsupported, {.file = model_.json->file},
                    "holds a {} vocabulary where {} is needed", vocabulary_kind_name(model_.json->kind),
                    vocabulary_kind_name(kind));
    };
    if (way == GgufVocabulary::xlm_roberta) must_be(VocabularyKind::unigram);
    if (way == GgufVocabulary::wordpiece) must_be(VocabularyKind::wordpiece);
    if (way == GgufVocabulary::bpe || way == GgufVocabulary::llama_bpe) must_be(VocabularyKind::bpe);
  }

  void unheeded(std::string name, std::string shown) {
    result_.unheeded.emplace_back(std::move(name), std::move(shown));
  }

  // What no key tells llama.cpp of, and what it does not do by itself.
  void account() {
    if (model_.json) account_for_template(tokenizer_with_settings(model_));
    if (result_.vocabulary == GgufVocabulary::sentencepiece)
      return account_for_added(model_.settings.added_decoder, false);
    if (result_.vocabulary == GgufVocabulary::unigram) return account_for_sentinels();
    const Tokenizer tokenizer = tokenizer_with_settings(model_);
    const bool wordpiece = result_.vocabulary == GgufVocabulary::wordpiece;
    std::string steps;
    bool composes = false;
    for (const NormalizerStep& step : tokenizer.normalizers) {
      composes = composes || step.kind == NormalizerStep::Kind::nfc;
      if (!follows(step)) steps += (steps.empty() ? "" : ", ") + normalizer_words(step);
    }
    if (!steps.empty()) unheeded("normalizer", steps);
    if (composes && !wordpiece)
      result_.notes.push_back(
          "llama.cpp takes texts as they are: those that are not in NFC it may cut in another way");
    account_for_added(tokenizer.added, !steps.empty() || wordpiece);
    const std::string_view usual_prefix = wordpiece ? "##" : "";
    if (tokenizer.subword_prefix != usual_prefix)
      unheeded("model.continuing_subword_prefix",
               fmt::format("'{}'", safe_display(tokenizer.subword_prefix, 20)));
    account_for_words(tokenizer);
    if (!tokenizer.word_suffix.empty())
      unheeded("model.end_of_word_suffix", fmt::format("'{}'", safe_display(tokenizer.word_suffix, 20)));
    using Kind = PreTokenizerStep::Kind;
    const bool own_cut = wordpiece || result_.vocabulary == GgufVocabulary::llama_bpe;
    for (const PreTokenizerStep& step : tokenizer.pre_tokenizers)
      if (own_cut && step.kind != (wordpiece ? Kind::bert : Kind::metaspace)) {
        unheeded("pre_tokenizer", fmt::format("{}", fmt::join(pre_tokenizer_steps(tokenizer), ", ")));
        break;
      }
  }

  // What the model of the vocabulary does with a word.
  void account_for_words(const Tokenizer& tokenizer) {
    constexpr std::uint64_t kUsualMost = 100;
    const GgufVocabulary way = result_.vocabulary;
    if (way == GgufVocabulary::bpe) {
      const std::string* const pre = key<std::string>("pre");
      if (pre != nullptr && tokenizer.ignore_merges != takes_whole_words(*pre) && merges_matter(tokenizer))
        unheeded("model.ignore_merges", tokenizer.ignore_merges ? "true" : "false");
      if (tokenizer.unknown && !has_all_bytes(tokenizer))
        unheeded("model.unk_token", fmt::format("'{}'", safe_display(*tokenizer.unknown, 20)));
    } else if (way == GgufVocabulary::xlm_roberta && tokenizer.byte_fallback) {
      unheeded("model.byte_fallback", "true");
    } else if (way == GgufVocabulary::wordpiece) {
      if (tokenizer.most_word_characters < kUsualMost)
        unheeded("model.max_input_chars_per_word", std::to_string(tokenizer.most_word_characters));
      else
        result_.notes.push_back(fmt::format(
            "llama.cpp also cuts words of more than {} characters, which the model takes as unknown",
            tokenizer.most_word_characters));
    }
  }

  // What stands before and behind a text.
  struct Around {
    std::vector<std::uint32_t> before, behind;
    bool operator==(const Around&) const = default;
  };

  void account_for_template(const Tokenizer& tokenizer) {
    std::string words;
    const auto asked = asked_around(tokenizer, words);
    if (asked) name_ends(*asked);
    if (!asked || !(*asked == written_around())) unheeded("post_processor", words);
  }

  // Where no setting says it, the template does: llama.cpp's converter leaves these keys out, or writes that
  // there are such tokens, and not which.
  void name_ends(const Around& asked) {
    if (result_.vocabulary == GgufVocabulary::wordpiece) return;  // has both, whatever keys say
    const Around written = written_around();
    const auto name_end = [&](const char* flag, const char* id, const std::vector<std::uint32_t>& ids,
                              bool differs) {
      if (ids.size() > 1) return;
      if (differs && key<bool>(flag) == nullptr) add(flag, !ids.empty());
      const bool* const adds = key<bool>(flag);
      if (adds != nullptr && *adds && !ids.empty() && key<std::uint32_t>(id) == nullptr) add(id, ids.front());
    };
    name_end("add_bos_token", "bos_token_id", asked.before, asked.before != written.before);
    name_end("add_eos_token", "eos_token_id", asked.behind, asked.behind != written.behind);
  }

  // By the steps of the tokenizer, which are told in `words`; nothing if a text is not there once.
  static std::optional<Around> asked_around(const Tokenizer& tokenizer, std::string& words) {
    Around around;
    bool once = true;
    for (const PostStep& step : tokenizer.post) {
      if (step.kind == PostStep::Kind::byte_level) continue;
      std::string names;
      std::vector<std::uint32_t> before, behind;
      if (step.kind == PostStep::Kind::templated) {
        std::size_t texts = 0;
        for (const TemplatePart& part : step.single) {
          names += (names.empty() ? "" : " ") + part.name;
          texts += part.special ? 0 : 1;
          auto& ids = texts == 0 ? before : behind;
          ids.insert(ids.end(), part.ids.begin(), part.ids.end());
        }
        once = once && texts == 1;
      } else {
        names = step.cls.first + " A " + step.sep.first;
        before = {step.cls.second};
        behind = {step.sep.second};
      }
      around.before.insert(around.before.begin(), before.begin(), before.end());
      around.behind.insert(around.behind.end(), behind.begin(), behind.end());
      words += (words.empty() ? "" : ", ") + safe_display(names, 60);
    }
    if (words.empty()) words = "nothing around a text";
    return once ? std::optional(around) : std::nullopt;
  }

  // By the keys, and by what llama.cpp takes where a key is missing.
  Around written_around() const {
    using V = GgufVocabulary;
    const V way = result_.vocabulary;
    const bool wordpiece = way == V::wordpiece, byte_level = way == V::bpe;
    const bool pieces = way == V::sentencepiece || way == V::llama_bpe;
    const std::string* const pre = key<std::string>("pre");
    const auto add = [&](const char* name, bool usual) {
      const bool* const said = key<bool>(name);
      return said != nullptr ? *said : usual;
    };
    const auto id = [&](const char* name, std::optional<std::uint32_t> usual) {
      const std::uint32_t* const said = key<std::uint32_t>(name);
      return said != nullptr ? std::optional(*said) : usual;
    };
    const auto usual_begin = byte_level  ? std::optional<std::uint32_t>(11)
                             : pieces    ? std::optional<std::uint32_t>(1)
                             : wordpiece ? std::optional<std::uint32_t>(101)
                                         : std::nullopt;
    Around around;
    const bool begins = byte_level ? pre != nullptr && begins_texts(*pre) : pieces;
    if (wordpiece || add("add_bos_token", begins))
      if (const auto begin = id("bos_token_id", usual_begin)) around.before.push_back(*begin);
    if (wordpiece)
      around.behind.push_back(id("seperator_token_id", 102).value());
    else if (add("add_eos_token", !byte_level && !pieces))
      around.behind.push_back(id("eos_token_id", byte_level ? 11 : pieces ? 2 : 1).value());
    return around;
  }

  // The value of a key that is written; null if there is none of this kind.
  template <typename Value>
  const Value* key(std::string_view name) const {
    for (const GgufTokenizerKey& one : result_.keys)
      if (one.name == fmt::format("tokenizer.ggml.{}", name)) return std::get_if<Value>(&one.value);
    return nullptr;
  }

  // As llama.cpp's converter, which takes SentencePiece's own pieces alone: T5's sentinels are not among
  // them.
  void account_for_sentinels() {
    std::vector<std::string> lost;
    for (const AddedToken& token : model_.settings.added_decoder)
      if (std::ranges::none_of(model_.sentencepiece->pieces,
                               [&](const VocabularyPiece& piece) { return piece.id == token.id; }))
        lost.push_back(token.text);
    if (!lost.empty())
      result_.notes.push_back(fmt::format(
          "tokens beside the SentencePiece model have no text in the file: {}", join_names(lost, 3)));
  }

  bool follows(const NormalizerStep& step) const {
    using Kind = NormalizerStep::Kind;
    switch (result_.vocabulary) {
      case GgufVocabulary::wordpiece:
        return step.kind == Kind::nfd || step.kind == Kind::lowercase || step.kind == Kind::strip_accents ||
               (step.kind == Kind::bert && step.clean_text && step.spaced_ideographs);
      case GgufVocabulary::llama_bpe:
        return (step.kind == Kind::prepend && step.content == kSpacePiece) ||
               (step.kind == Kind::replace && !step.pattern.regex && step.pattern.text == " " &&
                step.content == kSpacePiece);
      case GgufVocabulary::xlm_roberta:
        return step.kind == Kind::precompiled;
      default:
        return step.kind == Kind::nfc;
    }
  }

  // llama.cpp finds each where its text stands. Of a mask only training makes use.
  void account_for_added(const std::vector<AddedToken>& added, bool normalizes) {
    constexpr std::pair<bool AddedToken::*, const char*> kFlags[] = {
        {&AddedToken::lstrip, "lstrip"},
        {&AddedToken::rstrip, "rstrip"},
        {&AddedToken::single_word, "single_word"},
        {&AddedToken::normalized, "normalized"}};
    const auto mask = model_.settings.special.find("mask");
    for (const auto& [flag, name] : kFlags) {
      const bool normalized = flag == &AddedToken::normalized;
      std::vector<std::string> set;
      for (const AddedToken& token : added)
        if (token.*flag && !(normalized && (token.special || !normalizes)) &&
            !(mask != model_.settings.special.end() && mask->second.text == token.text))
          set.push_back(token.text);
      if (!set.empty()) unheeded(fmt::format("added_tokens.{}", name), "true for " + join_names(set, 3));
    }
  }

  // No key tells llama.cpp of these settings.
  void check_sentencepiece() {
    const SentencePieceSpec& spec = model_.sentencepiece->sentencepiece;
    if (spec.model == SentencePieceSpec::Model::word || spec.model == SentencePieceSpec::Model::character)
      throw Error(ErrorCode::unsupported, {.file = model_.sentencepiece->file},
                  "GGUF has no form for a SentencePiece model of type {}",
                  spec.model == SentencePieceSpec::Model::word ? "word" : "character");
    if (spec.treat_whitespace_as_suffix) unheeded("treat_whitespace_as_suffix", "true");
    if (!spec.escape_whitespaces) unheeded("escape_whitespaces", "false");
  }

  void write_vocabulary() {
    switch (result_.vocabulary) {
      case GgufVocabulary::bpe:
        return write_bpe();
      case GgufVocabulary::wordpiece:
        return write_wordpiece();
      case GgufVocabulary::sentencepiece:
        return write_tokens("llama", "default",
                            family_ != nullptr && family_->way == Way::phi3
                                ? phi3_tokens(model_)
                                : sentencepiece_tokens(model_, family_ != nullptr && family_->per_layer));
      case GgufVocabulary::unigram:
        return write_unigram();
      case GgufVocabulary::llama_bpe:
        return write_tokens("llama", "default", llama_bpe_tokens(model_, tokenizer_with_settings(model_)));
      case GgufVocabulary::xlm_roberta:
        return write_xlm_roberta();
      case GgufVocabulary::automatic:
        return;
    }
  }

  std::string pre_tokenizer(const Tokenizer& tokenizer, const Encoder& encoder) {
    std::string id = request_.pre_tokenizer;
    if (id.empty()) id = pre_tokenizer_id(tokenizer, encoder);
    if (std::string doubt = pre_tokenizer_doubt(id, tokenizer); !doubt.empty())
      result_.notes.push_back(std::move(doubt));
    return id;
  }

  void write_bpe() {
    const Tokenizer tokenizer = tokenizer_with_settings(model_);
    const Encoder encoder(tokenizer);
    const std::string pre = pre_tokenizer(tokenizer, encoder);
    std::vector<std::string> merges;
    for (const auto& [left, right] : tokenizer.merges) {
      std::string& merge = merges.emplace_back();
      for (const char c : left + '\0' + right) {
        // a space inside a piece is written as byte-level vocabularies write it; the one between is not
        if (c == '\0') {
          merge += ' ';
        } else if (c == ' ') {
          merge += "\xC4\xA0";
        } else {
          merge += c;
        }
      }
    }
    write_tokens("gpt2", pre, bpe_tokens(model_, tokenizer, encoder), std::move(merges));
    if (family_ != nullptr && family_->way == Way::roberta) add_token_types();
  }

  void write_wordpiece() {
    const Tokenizer tokenizer = tokenizer_with_settings(model_);
    const Encoder encoder(tokenizer);
    const std::string pre = pre_tokenizer(tokenizer, encoder);
    add_token_types();
    write_tokens("bert", pre, wordpiece_tokens(model_, tokenizer, encoder));
  }

  void write_unigram() {
    const SentencePieceSpec& spec = model_.sentencepiece->sentencepiece;
    write_rules(spec.add_dummy_prefix, spec.remove_extra_whitespaces, spec.charsmap);
    write_tokens("t5", "default", unigram_tokens(model_));
  }

  void write_xlm_roberta() {
    if (model_.json->normalizers.size() != 1 ||
        model_.json->normalizers[0].kind != NormalizerStep::Kind::precompiled)
      throw Error(
          ErrorCode::unsupported, {.file = model_.json->file},
          "GGUF has no form for the normalizer of this Unigram vocabulary, other than a single Precompiled");
    write_rules(model_.settings.add_prefix_space.value_or(true),
                model_.settings.clean_up_spaces.value_or(false), model_.json->normalizers[0].charsmap);
    add_token_types();
    write_tokens("t5", "default", xlm_roberta_tokens(model_, tokenizer_with_settings(model_)));
  }

  void add_token_types() { add("token_type_count", static_cast<std::uint32_t>(model_.settings.token_types)); }

  void write_rules(bool space_prefix, bool remove_spaces, const std::string& charsmap) {
    add("add_space_prefix", space_prefix);
    add("remove_extra_whitespaces", remove_spaces);
    if (!charsmap.empty())
      add("precompiled_charsmap", std::vector<std::uint8_t>(charsmap.begin(), charsmap.end()));
  }

  void write_tokens(const std::string& kind, const std::string& pre, GgufTokens tokens,
                    std::vector<std::string> merges = {}) {
    const bool bpe = result_.vocabulary == GgufVocabulary::bpe;
    const SpecialTokens special =
        special_tokens(model_, bpe ? std::nullopt : std::optional<std::uint64_t>(tokens.texts.size()));
    add("model", kind);
    add("pre", pre);
    add("tokens", std::move(tokens.texts));
    if (!tokens.scores.empty()) add("scores", std::move(tokens.scores));
    add("token_type", std::move(tokens.types));
    if (!merges.empty()) add("merges", std::move(merges));
    write_special(special);
  }

  void write_special(const SpecialTokens& special) {
    constexpr std::pair<std::string_view, std::string_view> kIds[] = {
        {"bos", "bos_token_id"},       {"eos", "eos_token_id"},     {"unk", "unknown_token_id"},
        {"sep", "seperator_token_id"}, {"pad", "padding_token_id"}, {"mask", "mask_token_id"},
        {"eot", "eot_token_id"},       {"eom", "eom_token_id"}};
    for (const auto& [name, id] : special.ids)
      for (const auto& [known, key] : kIds)
        if (name == known) add(key, id);
    for (const auto& [name, value] : special.adds)
      if (name == "bos" || name == "eos" || name == "sep") add("add_" + name + "_token", value);
    write_chat_templates();
    if (special.lowercase) add("normalizer.lowercase", *special.lowercase);
    if (special.strip_accents) add("normalizer.strip_accents", *special.strip_accents);
  }

  void write_chat_templates() {
    std::vector<std::string> names;
    for (const ChatTemplate& chat : model_.settings.chat_templates) {
      // only letters and digits are safe in a key's name
      std::string name = chat.name;
      for (char& c : name)
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '_';
      const bool only = name.empty() && model_.settings.chat_templates.size() == 1;
      if (only || name == "default") {
        add_key("tokenizer.chat_template", chat.text);
      } else if (!name.empty()) {
        add_key("tokenizer.chat_template." + name, chat.text);
        if (std::ranges::count(names, name) == 0) names.push_back(name);
      }
    }
    std::ranges::sort(names);
    if (!names.empty()) add_key("tokenizer.chat_templates", std::move(names));
  }

  const ModelTokenizer& model_;
  const GgufTokenizerRequest& request_;
  const Family* family_;
  GgufTokenizer result_ = {};
};

}  // namespace

GgufTokenizer gguf_tokenizer(const ModelTokenizer& model, const GgufTokenizerRequest& request) {
  return Writer(model, request).write();
}

}  // namespace loadline::tokenizer
