// tokenizer.json, version 1.0, as the `tokenizers` library of Hugging Face (0.23) writes and reads it:
//   version, truncation, padding   not needed to encode
//   added_tokens                   [{id, content, single_word, lstrip, rstrip, normalized, special}]
//   normalizer                     null or {type, ...}; Sequence holds `normalizers`
//   pre_tokenizer                  null or {type, ...}; Sequence holds `pretokenizers`
//   post_processor                 null or {type, ...}; Sequence holds `processors`
//   decoder                        null or {type, ...}; Sequence holds `decoders`
//   model                          {type, vocab, ...}: vocab is {text: id}, or of Unigram [[text, score]]
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/model_tokenizer.h"
#include "core/tokenizer/unicode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <unordered_set>

#include <fmt/core.h>
#include <simdjson.h>

namespace loadline::tokenizer {
namespace {

constexpr std::uint64_t kMostFile = 256 << 20;
constexpr std::size_t kMostSteps = 256;  // after flattening
constexpr std::size_t kMostPattern = 64 << 10;
constexpr std::size_t kMostAddedText = 4096;
constexpr std::size_t kMostDepth = 16;

// A value and the way to it. The parents outlive it: they are on the stack.
class Entry {
 public:
  Entry(const std::string& file, simdjson::dom::element value) : file_(file), value_(value) {}
  Entry(const Entry& parent, std::string_view key, simdjson::dom::element value)
      : file_(parent.file_), parent_(&parent), key_(key), value_(value) {}
  Entry(const Entry& parent, std::size_t position, simdjson::dom::element value)
      : file_(parent.file_), parent_(&parent), position_(position), value_(value) {}

  std::string way() const {
    if (parent_ == nullptr) return "";
    const std::string before = parent_->way();
    if (key_.empty()) return fmt::format("{}[{}]", before, position_);
    return fmt::format("{}{}{}", before, before.empty() ? "" : ".", safe_display(key_, 60));
  }
  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return fault(ErrorCode::malformed, fmt::vformat(detail, fmt::make_format_args(values...)));
  }
  Error fault(ErrorCode code, const std::string& detail) const {
    const std::string at = way();
    return Error(code, {.file = file_}, std::string_view(at.empty() ? detail : at + ": " + detail));
  }

  simdjson::dom::element value() const { return value_; }
  bool is_null() const { return value_.is_null(); }
  bool is_text() const { return value_.is_string(); }

  simdjson::dom::object object() const {
    simdjson::dom::object object;
    if (value_.get(object) != simdjson::SUCCESS) throw malformed("is not an object");
    return object;
  }
  simdjson::dom::array array() const {
    simdjson::dom::array array;
    if (value_.get(array) != simdjson::SUCCESS) throw malformed("is not a list");
    return array;
  }
  std::string_view text() const {
    std::string_view text;
    if (value_.get(text) != simdjson::SUCCESS) throw malformed("is not a string");
    return text;
  }
  bool flag() const {
    bool flag = false;
    if (value_.get(flag) != simdjson::SUCCESS) throw malformed("is not true or false");
    return flag;
  }
  std::uint64_t number() const {
    std::uint64_t number = 0;
    if (value_.type() == simdjson::dom::element_type::DOUBLE || value_.get(number) != simdjson::SUCCESS)
      throw malformed("is not a whole number from 0");
    return number;
  }
  double real() const {
    double real = 0;
    if (value_.get(real) != simdjson::SUCCESS) throw malformed("is not a number");
    return real;
  }
  std::uint32_t token_id() const {
    const std::uint64_t id = number();
    if (id >= kMostTokens)
      throw fault(ErrorCode::limit,
                  fmt::format("token id {} is not below {}", id, format_grouped(kMostTokens)));
    return static_cast<std::uint32_t>(id);
  }

