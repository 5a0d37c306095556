// The stages in their order: added tokens first, decoders last.
#include "core/tokenizer/encoder.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/unicode.h"
#include "core/tokenizer/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace loadline::tokenizer {

// --- Finds added tokens in a text, before it is normalized and after.

namespace {

class AddedTokens {
 public:
  // Both must outlive it.
  AddedTokens(const Tokenizer& tokenizer, const Normalizers& normalizers);

  // The text between the tokens is normalized; empty pieces are left out.
  std::vector<TextPiece> extract(std::string_view text) const;

  // The token with this id; null if there is none.
  const AddedToken* find(std::uint32_t id) const;

 private:
  std::vector<TextPiece> split(const TextPiece& piece, const ByteTrie& trie) const;

  const Tokenizer& tokenizer_;
  const Normalizers& normalizers_;
  ByteTrie raw_, normalized_;  // positions in the tokenizer's list
};

// The character in front of `end`.
char32_t last_character(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return next_character(text, at);
}

bool is_single_word(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && is_word(last_character(text, begin))) return false;
  return end == text.size() || !is_word(next_character(text, end));
}

// `begin` without the white space in front of it, but not before `least`.
std::size_t without_space_before(std::string_view text, std::size_t begin, std::size_t least) {
  while (begin > least) {
    std::size_t at = begin - 1;
    while (at > least && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    std::size_t end = at;
    if (!is_white_space(next_character(text, end))) break;
    begin = at;
  }
  return begin;
}

std::size_t with_space_behind(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    std::size_t at = end;
    if (!is_white_space(next_character(text, at))) break;
    end = at;
  }
  return end;
}

AddedTokens::AddedTokens(const Tokenizer& tokenizer, const Normalizers& normalizers)
    : tokenizer_(tokenizer), normalizers_(normalizers) {
  for (std::size_t i = 0; i < tokenizer.added.size(); ++i) {
    const AddedToken& token = tokenizer.added[i];
    if (!token.normalized) {
      raw_.add(token.text, static_cast<std::uint32_t>(i));
      continue;
    }
    TextPiece piece = {.text = token.text, .first_bytes = 0, .token = {}};
    normalizers.apply(piece);
    normalized_.add(piece.text, static_cast<std::uint32_t>(i));
  }
}

std::vector<TextPiece> AddedTokens::extract(std::string_view text) const {
  if (text.empty()) return {};
  const TextPiece whole = {.text = std::string(text), .first_bytes = character_bytes(text[0]), .token = {}};
  std::vector<TextPiece> pieces;
  for (TextPiece& piece : split(whole, raw_)) {
    if (piece.token) {
      pieces.push_back(std::move(piece));
      continue;
    }
    normalizers_.apply(piece);
    for (TextPiece& part : split(piece, normalized_)) pieces.push_back(std::move(part));
  }
  return pieces;
}

std::vector<TextPiece> AddedTokens::split(const TextPiece& piece, const ByteTrie& trie) const {
  const std::string_view text = piece.text;
  std::vector<TextPiece> pieces;
  std::size_t covered = 0;
  const auto add = [&](std::size_t begin, std::size_t end, std::optional<std::uint32_t> token) {
    if (begin == end) return;
    const std::size_t first = piece.first_bytes > begin ? piece.first_bytes - begin : 0;
    pieces.push_back({std::string(text.substr(begin, end - begin)), first, token});
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto found = trie.longest(text.substr(at));
    if (!found) {
      ++at;
      continue;
    }
    const AddedToken& token = tokenizer_.added[found->number];
    std::size_t begin = at, end = at + found->bytes;
    at = end;
    if (token.single_word && !is_single_word(text, begin, end)) continue;
    // what a token before has taken is not taken again
    if (token.lstrip) begin = without_space_before(text, begin, covered);
    begin = std::max(begin, covered);
    if (token.rstrip) end = with_space_behind(text, end);
    add(covered, begin, std::nullopt);
    add(begin, end, token.id);
    covered = end;
  }
  add(covered, text.size(), std::nullopt);
  return pieces;
}

