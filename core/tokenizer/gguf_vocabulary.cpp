// Special tokens; texts, scores and types by id.
#include "core/tokenizer/gguf_vocabulary.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/unicode.h"
#include "core/tokenizer/vocabulary.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/core.h>

namespace loadline::tokenizer {

// --- tokenizer.json and tokenizer_config.json come first, then config.json, as in gguf-py's SpecialVocab.

namespace {

class Reader {
 public:
  Reader(const ModelTokenizer& model, std::optional<std::uint64_t> below)
      : model_(model), below_(below), special_(model.settings.special) {}

  SpecialTokens read() {
    if (model_.json) {
      read_normalizers();
      if (model_.settings.has_tokenizer_config) {
        stand_in("bos", "cls");
        stand_in("eos", "sep");
      }
      for (const PostStep& step : model_.json->post) read_post(step);
    }
    if (model_.settings.has_tokenizer_config) read_settings();
    for (const std::string& name : names_)
      if (const auto found = model_.settings.ids.find(name); found != model_.settings.ids.end())
        add_id(name, found->second);
    return std::move(result_);
  }

 private:
  void set_add(const std::string& name, bool value) { result_.adds.emplace_back(name, value); }
  bool has(const std::string& name) const {
    const auto found = special_.find(name);
    return found != special_.end() && !(found->second.text.empty() && !found->second.object);
  }
  // Whether the token is given as exactly this string: an object never is.
  bool is(const std::string& name, const std::string& text) const {
    const auto found = special_.find(name);
    return found != special_.end() && !found->second.object && found->second.text == text;
  }
  void set(const std::string& name, const std::string& text) { special_[name] = {text, false}; }
  void stand_in(const std::string& name, const std::string& other) {
    if (!has(name) && has(other)) special_[name] = special_[other];
  }

  void read_normalizers() {
    for (const NormalizerStep& step : model_.json->normalizers) {
      if (step.kind == NormalizerStep::Kind::lowercase) result_.lowercase = true;
      if (step.kind == NormalizerStep::Kind::strip_accents) result_.strip_accents = true;
      if (step.kind != NormalizerStep::Kind::bert) continue;
      result_.lowercase = step.lower;
      result_.strip_accents = step.strip_accents;
    }
  }

  void read_post(const PostStep& step) {
    if (step.kind == PostStep::Kind::roberta) {
      for (const char* const name : {"bos", "eos", "sep"}) set_add(name, true);
      if (model_.settings.has_tokenizer_config) {
        if (!has("cls")) set("cls", step.cls.first);
        if (!has("sep")) set("sep", step.sep.first);
      }
    } else if (step.kind == PostStep::Kind::templated) {
      read_template(step);
    }
  }

  static std::string special_name(const TemplatePart& part) { return part.special ? part.name : ""; }

  // Without a tokenizer_config.json, what the template puts around a text is what begins and ends it.
  bool begins(const std::string& text) {
    if (!model_.settings.has_tokenizer_config) {
      set("bos", text);
      return true;
    }
    if (!is("bos", text) && !is("cls", text)) {
      if (!has("bos")) set("bos", text);
      if (!has("cls")) set("cls", text);
    }
    return is("bos", text) || is("cls", text);
  }

  bool ends(const std::string& text) {
    if (model_.settings.has_tokenizer_config && !is("eos", text)) {
      // the former end becomes the end of a turn, or of a message
      for (const char* const name : {"eot", "eom"}) {
        if (std::ranges::count(names_, name) > 0) continue;
        names_.emplace_back(name);
        if (const auto found = special_.find("eos"); found != special_.end()) {
          special_[name] = found->second;
        } else {
          special_.erase(name);
        }
        break;
      }
    }
    set("eos", text);
    return true;
  }

  void read_template(const PostStep& step) {
    std::string first, last;
    if (step.single.size() > 1) {
      first = special_name(step.single.front());
      if (!first.empty()) set_add("bos", begins(first));
      last = special_name(step.single.back());
      if (!last.empty()) set_add("eos", ends(last));
    }
    read_pair(step.pair, first, last);
  }

