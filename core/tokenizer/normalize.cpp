// Normalizers, SentencePiece precompiled rules among them.

#include "core/base/error.h"
#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/unicode.h"

#include <cstring>

#include <fmt/core.h>

namespace loadline::tokenizer {

// --- A unit of the double array: bits 0-7 the label of the edge into it (with bit 31 set it holds a value in
// its lower 31 bits), bit 8 whether it has a value, bits 10-30 the offset to its children, times 256 if bit 9
// is set.

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  if (bytes.empty()) return;
  const auto u32 = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  if (bytes.size() < 4)
    throw Error(ErrorCode::malformed, "{}: has {} bytes, too few for its trie's size", where, bytes.size());
  const std::size_t trie = u32(0);
  if (trie > bytes.size() - 4 || trie % 4 != 0 || trie == 0)
    throw Error(ErrorCode::malformed, "{}: a trie of {} bytes in {} bytes", where, trie, bytes.size());
  units_.reserve(trie / 4);
  for (std::size_t at = 4; at < 4 + trie; at += 4) units_.push_back(u32(at));
  replacements_ = bytes.substr(4 + trie);
  if (replacements_.empty() || replacements_.back() != '\0') replacements_ += '\0';
}

std::optional<Charsmap::Rule> Charsmap::shortest(std::string_view text) const {
  if (units_.empty()) return std::nullopt;
  const auto offset = [&](std::uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); };
  std::size_t position = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto label = static_cast<unsigned char>(text[i]);
    position ^= label;
    if (position >= units_.size()) break;
    const std::uint32_t unit = units_[position];
    if ((unit & (1u << 31 | 0xFF)) != label) break;
    position ^= offset(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (position >= units_.size()) break;
    const std::size_t value = units_[position] & 0x7FFFFFFF;
    if (value >= replacements_.size()) break;
    return Rule{i + 1, std::string_view(replacements_.c_str() + value)};
  }
  return std::nullopt;
}

// --- Each normalizer as the `tokenizers` library of Hugging Face (0.23) defines it.