const AddedToken* AddedTokens::find(std::uint32_t id) const {
  const auto found = std::ranges::find(tokenizer_.added, id, &AddedToken::id);
  return found == tokenizer_.added.end() ? nullptr : &*found;
}

}  // namespace

// --- Joins the texts of tokens as the decoder of a tokenizer.json says.

namespace {

class Decoders {
 public:
  // Compiles patterns; throws as Pattern does, naming `tokenizer`'s file and the step.
  explicit Decoders(const Tokenizer& tokenizer);

  // Without a decoder, the texts with spaces between them.
  std::string join(std::vector<std::string> texts) const;

 private:
  struct Step {
    DecoderStep step;
    std::optional<Pattern> pattern;
  };
  static void apply(const Step& step, std::vector<std::string>& texts);
  std::vector<Step> steps_;
};

using Kind = DecoderStep::Kind;

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// What BERT's and CTC's decoders do to spaces in front of punctuation and of English endings.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : kRules) replace_all(text, what, by);
}

// Characters that stand for bytes become those bytes; a text with any other character stays as it is.
void decode_byte_level(std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    std::string decoded;
    bool all = true;
    for (std::size_t at = 0; all && at < text.size();) {
      const int byte = byte_of_character(next_character(text, at));
      all = byte >= 0;
      if (all) decoded += static_cast<char>(byte);
    }
    bytes += all ? decoded : text;
  }
  texts = {repaired_utf8(bytes)};
}

std::optional<char> byte_of_piece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

// Runs of byte pieces become text, or a replacement character for each byte.
void decode_byte_fallback(std::vector<std::string>& texts) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (repaired_utf8(bytes) == bytes) {
      result.push_back(bytes);
    } else {
      for (std::size_t i = 0; i < bytes.size(); ++i) result.emplace_back("\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& text : texts) {
    if (const auto byte = byte_of_piece(text)) {
      bytes += *byte;
    } else {
      flush();
      result.push_back(std::move(text));
    }
  }
  flush();
  texts = std::move(result);
}

void strip_ends(const DecoderStep& step, std::string& text) {
  for (std::uint64_t i = 0; i < step.start && text.starts_with(step.content); ++i)
    text.erase(0, step.content.size());
  for (std::uint64_t i = 0; i < step.stop && text.ends_with(step.content); ++i)
    text.resize(text.size() - step.content.size());
}

void decode_metaspace(const DecoderStep& step, std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    replace_all(texts[i], step.replacement, i == 0 && step.prepend != PrependScheme::never ? "" : " ");
}

void decode_wordpiece(const DecoderStep& step, std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string& text = texts[i];
    if (i > 0) {
      if (text.starts_with(step.affix)) {
        text.erase(0, step.affix.size());
      } else {
        text.insert(0, " ");
      }
    }
    if (step.cleanup) clean_up(text);
  }
}

void decode_ctc(const DecoderStep& step, std::vector<std::string>& texts) {
  const auto repeated = std::unique(texts.begin(), texts.end());
  texts.erase(repeated, texts.end());
  for (std::string& text : texts) {
    replace_all(text, step.pad, "");
    if (!step.cleanup) continue;
    clean_up(text);
    replace_all(text, step.delimiter, " ");
  }
  std::erase_if(texts, [](const std::string& text) { return text.empty(); });
}

Decoders::Decoders(const Tokenizer& tokenizer) {
  for (std::size_t i = 0; i < tokenizer.decoders.size(); ++i) {
    Step& made = steps_.emplace_back();
    made.step = tokenizer.decoders[i];
    if (made.step.kind == Kind::replace)
      made.pattern.emplace(made.step.pattern, fmt::format("{}: decoder {}", tokenizer.file, i + 1));
  }
}

std::string Decoders::join(std::vector<std::string> texts) const {
  for (const Step& step : steps_) apply(step, texts);
  return fmt::format("{}", fmt::join(texts, steps_.empty() ? " " : ""));
}