  // A [sep] [eos] B, between what begins and ends a single text
  void read_pair(const std::vector<TemplatePart>& pair, const std::string& first, const std::string& last) {
    if (pair.empty()) return;
    auto begin = pair.begin(), end = pair.end();
    if (!first.empty() && special_name(*begin) == first) ++begin;
    if (!last.empty() && begin != end && special_name(*(end - 1)) == last) --end;
    if (end - begin < 3) return;
    if (begin->special || begin->name != "A" || (end - 1)->special || (end - 1)->name != "B") return;
    const std::vector<TemplatePart> middle(begin + 1, end - 1);
    const auto separates = [&](const TemplatePart& part) {
      return part.special && !part.name.empty() && (is("sep", part.name) || is("eos", part.name));
    };
    bool add = separates(middle[0]) && last.empty();
    if (middle.size() == 2) add = add || separates(middle[1]);
    set_add("sep", add);
    if (add && !has("sep") && model_.settings.has_tokenizer_config) {
      if (const auto eos = special_.find("eos"); eos != special_.end()) special_["sep"] = eos->second;
    }
  }

  void read_settings() {
    for (const std::string& name : names_) {
      if (const auto found = model_.settings.adds.find(name); found != model_.settings.adds.end())
        set_add(name, found->second);
      const auto special = special_.find(name);
      if (special == special_.end() || !model_.json) continue;
      // only tokens that tokenizer.json adds have an id here
      const auto token = std::ranges::find(model_.json->added, special->second.text, &AddedToken::text);
      if (token != model_.json->added.end()) add_id(name, token->id);
    }
  }

  void add_id(const std::string& name, std::uint32_t id) {
    if (below_ && id >= *below_) return;
    for (const auto& row : result_.ids)
      if (row.first == name) return;
    result_.ids.emplace_back(name, id);
  }

