// Prints a hash of everything that core/tokenizer asks ICU, over all characters: whole and reduced data must
// agree.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <unicode/brkiter.h>
#include <unicode/normalizer2.h>
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

namespace {

struct Hash {
  std::uint64_t value = 14695981039346656037u;  // FNV-1a
  void add(std::int64_t number) {
    value ^= static_cast<std::uint64_t>(number);
    value *= 1099511628211u;
  }
  void add(const icu::UnicodeString& text) {
    for (std::int32_t i = 0; i < text.length(); ++i) add(text[i]);
    add(-1);
  }
};

int failures = 0;
void print(const char* what, const Hash& hash, UErrorCode status) {
  std::printf("%-24s %016llx %s\n", what, static_cast<unsigned long long>(hash.value), u_errorName(status));
  if (U_FAILURE(status)) ++failures;
}

constexpr UChar32 kEnd = 0x110000;
bool is_surrogate(UChar32 character) { return character >= 0xD800 && character < 0xE000; }

// All characters, some of them beside marks, joiners and flags.
icu::UnicodeString all_characters() {
  icu::UnicodeString text;
  for (UChar32 character = 1; character < kEnd; ++character) {
    if (is_surrogate(character)) continue;
    text.append(character);
    if (character % 3 == 0) text.append(static_cast<UChar32>(0x301));
    if (character % 7 == 0) text.append(static_cast<UChar32>(0x200D));
    if (character % 11 == 0) text.append(static_cast<UChar32>(0x1F1E6)).append(static_cast<UChar32>(0x1F1E8));
  }
  return text;
}

void properties() {
  Hash hash;
  UErrorCode status = U_ZERO_ERROR;
  for (UChar32 character = 0; character < kEnd; ++character) {
    UVersionInfo age = {};
    u_charAge(character, age);
    for (const auto part : age) hash.add(part);
    hash.add(u_charType(character));
    hash.add(u_isUAlphabetic(character));
    hash.add(u_isUWhiteSpace(character));
    hash.add(u_tolower(character));
    hash.add(uscript_getScript(character, &status));
  }
  print("properties", hash, status);
}

void normal_forms() {
  using Get = const icu::Normalizer2* (*)(UErrorCode&);
  constexpr Get kForms[] = {icu::Normalizer2::getNFCInstance, icu::Normalizer2::getNFDInstance,
                            icu::Normalizer2::getNFKCInstance, icu::Normalizer2::getNFKDInstance};
  const icu::UnicodeString text = all_characters();
  for (const Get get : kForms) {
    Hash hash;
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* const form = get(status);
    if (U_SUCCESS(status)) {
      for (UChar32 character = 0; character < kEnd; ++character)
        if (!is_surrogate(character)) hash.add(form->normalize(icu::UnicodeString(character), status));
      hash.add(form->normalize(text, status));
    }
    print("normal form", hash, status);
  }
}

void boundaries() {
  const icu::UnicodeString text = all_characters();
  Hash hash;
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  if (U_SUCCESS(status)) {
    breaks->setText(text);
    for (std::int32_t end = breaks->first(); end != icu::BreakIterator::DONE; end = breaks->next())
      hash.add(end);
  }
  print("boundaries", hash, status);
}

void regular_expressions() {
  const icu::UnicodeString text = all_characters();
  for (const char* const pattern : {"\\X",
                                    "\\w+",
                                    "\\b",
                                    "\\s+",
                                    "\\d+",
                                    "\\h",
                                    "\\R",
                                    "[[:alpha:]]+",
                                    "\\p{L}+",
                                    "\\p{M}+",
                                    "\\p{N}{1,3}",
                                    "\\p{P}+",
                                    "\\p{S}+",
                                    "\\p{Z}+",
                                    "\\p{C}+",
                                    "\\p{Han}+",
                                    "\\p{script=Hiragana}+",
                                    "\\p{IsGreek}+",
                                    "\\p{Block=Arrows}",
                                    "\\p{Emoji}+",
                                    "\\p{Extended_Pictographic}",
                                    "\\p{Line_Break=OP}",
                                    "\\p{InSC=Virama}",
                                    "\\p{vo=U}+",
                                    "\\p{Age=9.0}+",
                                    "\\p{Script_Extensions=Deva}+",
                                    "(?i:[a-z\\u00DF\\u0130]+)",
                                    "\\N{LATIN SMALL LETTER A}",
                                    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"}) {
    Hash hash;
    UErrorCode status = U_ZERO_ERROR;
    UParseError place = {};
    const std::unique_ptr<icu::RegexPattern> regex(icu::RegexPattern::compile(
        icu::UnicodeString::fromUTF8(pattern), UREGEX_MULTILINE | UREGEX_UNIX_LINES, place, status));
    if (U_SUCCESS(status)) {
      const std::unique_ptr<icu::RegexMatcher> matcher(regex->matcher(text, status));
      while (U_SUCCESS(status) && matcher->find(status)) {
        hash.add(matcher->start(status));
        hash.add(matcher->end(status));
      }
    }
    print(pattern, hash, status);
  }
}

}  // namespace

int main() {
  properties();
  normal_forms();
  boundaries();
  regular_expressions();
  return failures == 0 ? 0 : 1;
}
