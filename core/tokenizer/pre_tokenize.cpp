// Each pre-tokenizer as the `tokenizers` library of Hugging Face (0.23) defines it.
#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/unicode.h"

#include <algorithm>

#include <fmt/core.h>

namespace loadline::tokenizer {
namespace {

using Kind = PreTokenizerStep::Kind;

// GPT-2's own expression.
constexpr std::string_view kByteLevelRegex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// \w+|[^\w\s]+ as Rust's library reads it.
constexpr std::string_view kWhitespaceRegex =
    R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\s]+)";

// Each character that `matches` is a match by itself.
template <typename Matches>
std::vector<TextPart> character_parts(std::string_view text, Matches matches) {
  std::vector<TextPart> parts;
  std::size_t covered = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    if (!matches(next_character(text, at))) continue;
    if (covered < from) parts.push_back({covered, from, false});
    parts.push_back({from, at, true});
    covered = at;
  }
  if (covered < text.size()) parts.push_back({covered, text.size(), false});
  return parts;
}

void invert(std::vector<TextPart>& parts) {
  for (TextPart& part : parts) part.match = !part.match;
}

// What stays of the parts: a `match` in the result is cut away.
std::vector<TextPart> merged(std::vector<TextPart> parts, SplitBehavior behavior) {
  std::vector<TextPart> result;
  const auto add = [&](TextPart part) {
    part.match = false;
    result.push_back(part);
  };
  bool previous = false;
  switch (behavior) {
    case SplitBehavior::removed:
      return parts;
    case SplitBehavior::isolated:
      for (const TextPart& part : parts) add(part);
      break;
    case SplitBehavior::contiguous:
      for (const TextPart& part : parts) {
        if (part.match == previous && !result.empty()) {
          result.back().end = part.end;
        } else {
          add(part);
        }
        previous = part.match;
      }
      break;
    case SplitBehavior::merged_with_previous:
      for (const TextPart& part : parts) {
        if (part.match && !previous && !result.empty()) {
          result.back().end = part.end;
        } else {
          add(part);
        }
        previous = part.match;
      }
      break;
    case SplitBehavior::merged_with_next:
      std::ranges::reverse(parts);
      for (const TextPart& part : parts) {
        if (part.match && !previous && !result.empty()) {
          result.back().begin = part.begin;
        } else {
          add(part);
        }
        previous = part.match;
      }
      std::ranges::reverse(result);
      break;
  }
  return result;
}

void cut(const TextPiece& piece, const std::vector<TextPart>& parts, std::vector<TextPiece>& pieces) {
  for (const TextPart& part : parts) {
    if (part.match || part.begin == part.end) continue;
    const std::size_t first = piece.first_bytes > part.begin ? piece.first_bytes - part.begin : 0;
    pieces.push_back(
        {.text = piece.text.substr(part.begin, part.end - part.begin), .first_bytes = first, .token = {}});
  }
}

void prepend(TextPiece& piece, std::string_view text) {
  if (piece.text.empty()) return;
  piece.text.insert(0, text);
  if (piece.first_bytes > 0) piece.first_bytes += text.size();
}

void cut_metaspace(const PreTokenizerStep& step, TextPiece piece, std::vector<TextPiece>& pieces) {
  std::string text;
  text.reserve(piece.text.size() + 8);
  for (const char c : piece.text) {
    if (c == ' ') {
      text += step.replacement;
    } else {
      text += c;
    }
  }
  if (piece.first_bytes > 0 && piece.text[0] == ' ') piece.first_bytes += step.replacement.size() - 1;
  piece.text = std::move(text);
  const bool wanted = step.prepend == PrependScheme::always ||
                      (step.prepend == PrependScheme::first && piece.first_bytes > 0);
  if (wanted && !piece.text.starts_with(step.replacement)) prepend(piece, step.replacement);
  if (!step.divide) {
    if (!piece.text.empty()) pieces.push_back(std::move(piece));
    return;
  }
  std::size_t at = 0;
  const char32_t space = next_character(step.replacement, at);
  cut(piece,
      merged(character_parts(piece.text, [&](char32_t c) { return c == space; }),
             SplitBehavior::merged_with_next),
      pieces);
}

void cut_length(const PreTokenizerStep& step, const TextPiece& piece, std::vector<TextPiece>& pieces) {
  std::vector<TextPart> parts;
  std::size_t begin = 0, count = 0;
  for (std::size_t at = 0; at < piece.text.size();) {
    next_character(piece.text, at);
    if (++count % step.length != 0 && at < piece.text.size()) continue;
    parts.push_back({begin, at, false});
    begin = at;
  }
  cut(piece, parts, pieces);
}

