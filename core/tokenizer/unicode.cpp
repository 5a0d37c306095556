// ICU and libcrypto behind it.
#include "core/tokenizer/unicode.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include <openssl/evp.h>
#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

namespace loadline::tokenizer {

// --- ICU's data behind the questions that tokenizers ask.

namespace {

void check(UErrorCode status, std::string_view doing) {
  if (U_FAILURE(status))
    throw Error(ErrorCode::limit, "ICU cannot {}: {}", doing, std::string_view(u_errorName(status)));
}

std::int32_t icu_size(std::string_view text) {
  if (text.size() > std::numeric_limits<std::int32_t>::max() / 4)
    throw Error(ErrorCode::limit, "the text has {} bytes, too many to encode at once", text.size());
  return static_cast<std::int32_t>(text.size());
}

UChar32 icu(char32_t character) { return static_cast<UChar32>(character); }

bool in_categories(char32_t character, std::uint32_t mask) {
  return (U_GET_GC_MASK(icu(character)) & mask) != 0;
}

constexpr std::uint8_t kCategoryUnicode = 8, kNormalFormUnicode = 9, kScriptUnicode = 9;

// Whether Unicode had the character in its version `major`.0. Unassigned characters count: nothing happens to
// them.
bool is_known(char32_t character, std::uint8_t major) {
  UVersionInfo age = {};
  u_charAge(icu(character), age);
  return age[0] < major || (age[0] == major && age[1] == 0);
}

struct ByteLevel {
  std::array<std::string, 256> characters;
  std::array<std::int16_t, 512> bytes;
};

// Bytes that are visible in Latin-1 stand for themselves; the others follow from U+0100.
const ByteLevel& byte_level() {
  static const ByteLevel table = [] {
    ByteLevel made;
    made.bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      const char32_t character = visible ? byte : next++;
      append_character(made.characters[byte], character);
      made.bytes[character] = static_cast<std::int16_t>(byte);
    }
    return made;
  }();
  return table;
}

}  // namespace

char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const std::size_t bytes = character_bytes(text[at]);
  char32_t character = byte(0);
  if (bytes == 2) character = (character & 0x1F) << 6 | (byte(1) & 0x3Fu);
  if (bytes == 3) character = (character & 0x0F) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
  if (bytes == 4)
    character =
        (character & 0x07) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
  at += bytes;
  return character;
}

std::size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

void append_character(std::string& text, char32_t character) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6);
    put(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  } else {
    put(0xF0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3F));
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  }
}

bool is_white_space(char32_t character) { return u_isUWhiteSpace(icu(character)); }
bool is_numeric(char32_t character) { return in_categories(character, U_GC_N_MASK); }
bool is_word(char32_t character) {
  return u_isUAlphabetic(icu(character)) || character == 0x200C || character == 0x200D ||
         in_categories(character, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK);
}
// Categories of a few characters have changed since the Unicode that the tables are of.
bool is_punctuation(char32_t character) {
  const bool ascii = (character >= '!' && character <= '/') || (character >= ':' && character <= '@') ||
                     (character >= '[' && character <= '`') || (character >= '{' && character <= '~');
  if (ascii || character < 0x80) return ascii;
  const bool changed = character == 0x166D || character == 0x111C9;
  return (changed || in_categories(character, U_GC_P_MASK)) && is_known(character, kCategoryUnicode);
}
bool is_nonspacing_mark(char32_t character) {
  if (character < 0x300) return false;
  if (character == 0x1734) return true;
  if (character == 0x1885 || character == 0x1886 || character == 0xA9BD || character == 0x111C9) return false;
  return in_categories(character, U_GC_MN_MASK) && is_known(character, kCategoryUnicode);
}
bool is_other(char32_t character) {
  return in_categories(character, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) &&
         is_known(character, kCategoryUnicode);
}
bool is_mark(char32_t character) {
  if (character < 0x300 || character == 0x111C9) return false;
  if (character == 0x1CF2 || character == 0x1CF3) return true;
  return in_categories(character, U_GC_M_MASK) && is_known(character, kNormalFormUnicode);
}

