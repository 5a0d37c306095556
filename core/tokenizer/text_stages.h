// The stages before the vocabulary: patterns, normalizers, pre-tokenizers.
#pragma once

#include "core/tokenizer/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::tokenizer {

// --- Patterns of tokenizer.json: texts, and regular expressions written for Oniguruma, run on ICU.

// A part of a text; the parts of a text cover it without gaps.
struct TextPart {
  std::size_t begin = 0, end = 0;
  bool match = false;
};

// A compiled pattern. May be used from several threads.
class Pattern {
 public:
  // Throws Error{malformed | unsupported | limit} that begins with `where` and names the fault.
  Pattern(const TextPattern& pattern, const std::string& where);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  // Where the pattern matches in `text` (UTF-8), from left to right; an empty match right behind another
  // match does not count. One part without a match for an empty text. Throws Error{limit} if the pattern
  // takes more steps, processor time or memory than any sensible one.
  std::vector<TextPart> parts(std::string_view text) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The same expression for ICU. What differs: Ruby's syntax, of which Oniguruma's is a form, calls ICU's
// UREGEX_MULTILINE its only mode; \s, \w, \d and \h are other sets; {n,m}+ repeats instead of being
// possessive; a brace that begins no repetition is a character; ICU's sets have more operators. Throws
// Error{unsupported} for syntax that has no equal.
std::string icu_pattern(std::string_view oniguruma);

// --- A text on its way to token ids: the parts into which it has been cut.

struct TextPiece {
  std::string text = {};
  // How many of its first bytes come from the first character of the whole text: only the text's first piece,
  // in Metaspace's scheme `first`, gets a space in front.
  std::size_t first_bytes = 0;
  std::optional<std::uint32_t> token = {};  // an added token: nothing else looks at the text
};

// --- SentencePiece's precompiled normalization rules: prefixes of texts and what replaces them.

// The bytes are: u32 size of the trie in bytes, the trie, and the replacements, each ended by a zero byte.
// The trie is a double array (Susumu Yata's darts-clone) of u32 little-endian units.
class Charsmap {
 public:
  // Throws Error{malformed} that begins with `where`. Empty `bytes` hold no rules.
  Charsmap(std::string_view bytes, const std::string& where);

  struct Rule {
    std::size_t bytes = 0;  // of the text that it replaces
    std::string_view replacement = {};
  };
  // The shortest rule for a beginning of `text`. A view of this object.
  std::optional<Rule> shortest(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

// --- Runs the normalizers of a tokenizer.json.

class Normalizers {
 public:
  // Compiles patterns; throws as Pattern and Charsmap do, naming `tokenizer`'s file and the step.
  explicit Normalizers(const Tokenizer& tokenizer);

  void apply(TextPiece& piece) const;

 private:
  struct Step {
    NormalizerStep step;
    std::optional<Pattern> pattern;
    std::optional<Charsmap> charsmap;
  };
  static void apply(const Step& step, TextPiece& piece);
  std::vector<Step> steps_;
};

// --- Cuts a text into the words that a vocabulary encodes one by one, as a tokenizer.json says.

class PreTokenizers {
 public:
  // Compiles patterns; throws as Pattern does, naming `tokenizer`'s file and the step.
  explicit PreTokenizers(const Tokenizer& tokenizer);

  // Added tokens stay as they are; no piece of the result is empty.
  std::vector<TextPiece> apply(std::vector<TextPiece> pieces) const;

 private:
  struct Step {
    PreTokenizerStep step;
    std::optional<Pattern> pattern;
  };
  static void apply(const Step& step, TextPiece piece, std::vector<TextPiece>& pieces);
  std::vector<Step> steps_;
};

}  // namespace loadline::tokenizer