  // The field under `key`; nothing if it is absent or null.
  std::optional<Entry> find(std::string_view key) const {
    simdjson::dom::element field;
    if (object().at_key(key).get(field) != simdjson::SUCCESS || field.is_null()) return std::nullopt;
    return Entry(*this, key, field);
  }
  Entry at(std::string_view key) const {
    if (auto found = find(key)) return *found;
    throw malformed("has no '{}'", key);
  }
  bool flag(std::string_view key, bool otherwise) const {
    const auto found = find(key);
    return found ? found->flag() : otherwise;
  }
  std::string text(std::string_view key, std::string_view otherwise) const {
    const auto found = find(key);
    return std::string(found ? found->text() : otherwise);
  }
  template <typename Each>
  void for_each(Each each) const {
    std::size_t position = 0;
    for (const simdjson::dom::element item : array()) each(Entry(*this, position++, item));
  }

 private:
  const std::string& file_;
  const Entry* parent_ = nullptr;
  std::string_view key_ = {};
  std::size_t position_ = 0;
  simdjson::dom::element value_;
};

template <typename Kind>
struct Name {
  std::string_view name;
  Kind kind;
};

template <typename Kind, std::size_t N>
Kind kind_of(const Entry& entry, std::string_view what, const std::array<Name<Kind>, N>& names) {
  const Entry type = entry.at("type");
  const std::string_view text = type.text();
  for (const auto& [name, kind] : names)
    if (name == text) return kind;
  std::string known;
  for (const auto& row : names) known.append(known.empty() ? "" : ", ").append(row.name);
  throw type.fault(ErrorCode::unsupported, fmt::format("no {} is called '{}'; there are: Sequence, {}", what,
                                                       safe_display(text, 60), known));
}

// The steps of an entry, whose sequences are flattened, in `key`.
template <typename Step, typename Read>
void read_steps(const Entry& entry, std::string_view key, Read read, std::vector<Step>& steps,
                std::size_t depth = 0) {
  if (depth > kMostDepth)
    throw entry.fault(ErrorCode::limit, fmt::format("sequences are nested more than {} deep", kMostDepth));
  const auto type = entry.find("type");
  if (type && type->is_text() && type->text() == "Sequence") {
    const Entry list = entry.at(key);
    list.for_each([&](const Entry& item) { read_steps(item, key, read, steps, depth + 1); });
    return;
  }
  if (steps.size() == kMostSteps)
    throw entry.fault(ErrorCode::limit, fmt::format("there are more than {} steps", kMostSteps));
  steps.push_back(read(entry));
}

TextPattern read_pattern(const Entry& entry) {
  TextPattern pattern;
  std::string_view text;
  if (const auto plain = entry.find("String")) {
    text = plain->text();
  } else {
    const Entry regex = entry.at("Regex");
    text = regex.text();
    pattern.regex = true;
  }
  if (text.size() > kMostPattern)
    throw entry.fault(ErrorCode::limit,
                      fmt::format("the pattern has {} bytes; {} are allowed", text.size(), kMostPattern));
  pattern.text = text;
  return pattern;
}

std::string read_charsmap(const Entry& entry) {
  auto bytes = base64_bytes(entry.text());
  if (!bytes) throw entry.malformed("is not base64");
  return std::move(*bytes);
}

NormalizerStep read_normalizer(const Entry& entry) {
  using Kind = NormalizerStep::Kind;
  static constexpr std::array<Name<Kind>, 14> kNames = {{{"NFC", Kind::nfc},
                                                         {"NFD", Kind::nfd},
                                                         {"NFKC", Kind::nfkc},
                                                         {"NFKD", Kind::nfkd},
                                                         {"Lowercase", Kind::lowercase},
                                                         {"StripAccents", Kind::strip_accents},
                                                         {"BertNormalizer", Kind::bert},
                                                         {"Bert", Kind::bert},
                                                         {"Replace", Kind::replace},
                                                         {"Prepend", Kind::prepend},
                                                         {"Strip", Kind::strip},
                                                         {"Nmt", Kind::nmt},
                                                         {"Precompiled", Kind::precompiled},
                                                         {"ByteLevel", Kind::byte_level}}};
  NormalizerStep step;
  step.kind = kind_of(entry, "normalizer", kNames);
  if (step.kind == Kind::replace) {
    step.pattern = read_pattern(entry.at("pattern"));
    step.content = entry.at("content").text();
  } else if (step.kind == Kind::prepend) {
    step.content = entry.at("prepend").text();
  } else if (step.kind == Kind::strip) {
    step.left = entry.flag("strip_left", true);
    step.right = entry.flag("strip_right", true);
  } else if (step.kind == Kind::precompiled) {
    step.charsmap = read_charsmap(entry.at("precompiled_charsmap"));
  } else if (step.kind == Kind::bert) {
    step.clean_text = entry.flag("clean_text", true);
    step.spaced_ideographs = entry.flag("handle_chinese_chars", true);
    step.lower = entry.flag("lowercase", true);
    if (const auto bare = entry.find("strip_accents")) step.strip_accents = bare->flag();
    step.bare = step.strip_accents.value_or(step.lower);
  }
  return step;
}

SplitBehavior read_behavior(const Entry& entry) {
  static constexpr std::array<Name<SplitBehavior>, 5> kNames = {
      {{"Removed", SplitBehavior::removed},
       {"Isolated", SplitBehavior::isolated},
       {"MergedWithPrevious", SplitBehavior::merged_with_previous},
       {"MergedWithNext", SplitBehavior::merged_with_next},
       {"Contiguous", SplitBehavior::contiguous}}};
  for (const auto& [name, behavior] : kNames)
    if (name == entry.text()) return behavior;
  throw entry.malformed("no behavior is called '{}'", safe_display(entry.text(), 60));
}

std::string one_character(const Entry& entry) {
  const std::string_view text = entry.text();
  const auto leading = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  if (std::ranges::count_if(text, leading) != 1) throw entry.malformed("is not one character");
  return std::string(text);
}

// `prepend_scheme`, or `add_prefix_space` of older files.
PrependScheme read_scheme(const Entry& entry) {
  PrependScheme scheme = PrependScheme::always;
  if (const auto name = entry.find("prepend_scheme")) {
    if (name->text() == "first") {
      scheme = PrependScheme::first;
    } else if (name->text() == "never") {
      scheme = PrependScheme::never;
    } else if (name->text() != "always") {
      throw name->malformed("is not 'first', 'never' or 'always'");
    }
  }
  return entry.flag("add_prefix_space", true) ? scheme : PrependScheme::never;
}

PreTokenizerStep read_pre_tokenizer(const Entry& entry) {
  using Kind = PreTokenizerStep::Kind;
  static constexpr std::array<Name<Kind>, 12> kNames = {{{"ByteLevel", Kind::byte_level},
                                                         {"Split", Kind::split},
                                                         {"Whitespace", Kind::whitespace},
                                                         {"WhitespaceSplit", Kind::whitespace_split},
                                                         {"Punctuation", Kind::punctuation},
                                                         {"Digits", Kind::digits},
                                                         {"BertPreTokenizer", Kind::bert},
                                                         {"Metaspace", Kind::metaspace},
                                                         {"CharDelimiterSplit", Kind::char_delimiter},
                                                         {"Delimiter", Kind::char_delimiter},
                                                         {"FixedLength", Kind::fixed_length},
                                                         {"UnicodeScripts", Kind::unicode_scripts}}};
  PreTokenizerStep step;
  step.kind = kind_of(entry, "pre-tokenizer", kNames);
  if (step.kind == Kind::byte_level) {
    step.add_prefix_space = entry.flag("add_prefix_space", true);
    step.use_regex = entry.flag("use_regex", true);
  } else if (step.kind == Kind::split) {
    step.pattern = read_pattern(entry.at("pattern"));
    step.behavior = read_behavior(entry.at("behavior"));
    step.invert = entry.flag("invert", false);
  } else if (step.kind == Kind::punctuation) {
    const auto behavior = entry.find("behavior");
    step.behavior = behavior ? read_behavior(*behavior) : SplitBehavior::isolated;
  } else if (step.kind == Kind::digits) {
    step.individual = entry.flag("individual_digits", false);
  } else if (step.kind == Kind::metaspace) {
    step.replacement = one_character(entry.at("replacement"));
    step.prepend = read_scheme(entry);
    step.divide = entry.flag("split", true);
  } else if (step.kind == Kind::char_delimiter) {
    step.replacement = one_character(entry.at("delimiter"));
  } else if (step.kind == Kind::fixed_length) {
    const auto length = entry.find("length");
    step.length = length ? length->number() : 5;
    if (step.length == 0) throw entry.malformed("length is 0");
  }
  return step;
}

std::vector<TemplatePart> read_template(const Entry& list, const Entry& processor) {
  std::vector<TemplatePart> parts;
  list.for_each([&](const Entry& item) {
    TemplatePart part;
    if (const auto token = item.find("SpecialToken")) {
      part.special = true;
      part.name = token->at("id").text();
      const Entry tokens = processor.at("special_tokens");
      const Entry known = tokens.at(part.name);
      known.at("ids").for_each([&](const Entry& id) { part.ids.push_back(id.token_id()); });
    } else {
      const Entry sequence = item.at("Sequence");
      part.name = sequence.at("id").text();
      if (part.name != "A" && part.name != "B") throw sequence.malformed("id is neither 'A' nor 'B'");
    }
    if (parts.size() == kMostSteps)
      throw list.fault(ErrorCode::limit, fmt::format("has more than {} parts", kMostSteps));
    parts.push_back(std::move(part));
  });
  return parts;
}

std::pair<std::string, std::uint32_t> read_special(const Entry& pair) {
  std::vector<simdjson::dom::element> items;
  pair.for_each([&](const Entry& item) { items.push_back(item.value()); });
  if (items.size() != 2) throw pair.malformed("is not a pair of a token and its id");
  return {std::string(Entry(pair, std::size_t{0}, items[0]).text()),
          Entry(pair, std::size_t{1}, items[1]).token_id()};
}

PostStep read_processor(const Entry& entry) {
  using Kind = PostStep::Kind;
  static constexpr std::array<Name<Kind>, 4> kNames = {{{"ByteLevel", Kind::byte_level},
                                                        {"BertProcessing", Kind::bert},
                                                        {"RobertaProcessing", Kind::roberta},
                                                        {"TemplateProcessing", Kind::templated}}};
  PostStep step;
  step.kind = kind_of(entry, "post-processor", kNames);
  if (step.kind == Kind::templated) {
    step.single = read_template(entry.at("single"), entry);
    if (const auto pair = entry.find("pair")) step.pair = read_template(*pair, entry);
  } else if (step.kind != Kind::byte_level) {
    step.cls = read_special(entry.at("cls"));
    step.sep = read_special(entry.at("sep"));
  }
  return step;
}

DecoderStep read_decoder(const Entry& entry) {
  using Kind = DecoderStep::Kind;
  static constexpr std::array<Name<Kind>, 9> kNames = {{{"ByteLevel", Kind::byte_level},
                                                        {"Replace", Kind::replace},
                                                        {"ByteFallback", Kind::byte_fallback},
                                                        {"Fuse", Kind::fuse},
                                                        {"Strip", Kind::strip},
                                                        {"Metaspace", Kind::metaspace},
                                                        {"WordPiece", Kind::wordpiece},
                                                        {"BPEDecoder", Kind::bpe},
                                                        {"CTC", Kind::ctc}}};
  DecoderStep step;
  step.kind = kind_of(entry, "decoder", kNames);
  if (step.kind == Kind::replace) {
    step.pattern = read_pattern(entry.at("pattern"));
    step.content = entry.at("content").text();
  } else if (step.kind == Kind::strip) {
    step.content = one_character(entry.at("content"));
    step.start = entry.at("start").number();
    step.stop = entry.at("stop").number();
  } else if (step.kind == Kind::metaspace) {
    step.replacement = one_character(entry.at("replacement"));
    step.prepend = read_scheme(entry);
  } else if (step.kind == Kind::wordpiece) {
    step.affix = entry.text("prefix", "##");
    step.cleanup = entry.flag("cleanup", true);
  } else if (step.kind == Kind::bpe) {
    step.affix = entry.text("suffix", "</w>");
  } else if (step.kind == Kind::ctc) {
    step.pad = entry.text("pad_token", "<pad>");
    step.delimiter = entry.text("word_delimiter_token", "|");
    step.cleanup = entry.flag("cleanup", true);
  }
  return step;
}

AddedToken read_added(const Entry& entry) {
  AddedToken token;
  token.id = entry.at("id").token_id();
  const Entry content = entry.at("content");
  token.text = content.text();
  if (token.text.size() > kMostAddedText)
    throw content.fault(ErrorCode::limit,
                        fmt::format("has {} bytes; {} are allowed", token.text.size(), kMostAddedText));
  token.single_word = entry.flag("single_word", false);
  token.lstrip = entry.flag("lstrip", false);
  token.rstrip = entry.flag("rstrip", false);
  token.special = entry.flag("special", false);
  token.normalized = entry.flag("normalized", !token.special);
  return token;
}

// {text: id}
void read_vocabulary(const Entry& vocabulary, Tokenizer& tokenizer) {
  std::unordered_set<std::string_view> seen;
  const simdjson::dom::object object = vocabulary.object();
  tokenizer.pieces.reserve(object.size());
  for (const auto& [text, id] : object) {
    if (!seen.insert(text).second) throw vocabulary.malformed("'{}' occurs twice", safe_display(text, 60));
    tokenizer.pieces.push_back({.id = Entry(vocabulary, text, id).token_id(), .text = std::string(text)});
  }
  std::ranges::stable_sort(tokenizer.pieces, {}, &VocabularyPiece::id);
}

// [[text, score]], whose positions are the ids
void read_scored_vocabulary(const Entry& vocabulary, Tokenizer& tokenizer) {
  vocabulary.for_each([&](const Entry& item) {
    std::vector<simdjson::dom::element> pair;
    item.for_each([&](const Entry& part) { pair.push_back(part.value()); });
    if (pair.size() != 2) throw item.malformed("is not a pair of a text and its score");
    if (tokenizer.pieces.size() >= kMostTokens)
      throw vocabulary.fault(ErrorCode::limit,
                             fmt::format("has more than {} pieces", format_grouped(kMostTokens)));
    const double score = Entry(item, std::size_t{1}, pair[1]).real();
    tokenizer.pieces.push_back({.id = static_cast<std::uint32_t>(tokenizer.pieces.size()),
                                .text = std::string(Entry(item, std::size_t{0}, pair[0]).text()),
                                .score = score});
  });
}

void read_merges(const Entry& merges, Tokenizer& tokenizer) {
  merges.for_each([&](const Entry& merge) {
    if (merge.is_text()) {
      const std::string_view text = merge.text();
      if (text.starts_with("#version")) return;
      const std::size_t space = text.find(' ');
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        throw merge.malformed("is not two pieces with one space between them");
      tokenizer.merges.push_back({std::string(text.substr(0, space)), std::string(text.substr(space + 1))});
      return;
    }
    std::vector<std::string> pair;
    merge.for_each([&](const Entry& part) { pair.emplace_back(part.text()); });
    if (pair.size() != 2) throw merge.malformed("is not a pair");
    tokenizer.merges.push_back({std::move(pair[0]), std::move(pair[1])});
  });
}

// Files from before 2021 do not name the model's type.
VocabularyKind model_kind(const Entry& model) {
  const auto type = model.find("type");
  if (!type) {
    if (model.find("merges")) return VocabularyKind::bpe;
    if (model.at("vocab").value().is_array()) return VocabularyKind::unigram;
    return model.find("max_input_chars_per_word") ? VocabularyKind::wordpiece : VocabularyKind::word_level;
  }
  for (const VocabularyKind kind :
       {VocabularyKind::bpe, VocabularyKind::wordpiece, VocabularyKind::unigram, VocabularyKind::word_level})
    if (type->text() == vocabulary_kind_name(kind)) return kind;
  throw type->fault(ErrorCode::unsupported,
                    fmt::format("no model is called '{}'; there are: BPE, WordPiece, Unigram, WordLevel",
                                safe_display(type->text(), 60)));
}

void read_model(const Entry& model, Tokenizer& tokenizer) {
  tokenizer.kind = model_kind(model);
  const Entry vocabulary = model.at("vocab");
  tokenizer.byte_fallback = model.flag("byte_fallback", false);
  if (tokenizer.kind == VocabularyKind::unigram) {
    read_scored_vocabulary(vocabulary, tokenizer);
    if (const auto unknown = model.find("unk_id")) {
      const std::uint64_t id = unknown->number();
      if (id >= tokenizer.pieces.size())
        throw unknown->malformed("{} is not below the {} pieces", id, tokenizer.pieces.size());
      tokenizer.unknown_id = static_cast<std::uint32_t>(id);
    }
    return;
  }
  read_vocabulary(vocabulary, tokenizer);
  if (const auto unknown = model.find("unk_token")) tokenizer.unknown = unknown->text();
  if (tokenizer.kind == VocabularyKind::bpe) {
    if (const auto dropout = model.find("dropout"); dropout && dropout->real() != 0)
      throw dropout->fault(ErrorCode::unsupported, "BPE dropout is not supported: token ids would be random");
    read_merges(model.at("merges"), tokenizer);
    tokenizer.subword_prefix = model.text("continuing_subword_prefix", "");
    tokenizer.word_suffix = model.text("end_of_word_suffix", "");
    tokenizer.fuse_unknown = model.flag("fuse_unk", false);
    tokenizer.ignore_merges = model.flag("ignore_merges", false);
  } else if (tokenizer.kind == VocabularyKind::wordpiece) {
    tokenizer.subword_prefix = model.text("continuing_subword_prefix", "##");
    if (const auto most = model.find("max_input_chars_per_word"))
      tokenizer.most_word_characters = most->number();
  }
}

void read_root(const Entry& root, Tokenizer& tokenizer) {
  read_model(root.at("model"), tokenizer);
  if (const auto added = root.find("added_tokens"))
    added->for_each([&](const Entry& item) { tokenizer.added.push_back(read_added(item)); });
  if (const auto entry = root.find("normalizer"))
    read_steps(*entry, "normalizers", read_normalizer, tokenizer.normalizers);
  if (const auto entry = root.find("pre_tokenizer"))
    read_steps(*entry, "pretokenizers", read_pre_tokenizer, tokenizer.pre_tokenizers);
  if (const auto entry = root.find("post_processor"))
    read_steps(*entry, "processors", read_processor, tokenizer.post);
  if (const auto entry = root.find("decoder")) {
    read_steps(*entry, "decoders", read_decoder, tokenizer.decoders);
    tokenizer.decoder_type = entry->text("type", "");
  }
}

}  // namespace

Tokenizer read_tokenizer_json(const io::SourceFile& file) {
  if (file.size() > kMostFile)
    throw Error(ErrorCode::limit, {.file = file.path()}, "has {}; a tokenizer.json may have {}",
                format_bytes(file.size()), format_bytes(kMostFile));
  const std::string text = file.text_at(0, file.size());
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const simdjson::error_code fault = parser.parse(text).get(root);
  if (fault == simdjson::MEMALLOC) throw std::bad_alloc();
  if (fault != simdjson::SUCCESS)
    throw Error(ErrorCode::malformed, {.file = file.path()}, "is not JSON: {}",
                std::string_view(simdjson::error_message(fault)));
  Tokenizer tokenizer;
  tokenizer.file = file.path();
  read_root(Entry(file.path(), root), tokenizer);
  return tokenizer;
}

}  // namespace loadline::tokenizer