std::string normalized(std::string_view text, NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = nullptr;
  switch (form) {
    case NormalForm::nfc:
      normalizer = icu::Normalizer2::getNFCInstance(status);
      break;
    case NormalForm::nfd:
      normalizer = icu::Normalizer2::getNFDInstance(status);
      break;
    case NormalForm::nfkc:
      normalizer = icu::Normalizer2::getNFKCInstance(status);
      break;
    case NormalForm::nfkd:
      normalizer = icu::Normalizer2::getNFKDInstance(status);
      break;
  }
  check(status, "load its normal forms");
  icu_size(text);
  std::string result;
  result.reserve(text.size());
  const auto add = [&](std::string_view part) {
    if (part.empty()) return;
    icu::StringByteSink<std::string> sink(&result);
    normalizer->normalizeUTF8(0, icu::StringPiece(part.data(), icu_size(part)), sink, nullptr, status);
    check(status, "normalize a text");
  };
  // a later character neither changes nor lets its neighbors meet
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const char32_t character = next_character(text, at);
    if (character < 0x300 || is_known(character, kNormalFormUnicode)) continue;
    add(text.substr(begin, from - begin));
    result += text.substr(from, at - from);
    begin = at;
  }
  add(text.substr(begin));
  return result;
}

std::string lower_characters(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (character == 0x130) {  // the only character whose lower case is two characters wherever it stands
      result += "i\xCC\x87";
    } else {
      append_character(result, static_cast<char32_t>(u_tolower(icu(character))));
    }
  }
  return result;
}

std::vector<std::size_t> grapheme_ends(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  check(status, "load its rules for characters");
  const std::unique_ptr<UText, decltype(&utext_close)> view(
      utext_openUTF8(nullptr, text.data(), icu_size(text), &status), utext_close);
  check(status, "read a text");
  breaks->setText(view.get(), status);
  check(status, "read a text");
  std::vector<std::size_t> ends;
  breaks->first();
  for (std::int32_t end = breaks->next(); end != icu::BreakIterator::DONE; end = breaks->next())
    ends.push_back(static_cast<std::size_t>(end));
  return ends;
}

int split_script(char32_t character) {
  if (character == ' ' || !is_known(character, kScriptUnicode)) return -1;
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(icu(character), &status);
  if (character == 0x30FC || script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA) return USCRIPT_HAN;
  return U_FAILURE(status) || script == USCRIPT_UNKNOWN ? -1 : script;
}

const std::string& byte_level_character(unsigned char byte) { return byte_level().characters[byte]; }

std::string byte_level_text(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) text += byte_level_character(static_cast<unsigned char>(byte));
  return text;
}

int byte_of_character(char32_t character) { return character < 512 ? byte_level().bytes[character] : -1; }

std::string repaired_utf8(std::string_view bytes) {
  std::string text;
  const std::int32_t size = icu_size(bytes);
  for (std::int32_t at = 0; at < size;) {
    UChar32 character = 0;
    U8_NEXT_OR_FFFD(reinterpret_cast<const std::uint8_t*>(bytes.data()), at, size, character);
    append_character(text, static_cast<char32_t>(character));
  }
  return text;
}

// --- libcrypto decodes; it is stricter about lengths than about what follows the padding, so that is checked
// here.

std::optional<std::string> base64_bytes(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > std::numeric_limits<int>::max()) return std::nullopt;
  const auto in_alphabet = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  };
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  if (!std::ranges::all_of(text.substr(0, text.size() - padding), in_alphabet)) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0 || static_cast<std::size_t>(size) < padding) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

std::string base64_text(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // libcrypto writes a NUL behind it
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

}  // namespace loadline::tokenizer
