// Patterns of tokenizer.json: texts, and regular expressions written for Oniguruma, run on ICU.
#pragma once

#include "core/tokenizer/tokenizer.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

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

}  // namespace loadline
