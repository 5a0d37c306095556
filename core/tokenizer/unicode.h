// Texts and bytes: characters and their classes, normal forms, byte-level text, base64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::tokenizer {

// --- Unicode as tokenizers need it: characters of UTF-8 texts, their classes, and normal forms.

// The character at `at`, which moves behind it. `text` is UTF-8 (core/base/text.h: is_valid_utf8), and `at`
// is in front of one of its characters.
char32_t next_character(std::string_view text, std::size_t& at);
// Bytes of the character that begins with this byte.
std::size_t character_bytes(char first);
std::size_t count_characters(std::string_view text);
void append_character(std::string& text, char32_t character);

// The property White_Space.
bool is_white_space(char32_t character);
// General categories Nd, Nl and No.
bool is_numeric(char32_t character);
// What \w matches in Rust's regular expressions: Alphabetic, M*, Nd, Pc, and the two joiners.
bool is_word(char32_t character);

// The following and the normal forms know the characters of an older Unicode, as the libraries behind
// `tokenizers` do: later ones have no category and are never changed.
// ASCII punctuation and symbols, and the general categories P* of Unicode 8.
bool is_punctuation(char32_t character);
bool is_nonspacing_mark(char32_t character);  // Mn of Unicode 8
bool is_other(char32_t character);            // Cc, Cf and Co of Unicode 8
bool is_mark(char32_t character);             // M* of Unicode 9

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
// The normal forms of Unicode 9. Throws Error{limit} for a text that ICU cannot hold.
std::string normalized(std::string_view text, NormalForm form);
// Each character in lower case by itself: a final sigma is like any other.
std::string lower_characters(std::string_view text);
// Where the extended grapheme clusters of a text end (Unicode annex 29), in ascending order.
std::vector<std::size_t> grapheme_ends(std::string_view text);
// A number for the script of a character, as the pre-tokenizer UnicodeScripts sees it: -1 for a space or a
// character without a script in Unicode 9, which belong to any, and one number for the three Japanese
// scripts.
int split_script(char32_t character);

// The visible characters that stand for bytes in byte-level vocabularies (GPT-2's table).
const std::string& byte_level_character(unsigned char byte);
std::string byte_level_text(std::string_view bytes);
// The byte that a character stands for; -1 for any other character.
int byte_of_character(char32_t character);

// `bytes` with every part that is not UTF-8 replaced by U+FFFD.
std::string repaired_utf8(std::string_view bytes);

// --- Base64, in which JSON holds bytes.

// The bytes of a text in base64 with its padding (RFC 4648); nothing if the text is not base64.
std::optional<std::string> base64_bytes(std::string_view text);
std::string base64_text(std::string_view bytes);

}  // namespace loadline::tokenizer