  const ModelTokenizer& model_;
  std::optional<std::uint64_t> below_;
  std::map<std::string, SpecialText> special_;
  std::vector<std::string> names_ = {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
  SpecialTokens result_ = {};
};

}  // namespace

SpecialTokens special_tokens(const ModelTokenizer& model, std::optional<std::uint64_t> below) {
  return Reader(model, below).read();
}

// --- Vocabularies in the forms that llama.cpp reads. Ids without a piece get a text of their own, "[PAD7]",
// and the type unused.

namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581
constexpr float kPadScore = -10000, kAddedScore = -1000;

std::int32_t number(PieceType type) { return static_cast<std::int32_t>(type); }

void replace_space(std::string& text) {
  for (std::size_t at = text.find(kSpace); at != std::string::npos; at = text.find(kSpace, at + 1))
    text.replace(at, kSpace.size(), " ");
}

// Tokens that are special in several published models, whose files do not say so.
bool looks_special(std::string_view text) {
  if (text == "<pad>" || text == "<mask>" || text == "<2mass>" || text == "[@BOS@]") return true;
  return (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<\xEF\xBD\x9C") && text.ends_with("\xEF\xBD\x9C>")) ||
         (text.starts_with("<unused") && text.ends_with(">"));
}

std::size_t vocabulary_size(const ModelTokenizer& model, std::optional<std::uint64_t> said,
                            std::uint64_t otherwise) {
  const std::uint64_t size = said.value_or(otherwise);
  if (size > kMostTokens)
    throw Error(ErrorCode::limit, {.file = (model.json ? *model.json : *model.sentencepiece).file},
                "config.json's vocab_size {} is above {}", size, format_grouped(kMostTokens));
  return static_cast<std::size_t>(size);
}

GgufTokens padded(std::size_t size) {
  GgufTokens tokens;
  tokens.texts.reserve(size);
  for (std::size_t i = 0; i < size; ++i) tokens.texts.push_back(fmt::format("[PAD{}]", i));
  tokens.scores.assign(size, kPadScore);
  tokens.types.assign(size, number(PieceType::unused));
  return tokens;
}

void set(GgufTokens& tokens, std::uint32_t id, std::string text, float score, PieceType type) {
  tokens.texts[id] = std::move(text);
  tokens.scores[id] = score;
  tokens.types[id] = number(type);
}

// SentencePiece's pieces; what it calls user-defined counts as normal, as in the converter.
GgufTokens sentencepiece_base(const ModelTokenizer& model, std::size_t size) {
  GgufTokens tokens = padded(size);
  for (const VocabularyPiece& piece : model.sentencepiece->pieces) {
    if (piece.id >= size) break;
    const PieceType type = piece.type == PieceType::user_defined ? PieceType::normal : piece.type;
    set(tokens, piece.id, piece.text, static_cast<float>(piece.score), type);
  }
  for (const auto& [text, id] : model.settings.added)
    if (id < size) set(tokens, id, text, kAddedScore, PieceType::user_defined);
  return tokens;
}

// The ids of named and extra special tokens.
std::set<std::uint32_t> special_ids(const ModelTokenizer& model, const Tokenizer& tokenizer) {
  std::set<std::uint32_t> ids;
  const auto add = [&](const std::string& text) {
    const auto token = std::ranges::find(tokenizer.added, text, &AddedToken::text);
    if (token != tokenizer.added.end()) ids.insert(token->id);
  };
  for (const auto& [name, special] : model.settings.special) add(special.text);
  for (const auto& [name, text] : model.settings.special_map) add(text);
  for (const std::string& text : model.settings.extra_special) add(text);
  return ids;
}

bool is_byte_piece(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.back() == '>' &&
         text.find_first_not_of("0123456789abcdefABCDEF", 3) == 5;
}

}  // namespace

GgufTokens bpe_tokens(const ModelTokenizer& model, const Tokenizer& tokenizer, const Encoder& encoder) {
  std::unordered_map<std::uint32_t, const AddedToken*> added;
  for (const AddedToken& token : tokenizer.added) added[token.id] = &token;
  const Vocabulary vocabulary(tokenizer);
  std::size_t count = tokenizer.pieces.size();
  std::uint32_t highest = tokenizer.pieces.empty() ? 0 : tokenizer.pieces.back().id;
  for (const auto& [id, token] : added) {
    highest = std::max(highest, id);
    if (!vocabulary.id(token->text)) ++count;
  }
  const std::size_t size = vocabulary_size(model, model.settings.vocabulary_size, count);
  if (highest >= size)
    throw Error(ErrorCode::malformed, {.file = tokenizer.file},
                "has the token id {}, but config.json's vocab_size is {}", highest, size);
  GgufTokens tokens;
  for (std::uint32_t id = 0; id < size; ++id) {
    const auto special = added.find(id);
    const std::string* const piece = vocabulary.text(id);
    if (special == added.end()) {
      tokens.texts.push_back(piece != nullptr ? *piece : fmt::format("[PAD{}]", id));
      tokens.types.push_back(number(piece != nullptr ? PieceType::normal : PieceType::unused));
      continue;
    }
    const AddedToken& token = *special->second;
    // llama.cpp looks for these in the text as it is
    std::string text = token.normalized ? token.text : encoder.decode(encoder.encode(token.text, false));
    const bool control = token.special || looks_special(text);
    if (!control) replace_space(text);
    tokens.texts.push_back(std::move(text));
    tokens.types.push_back(number(control ? PieceType::control : PieceType::user_defined));
  }
  return tokens;
}

GgufTokens wordpiece_tokens(const ModelTokenizer& model, const Tokenizer& tokenizer, const Encoder& encoder) {
  GgufTokens tokens = bpe_tokens(model, tokenizer, encoder);
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) {
    if (tokens.types[i] == number(PieceType::control)) continue;
    std::string& text = tokens.texts[i];
    if (text.starts_with("##")) {
      text.erase(0, 2);
    } else {
      text.insert(0, kSpace);
    }
  }
  return tokens;
}

GgufTokens sentencepiece_tokens(const ModelTokenizer& model, bool per_layer) {
  const TokenizerSettings& settings = model.settings;
  std::optional<std::uint64_t> said = per_layer ? settings.vocabulary_size_per_layer_input : std::nullopt;
  if (!said) said = settings.vocabulary_size;
  if (said == 0) said.reset();
  const std::size_t size = vocabulary_size(model, said, model.sentencepiece->pieces.size());
  GgufTokens tokens = sentencepiece_base(model, size);
  for (const AddedToken& token : settings.added_decoder) {
    if (token.id >= size) continue;
    const bool control = token.special || looks_special(token.text);
    std::string text = token.text;
    if (!control) replace_space(text);
    set(tokens, token.id, std::move(text), kAddedScore,
        control ? PieceType::control : PieceType::user_defined);
  }
  return tokens;
}

GgufTokens phi3_tokens(const ModelTokenizer& model) {
  const std::size_t size =
      vocabulary_size(model, model.settings.vocabulary_size, model.sentencepiece->pieces.size());
  GgufTokens tokens = sentencepiece_base(model, size);
  const auto add = [&](const std::vector<AddedToken>& list) {
    for (const AddedToken& token : list)
      if (token.id < size)
        set(tokens, token.id, token.text, kAddedScore,
            token.special ? PieceType::control : PieceType::user_defined);
  };
  add(model.settings.added_decoder);
  if (model.json) add(model.json->added);
  return tokens;
}

GgufTokens unigram_tokens(const ModelTokenizer& model) {
  const std::size_t pieces = model.sentencepiece->pieces.size();
  const std::size_t size = vocabulary_size(model, model.settings.vocabulary_size, pieces);
  if (pieces > size)
    throw Error(ErrorCode::malformed, {.file = model.sentencepiece->file},
                "has {} pieces, but config.json's vocab_size is {}", pieces, size);
  return sentencepiece_base(model, size);
}

namespace {

// llama.cpp joins the two neighbors that make the piece of the highest score: the one whose merge comes
// first.
std::unordered_map<std::string, float> merge_scores(const Tokenizer& tokenizer) {
  std::unordered_map<std::string, float> scores;
  for (std::size_t rank = 0; rank < tokenizer.merges.size(); ++rank)
    scores.try_emplace(tokenizer.merges[rank].left + tokenizer.merges[rank].right,
                       static_cast<float>(-static_cast<std::int64_t>(rank)));
  return scores;
}

}  // namespace

GgufTokens llama_bpe_tokens(const ModelTokenizer& model, const Tokenizer& tokenizer) {
  const std::set<std::uint32_t> special = special_ids(model, tokenizer);
  const std::unordered_map<std::string, float> scores = merge_scores(tokenizer);
  GgufTokens tokens;
  const auto add = [&](std::string text, PieceType type) {
    const auto score = scores.find(text);
    tokens.scores.push_back(score != scores.end()
                                ? score->second
                                : static_cast<float>(-static_cast<std::int64_t>(tokenizer.merges.size())));
    tokens.texts.push_back(std::move(text));
    tokens.types.push_back(number(type));
  };
  const std::size_t base = tokenizer.pieces.size();
  for (std::size_t i = 0; i < base; ++i) {
    const VocabularyPiece& piece = tokenizer.pieces[i];
    if (piece.id != i)
      throw Error(ErrorCode::unsupported, {.file = tokenizer.file}, "its ids have a gap in front of {}",
                  piece.id);
    add(piece.text, is_byte_piece(piece.text)    ? PieceType::byte
                    : special.contains(piece.id) ? PieceType::control
                                                 : PieceType::normal);
  }
  std::vector<AddedToken> added = tokenizer.added;
  std::ranges::sort(added, {}, &AddedToken::id);
  for (const AddedToken& token : added)
    if (token.id >= base)
      add(token.text, special.contains(token.id) ? PieceType::control : PieceType::user_defined);
  return tokens;
}

GgufTokens xlm_roberta_tokens(const ModelTokenizer& model, const Tokenizer& tokenizer) {
  const std::size_t pieces = tokenizer.pieces.size();
  const std::size_t size = std::max(vocabulary_size(model, model.settings.vocabulary_size, 0), pieces);
  GgufTokens tokens = padded(size);
  const std::set<std::uint32_t> special = special_ids(model, tokenizer);
  std::set<std::uint32_t> added;
  std::uint32_t unknown = tokenizer.unknown_id.value_or(3);
  const auto unk = model.settings.special.find("unk");
  for (const AddedToken& token : tokenizer.added) {
    added.insert(token.id);
    if (unk != model.settings.special.end() && unk->second.text == token.text) unknown = token.id;
  }
  for (const VocabularyPiece& piece : tokenizer.pieces) {
    const PieceType type = piece.id == unknown          ? PieceType::unknown
                           : special.contains(piece.id) ? PieceType::control
                           : added.contains(piece.id)   ? PieceType::user_defined
                                                        : PieceType::normal;
    set(tokens, piece.id, piece.text, static_cast<float>(piece.score), type);
  }
  return tokens;
}

bool merges_matter(const Tokenizer& tokenizer) {
  const auto model = merging_model(tokenizer);
  std::set<std::uint32_t> added;
  for (const AddedToken& token : tokenizer.added) added.insert(token.id);
  std::vector<std::uint32_t> ids;
  return std::ranges::any_of(tokenizer.pieces, [&](const VocabularyPiece& piece) {
    if (added.contains(piece.id)) return false;
    ids.clear();
    model->encode(piece.text, ids);
    return ids.size() != 1 || ids.front() != piece.id;
  });
}

bool has_all_bytes(const Tokenizer& tokenizer) {
  const Vocabulary vocabulary(tokenizer);
  for (unsigned byte = 0; byte < 256; ++byte)
    if (!vocabulary.id(byte_level_character(static_cast<unsigned char>(byte)))) return false;
  return true;
}

}  // namespace loadline::tokenizer