void Decoders::apply(const Step& made, std::vector<std::string>& texts) {
  const DecoderStep& step = made.step;
  switch (step.kind) {
    case Kind::byte_level:
      return decode_byte_level(texts);
    case Kind::byte_fallback:
      return decode_byte_fallback(texts);
    case Kind::fuse:
      texts = {fmt::format("{}", fmt::join(texts, ""))};
      return;
    case Kind::metaspace:
      return decode_metaspace(step, texts);
    case Kind::wordpiece:
      return decode_wordpiece(step, texts);
    case Kind::ctc:
      return decode_ctc(step, texts);
    case Kind::strip:
      for (std::string& text : texts) strip_ends(step, text);
      return;
    case Kind::bpe:
      for (std::size_t i = 0; i < texts.size(); ++i)
        if (!step.affix.empty()) replace_all(texts[i], step.affix, i + 1 == texts.size() ? "" : " ");
      return;
    case Kind::replace:
      for (std::string& text : texts) {
        std::string result;
        for (const TextPart& part : made.pattern->parts(text))
          result += part.match ? step.content : text.substr(part.begin, part.end - part.begin);
        text = std::move(result);
      }
      return;
  }
}

}  // namespace

// --- The stages in their order: added tokens and normalizers, pre-tokenizers, the vocabulary's model,
// post-processor.

struct Encoder::State {
  explicit State(const Tokenizer& made_from)
      : tokenizer(made_from),
        vocabulary(made_from),
        normalizers(made_from),
        added(made_from, normalizers),
        pre_tokenizers(made_from),
        model(word_model(made_from)),
        decoders(made_from) {}

  const Tokenizer& tokenizer;
  Vocabulary vocabulary;
  Normalizers normalizers;
  AddedTokens added;
  PreTokenizers pre_tokenizers;
  std::unique_ptr<WordModel> model;
  Decoders decoders;
};

namespace {

std::vector<std::uint32_t> with_special(const std::vector<PostStep>& steps, std::vector<std::uint32_t> ids) {
  for (const PostStep& step : steps) {
    if (step.kind == PostStep::Kind::byte_level) continue;
    std::vector<std::uint32_t> result;
    if (step.kind == PostStep::Kind::templated) {
      for (const TemplatePart& part : step.single) {
        if (!part.special && part.name != "A") continue;
        const std::vector<std::uint32_t>& more = part.special ? part.ids : ids;
        result.insert(result.end(), more.begin(), more.end());
      }
    } else {
      result.push_back(step.cls.second);
      result.insert(result.end(), ids.begin(), ids.end());
      result.push_back(step.sep.second);
    }
    ids = std::move(result);
  }
  return ids;
}

}  // namespace

Encoder::Encoder(const Tokenizer& tokenizer) : state_(std::make_unique<State>(tokenizer)) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

std::vector<std::uint32_t> Encoder::encode(std::string_view text, bool special) const {
  if (!is_valid_utf8(text)) throw Error(ErrorCode::malformed, "the text to encode is not UTF-8");
  std::vector<std::uint32_t> ids;
  for (const TextPiece& piece : state_->pre_tokenizers.apply(state_->added.extract(text))) {
    if (piece.token) {
      ids.push_back(*piece.token);
    } else {
      state_->model->encode(piece.text, ids);
    }
  }
  return special ? with_special(state_->tokenizer.post, std::move(ids)) : ids;
}

std::string Encoder::decode(const std::vector<std::uint32_t>& ids) const {
  std::vector<std::string> texts;
  for (const std::uint32_t id : ids) {
    if (const AddedToken* const added = state_->added.find(id)) {
      TextPiece piece = {.text = added->text, .first_bytes = 0, .token = {}};
      // the text looks as it does where the token is found
      if (added->normalized) state_->normalizers.apply(piece);
      texts.push_back(std::move(piece.text));
    } else if (const std::string* const text = state_->vocabulary.text(id)) {
      texts.push_back(*text);
    }
  }
  return state_->decoders.join(std::move(texts));
}

}  // namespace loadline::tokenizer