namespace {

using Kind = NormalizerStep::Kind;

// The text becomes `text`; it still begins with the whole text's first character unless `lost`.
void replace_text(TextPiece& piece, std::string text, bool lost = false) {
  piece.first_bytes = lost || piece.first_bytes == 0 || text.empty() ? 0 : character_bytes(text[0]);
  piece.text = std::move(text);
}

// Keeps the characters that `keep` accepts, each as `map` gives it.
template <typename Keep, typename Map>
void filter(TextPiece& piece, Keep keep, Map map) {
  std::string result;
  result.reserve(piece.text.size());
  bool lost = false;
  for (std::size_t at = 0; at < piece.text.size();) {
    const bool first = at == 0;
    const char32_t character = next_character(piece.text, at);
    if (keep(character)) {
      append_character(result, map(character));
    } else if (first) {
      lost = true;
    }
  }
  replace_text(piece, std::move(result), lost);
}

constexpr auto kSame = [](char32_t character) { return character; };

bool is_line_white_space(char32_t character) {
  return character == '\t' || character == '\n' || character == '\r';
}

// CJK ideographs, as BERT's own tokenizer lists them.
bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void normalize_bert(const NormalizerStep& step, TextPiece& piece) {
  if (step.clean_text) {
    filter(
        piece, [](char32_t c) { return c != 0 && c != 0xFFFD && (is_line_white_space(c) || !is_other(c)); },
        [](char32_t c) { return is_white_space(c) ? U' ' : c; });
  }
  if (step.spaced_ideographs) {
    std::string spaced;
    for (std::size_t at = 0; at < piece.text.size();) {
      const char32_t c = next_character(piece.text, at);
      const bool ideograph = is_ideograph(c);
      if (ideograph) spaced += ' ';
      append_character(spaced, c);
      if (ideograph) spaced += ' ';
    }
    replace_text(piece, std::move(spaced));
  }
  if (step.bare) {
    replace_text(piece, normalized(piece.text, NormalForm::nfd));
    filter(
        piece, [](char32_t c) { return !is_nonspacing_mark(c); }, kSame);
  }
  if (step.lower) replace_text(piece, lower_characters(piece.text));
}

// Neural machine translation's rules for control characters and spaces.
void normalize_nmt(TextPiece& piece) {
  filter(
      piece,
      [](char32_t c) {
        return !((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
                 c == 0x8F || c == 0x9F);
      },
      [](char32_t c) {
        const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                           c == 0xFEFF || c == 0xFFFD;
        return space ? U' ' : c;
      });
}

void strip(TextPiece& piece, bool left, bool right) {
  std::size_t begin = 0, end = 0;
  bool seen = false;
  for (std::size_t at = 0; at < piece.text.size();) {
    const std::size_t from = at;
    if (is_white_space(next_character(piece.text, at))) continue;
    if (!seen) begin = from;
    seen = true;
    end = at;
  }
  if (!seen) {
    if (left || right) replace_text(piece, "", true);
    return;
  }
  if (!left) begin = 0;
  if (!right) end = piece.text.size();
  replace_text(piece, piece.text.substr(begin, end - begin), begin > 0);
}

// A rule for a whole short grapheme cluster comes before rules for its characters. A rule counts if it
// matches the beginning of what is looked at.
void normalize_precompiled(const Charsmap& charsmap, TextPiece& piece) {
  constexpr std::size_t kLongCluster = 6;
  std::string result;
  std::size_t begin = 0;
  bool lost = false;
  for (const std::size_t end : grapheme_ends(piece.text)) {
    const std::string_view cluster = std::string_view(piece.text).substr(begin, end - begin);
    const auto whole = cluster.size() < kLongCluster ? charsmap.shortest(cluster) : std::nullopt;
    if (whole) {
      result += whole->replacement;
    } else {
      for (std::size_t at = 0; at < cluster.size();) {
        const std::size_t from = at;
        next_character(cluster, at);
        const auto rule = charsmap.shortest(cluster.substr(from, at - from));
        result += rule ? rule->replacement : cluster.substr(from, at - from);
      }
    }
    if (begin == 0 && result.empty()) lost = true;
    begin = end;
  }
  replace_text(piece, std::move(result), lost);
}

void replace(const Pattern& pattern, const std::string& content, TextPiece& piece) {
  std::string result;
  bool lost = false;
  for (const TextPart& part : pattern.parts(piece.text)) {
    if (part.match && part.begin == 0 && part.end > 0 && content.empty()) lost = true;
    result += part.match ? std::string_view(content)
                         : std::string_view(piece.text).substr(part.begin, part.end - part.begin);
  }
  replace_text(piece, std::move(result), lost);
}

}  // namespace

Normalizers::Normalizers(const Tokenizer& tokenizer) {
  for (std::size_t i = 0; i < tokenizer.normalizers.size(); ++i) {
    const NormalizerStep& step = tokenizer.normalizers[i];
    const std::string where = fmt::format("{}: normalizer {}", tokenizer.file, i + 1);
    Step& made = steps_.emplace_back();
    made.step = step;
    if (step.kind == Kind::replace) made.pattern.emplace(step.pattern, where);
    if (step.kind == Kind::precompiled)
      made.charsmap.emplace(step.charsmap, where + ": precompiled_charsmap");
  }
}

void Normalizers::apply(TextPiece& piece) const {
  for (const Step& step : steps_) apply(step, piece);
}

void Normalizers::apply(const Step& made, TextPiece& piece) {
  const NormalizerStep& step = made.step;
  switch (step.kind) {
    case Kind::nfc:
      return replace_text(piece, normalized(piece.text, NormalForm::nfc));
    case Kind::nfd:
      return replace_text(piece, normalized(piece.text, NormalForm::nfd));
    case Kind::nfkc:
      return replace_text(piece, normalized(piece.text, NormalForm::nfkc));
    case Kind::nfkd:
      return replace_text(piece, normalized(piece.text, NormalForm::nfkd));
    case Kind::lowercase:
      return replace_text(piece, lower_characters(piece.text));
    case Kind::strip_accents:
      return filter(
          piece, [](char32_t c) { return !is_mark(c); }, kSame);
    case Kind::bert:
      return normalize_bert(step, piece);
    case Kind::replace:
      return replace(*made.pattern, step.content, piece);
    case Kind::prepend:
      if (!piece.text.empty()) {
        const std::size_t first = piece.first_bytes;
        piece.text.insert(0, step.content);
        piece.first_bytes = first == 0 ? 0 : first + step.content.size();
      }
      return;
    case Kind::strip:
      return strip(piece, step.left, step.right);
    case Kind::nmt:
      return normalize_nmt(piece);
    case Kind::precompiled:
      return normalize_precompiled(*made.charsmap, piece);
    case Kind::byte_level:
      return replace_text(piece, byte_level_text(piece.text));
  }
}

}  // namespace loadline::tokenizer