// A new part begins where the script changes; a space belongs to the script before it.
void cut_scripts(const TextPiece& piece, std::vector<TextPiece>& pieces) {
  std::vector<TextPart> parts;
  std::size_t begin = 0;
  std::optional<int> last;
  for (std::size_t at = 0; at < piece.text.size();) {
    const std::size_t from = at;
    const int script = split_script(next_character(piece.text, at));
    if (script < 0) continue;
    if (last && *last != script) {
      parts.push_back({begin, from, false});
      begin = from;
    } else if (!last) {
      begin = from;  // spaces in front of everything are lost
    }
    last = script;
  }
  if (last) parts.push_back({begin, piece.text.size(), false});
  cut(piece, parts, pieces);
}

}  // namespace

PreTokenizers::PreTokenizers(const Tokenizer& tokenizer) {
  for (std::size_t i = 0; i < tokenizer.pre_tokenizers.size(); ++i) {
    const PreTokenizerStep& step = tokenizer.pre_tokenizers[i];
    const std::string where = fmt::format("{}: pre-tokenizer {}", tokenizer.file, i + 1);
    Step& made = steps_.emplace_back();
    made.step = step;
    if (step.kind == Kind::split) made.pattern.emplace(step.pattern, where);
    if (step.kind == Kind::byte_level && step.use_regex)
      made.pattern.emplace(TextPattern{true, std::string(kByteLevelRegex)}, where);
    if (step.kind == Kind::whitespace)
      made.pattern.emplace(TextPattern{true, std::string(kWhitespaceRegex)}, where);
  }
}

std::vector<TextPiece> PreTokenizers::apply(std::vector<TextPiece> pieces) const {
  for (const Step& step : steps_) {
    std::vector<TextPiece> next;
    next.reserve(pieces.size());
    for (TextPiece& piece : pieces) {
      if (piece.token) {
        next.push_back(std::move(piece));
      } else {
        apply(step, std::move(piece), next);
      }
    }
    pieces = std::move(next);
  }
  return pieces;
}

void PreTokenizers::apply(const Step& made, TextPiece piece, std::vector<TextPiece>& pieces) {
  const PreTokenizerStep& step = made.step;
  const auto characters = [&](auto matches, SplitBehavior behavior) {
    cut(piece, merged(character_parts(piece.text, matches), behavior), pieces);
  };
  switch (step.kind) {
    case Kind::byte_level: {
      if (step.add_prefix_space && !piece.text.starts_with(' ')) prepend(piece, " ");
      const std::size_t before = pieces.size();
      cut(piece,
          step.use_regex ? merged(made.pattern->parts(piece.text), SplitBehavior::isolated)
                         : std::vector<TextPart>{{0, piece.text.size(), false}},
          pieces);
      for (std::size_t i = before; i < pieces.size(); ++i) {
        TextPiece& word = pieces[i];
        word.first_bytes = byte_level_text(std::string_view(word.text).substr(0, word.first_bytes)).size();
        word.text = byte_level_text(word.text);
      }
      return;
    }
    case Kind::split: {
      std::vector<TextPart> parts = made.pattern->parts(piece.text);
      if (step.invert) invert(parts);
      return cut(piece, merged(std::move(parts), step.behavior), pieces);
    }
    case Kind::whitespace: {
      std::vector<TextPart> parts = made.pattern->parts(piece.text);
      invert(parts);
      return cut(piece, parts, pieces);
    }
    case Kind::whitespace_split:
      return characters(is_white_space, SplitBehavior::removed);
    case Kind::punctuation:
      return characters(is_punctuation, step.behavior);
    case Kind::digits:
      return characters(is_numeric, step.individual ? SplitBehavior::isolated : SplitBehavior::contiguous);
    case Kind::bert: {
      std::vector<TextPiece> words;
      cut(piece, character_parts(piece.text, is_white_space), words);
      for (const TextPiece& word : words)
        cut(word, merged(character_parts(word.text, is_punctuation), SplitBehavior::isolated), pieces);
      return;
    }
    case Kind::metaspace:
      return cut_metaspace(step, std::move(piece), pieces);
    case Kind::char_delimiter: {
      std::size_t at = 0;
      const char32_t delimiter = next_character(step.replacement, at);
      return characters([&](char32_t c) { return c == delimiter; }, SplitBehavior::removed);
    }
    case Kind::fixed_length:
      return cut_length(step, piece, pieces);
    case Kind::unicode_scripts:
      return cut_scripts(piece, pieces);
  }
}

}  // namespace loadline::tokenizer
