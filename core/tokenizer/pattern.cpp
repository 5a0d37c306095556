// Oniguruma expressions rewritten for ICU and run within limits.

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/unicode.h"

#include <cctype>
#include <ctime>
#include <limits>
#include <optional>

#include <fmt/core.h>
#include <unicode/regex.h>
#include <unicode/unistr.h>

namespace loadline::tokenizer {

// --- Rewrites regular expressions of Oniguruma (Ruby syntax, RE document of version 6.9) for ICU 72.

namespace {

constexpr std::size_t kMostDepth = 100;

// Oniguruma counts the digits and fractions of Latin-1 as well.
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u00B2\\u00B3\\u00B9\\u00BC-\\u00BE";

class Rewriter {
 public:
  explicit Rewriter(std::string_view text) : text_(text) {}

  std::string rewrite() {
    alternatives(0);
    if (at_ < text_.size()) throw fault("')' has no '('");
    return std::move(out_);
  }

 private:
  Error fault(std::string_view detail) const {
    return Error(ErrorCode::malformed, "regular expression, byte {}: {}", at_, detail);
  }
  Error unsupported(std::string_view detail) const {
    return Error(ErrorCode::unsupported, "regular expression, byte {}: {}", at_, detail);
  }
  bool ends() const { return at_ == text_.size(); }
  char peek() const { return ends() ? '\0' : text_[at_]; }
  bool next_is(std::string_view part) const { return text_.substr(at_).starts_with(part); }
  // One character as it is, escaped where ICU could take it for an operator.
  void literal() {
    const std::size_t bytes = character_bytes(peek());
    if (bytes > text_.size() - at_) throw fault("is not UTF-8");
    if (bytes == 1 && !std::isalnum(static_cast<unsigned char>(peek())) && peek() > ' ' && peek() != '_')
      out_ += '\\';
    out_ += text_.substr(at_, bytes);
    at_ += bytes;
  }

  void alternatives(std::size_t depth) {
    if (depth > kMostDepth) throw fault("groups are nested too deep");
    while (!ends() && peek() != ')') {
      if (peek() == '|' || peek() == '^' || peek() == '$') {
        out_ += text_[at_++];
        continue;
      }
      const std::size_t begin = out_.size();
      atom(depth);
      repetitions(begin);
    }
  }

  void atom(std::size_t depth) {
    switch (peek()) {
      case '(':
        group(depth);
        break;
      case '[':
        set(0);
        break;
      case '\\':
        escape(false);
        break;
      case '.':
        out_ += '.';
        ++at_;
        break;
      case '*':
      case '+':
      case '?':
        throw fault("there is nothing to repeat");
      default:
        literal();
    }
  }

  void group(std::size_t depth) {
    // the heads that mean the same in both; options hold until the group ends
    static constexpr std::string_view kHeads[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    std::string_view head;
    for (const std::string_view known : kHeads)
      if (next_is(known)) head = known;
    if (next_is("(?#")) {
      const std::size_t close = text_.find(')', at_);
      if (close == std::string_view::npos) throw fault("a comment has no end");
      at_ = close + 1;
      return;
    }
    if (head.empty() && next_is("(?")) {
      if (next_is("(?i)")) {  // holds for everything up to the end of the group around it, alternatives too
        out_ += "(?i:";
        at_ += 4;
        alternatives(depth + 1);
        out_ += ')';
        return;
      }
      head = next_is("(?i:") ? "(?i:" : next_is("(?-i:") ? "(?-i:" : "";
      if (head.empty())
        throw unsupported("only the groups (?: (?i: (?-i: (?i) (?= (?! (?<= (?<! (?> are known");
    }
    // what is captured is never asked for
    out_ += head.empty() ? "(?:" : head;
    at_ += head.empty() ? 1 : head.size();
    alternatives(depth + 1);
    if (peek() != ')') throw fault("'(' has no ')'");
    out_ += ')';
    ++at_;
  }

  // {n}, {n,}, {n,m} or {,m} at the current place, without its braces; nothing if that is no repetition.
  std::optional<std::string> interval() const {
    const std::size_t close = text_.find('}', at_);
    if (peek() != '{' || close == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    std::size_t commas = 0, digits = 0;
    for (const char c : inside) {
      if (c == ',') {
        ++commas;
      } else if (c >= '0' && c <= '9') {
        ++digits;
      } else {
        return std::nullopt;
      }
    }
    if (commas > 1 || digits == 0) return std::nullopt;
    return (inside.front() == ',' ? "0" : "") + std::string(inside);
  }

  void repetitions(std::size_t begin) {
    while (!ends()) {
      if (const auto inside = interval()) {
        at_ += text_.substr(at_).find('}') + 1;
        const bool exact = inside->find(',') == std::string::npos;
        // ICU would read {n}+ as possessive and {n}? as lazy: Ruby repeats what {n} repeated
        const bool again = peek() == '+' || (exact && peek() == '?');
        out_ += '{' + *inside + '}';
        if (again) {
          out_.insert(begin, "(?:");
          out_ += ')';
        } else if (peek() == '?') {
          out_ += text_[at_++];
        }
      } else if (peek() == '*' || peek() == '+' || peek() == '?') {
        out_ += text_[at_++];
        if (peek() == '?' || peek() == '+') out_ += text_[at_++];
      } else {
        return;
      }
      // a repetition of a repetition
      if (interval() || peek() == '*' || peek() == '+' || peek() == '?') {
        out_.insert(begin, "(?:");
        out_ += ')';
      }
    }
  }

  void set(std::size_t depth) {
    if (depth > kMostDepth) throw fault("sets are nested too deep");
    out_ += '[';
    ++at_;
    if (peek() == '^') {
      out_ += '^';
      ++at_;
    }
    bool first = true;
    while (true) {
      if (ends()) throw fault("'[' has no ']'");
      if (peek() == ']' && !first) break;
      if (next_is("[:")) {
        posix();
      } else if (peek() == '[') {
        set(depth + 1);
      } else if (next_is("&&")) {
        out_ += "&&";
        at_ += 2;
      } else if (peek() == '\\') {
        escape(true);
      } else if (peek() == '-') {
        dash(first);
      } else {
        literal();
      }
      first = false;
    }
    out_ += ']';
    ++at_;
  }

  // A range's dash, or a character.
  void dash(bool first) {
    const char before = first ? '\0' : out_.back();
    const char after = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    const bool range = !first && after != ']' && after != '\0' && before != ']' && before != '}';
    out_ += range ? "-" : "\\-";
    ++at_;
  }

  void posix() {
    const std::size_t close = text_.find(":]", at_);
    if (close == std::string_view::npos) throw fault("'[:' has no ':]'");
    const std::string_view name = text_.substr(at_, close + 2 - at_);
    // symbols are punctuation too
    out_ += name == "[:punct:]" ? "\\p{P}\\p{S}" : name == "[:^punct:]" ? "[^\\p{P}\\p{S}]" : name;
    at_ = close + 2;
  }

  void escape(bool in_set) {
    if (at_ + 1 == text_.size()) throw fault("'\\' ends the pattern");
    const char kind = text_[at_ + 1];
    const auto take = [&](std::string_view inside_set, std::string_view alone) {
      out_ += in_set ? inside_set : alone;
      at_ += 2;
    };
    switch (kind) {
      case 's':
        return take("\\p{White_Space}", "\\p{White_Space}");
      case 'S':
        return take("\\P{White_Space}", "\\P{White_Space}");
      case 'd':
        return take("\\p{Nd}", "\\p{Nd}");
      case 'D':
        return take("\\P{Nd}", "\\P{Nd}");
      case 'w':
        return take(kWord, fmt::format("[{}]", kWord));
      case 'W':
        return take(fmt::format("[^{}]", kWord), fmt::format("[^{}]", kWord));
      case 'h':
        return take("0-9A-Fa-f", "[0-9A-Fa-f]");
      case 'p':
      case 'P':
        return property();
      case 'x':
        return hexadecimal();
      case 'u':
        return unicode_escape();
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        out_ += text_.substr(at_, 2);
        at_ += 2;
        return;
      case 'v':
        return take("\\x0B", "\\x0B");
      case 'A':
      case 'z':
      case 'Z':
      case 'b':
      case 'B':
        if (in_set && kind == 'b') return take("\\x08", "");
        out_ += text_.substr(at_, 2);
        at_ += 2;
        return;
      default:
        break;
    }
    if (std::isalnum(static_cast<unsigned char>(kind)))
      throw unsupported(fmt::format("the escape '\\{}' is not known", kind));
    ++at_;
    literal();
  }

  // \p{L}, \p{^L}, \p{Han}, \p{IsLatin}
  void property() {
    const std::size_t close = text_.find('}', at_);
    if (at_ + 2 >= text_.size() || text_[at_ + 2] != '{' || close == std::string_view::npos)
      throw fault("'\\p' has no {name}");
    std::string_view name = text_.substr(at_ + 3, close - at_ - 3);
    bool negated = text_[at_ + 1] == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    for (const char c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != ' ' && c != '-')
        throw unsupported("a property's name has a character other than letters and digits");
    out_ += fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', name);
    at_ = close + 1;
  }

  void code_point(std::string_view digits) {
    if (digits.empty() || digits.size() > 6) throw fault("a number of a character has 1 to 6 digits");
    unsigned long value = 0;
    for (const char c : digits) {
      if (!std::isxdigit(static_cast<unsigned char>(c)))
        throw fault("a number of a character is not hexadecimal");
      value = value * 16 + static_cast<unsigned long>(
                               std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : (c | 32) - 'a' + 10);
    }
    if (value > 0x10FFFF) throw fault("there is no such character");
    out_ += fmt::format("\\x{{{:X}}}", value);
  }

  void hexadecimal() {
    if (at_ + 2 < text_.size() && text_[at_ + 2] == '{') {
      const std::size_t close = text_.find('}', at_);
      if (close == std::string_view::npos) throw fault("'\\x{' has no '}'");
      code_point(text_.substr(at_ + 3, close - at_ - 3));
      at_ = close + 1;
      return;
    }
    std::size_t digits = 0;
    while (digits < 2 && at_ + 2 + digits < text_.size() &&
           std::isxdigit(static_cast<unsigned char>(text_[at_ + 2 + digits])))
      ++digits;
    const std::string_view number = text_.substr(at_ + 2, digits);
    // Oniguruma reads \xE4 as a byte of UTF-8, which is no character by itself
    if (digits == 2 && number[0] >= '8') throw unsupported("'\\x' above 7F names half a character");
    code_point(number);
    at_ += 2 + digits;
  }

  void unicode_escape() {
    if (at_ + 6 > text_.size()) throw fault("'\\u' has fewer than four digits");
    code_point(text_.substr(at_ + 2, 4));
    at_ += 6;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_ = {};
};

}  // namespace

std::string icu_pattern(std::string_view oniguruma) { return Rewriter(oniguruma).rewrite(); }

// --- Runs patterns: plain texts by searching, regular expressions on ICU within limits.

namespace {

// ICU counts one unit of time for 10,000 states that it saves. Published patterns such as \s+$ save half the
// square of a run of spaces: a run of 5,000 must do.
constexpr std::int32_t kLeastTime = 1000;
constexpr std::size_t kCharactersPerTime = 10;
constexpr std::int32_t kMostStack = 64 << 20;
// Searches that save no state are bounded by processor time, which stands still while a process is paused.
constexpr std::int64_t kLeastNanoseconds = 2'000'000'000;
constexpr std::int64_t kNanosecondsPerCharacter = 20'000;
constexpr std::uint32_t kCallsPerLook = 64;

std::int64_t thread_nanoseconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

struct Watch {
  std::int64_t deadline = 0;
  std::uint32_t calls = 0;
};

UBool go_on(const void* context, std::int64_t /*position*/) {
  auto* const watch = static_cast<Watch*>(const_cast<void*>(context));
  return ++watch->calls % kCallsPerLook != 0 || thread_nanoseconds() < watch->deadline;
}

// Positions in UTF-16 to positions in UTF-8, in ascending order.
class Offsets {
 public:
  explicit Offsets(std::string_view text) : text_(text) {}
  std::size_t at(std::int32_t utf16) {
    while (utf16_ < utf16) {
      const std::size_t bytes = character_bytes(text_[utf8_]);
      utf16_ += bytes == 4 ? 2 : 1;
      utf8_ += bytes;
    }
    return utf8_;
  }

 private:
  std::string_view text_;
  std::size_t utf8_ = 0;
  std::int32_t utf16_ = 0;
};

void add_match(std::vector<TextPart>& parts, std::size_t& covered, std::size_t begin, std::size_t end) {
  if (covered != begin) parts.push_back({covered, begin, false});
  parts.push_back({begin, end, true});
  covered = end;
}

}  // namespace

struct Pattern::State {
  std::string where = {};
  std::string plain = {};
  std::unique_ptr<icu::RegexPattern> regex = {};
};

Pattern::Pattern(const TextPattern& pattern, const std::string& where) : state_(std::make_unique<State>()) {
  state_->where = where;
  state_->plain = pattern.text;
  if (!pattern.regex) return;
  std::string translated;
  try {
    translated = icu_pattern(pattern.text);
  } catch (const Error& error) {
    throw Error(error.code(), "{}: {}", where, std::string_view(error.what()));
  }
  UErrorCode status = U_ZERO_ERROR;
  UParseError place = {};
  const auto text = icu::UnicodeString::fromUTF8(translated);
  state_->regex.reset(icu::RegexPattern::compile(text, UREGEX_MULTILINE | UREGEX_UNIX_LINES, place, status));
  if (U_FAILURE(status))
    throw Error(ErrorCode::malformed, "{}: the regular expression '{}' does not compile: {} at character {}",
                where, safe_display(pattern.text, 120), std::string_view(u_errorName(status)), place.offset);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

std::vector<TextPart> Pattern::parts(std::string_view text) const {
  if (text.empty()) return {{0, 0, false}};
  std::vector<TextPart> parts;
  std::size_t covered = 0;
  if (!state_->regex) {
    // an empty text is found everywhere by a regular expression, and so here
    const std::string& plain = state_->plain;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t found = text.find(plain, at);
      if (found == std::string_view::npos) break;
      add_match(parts, covered, found, found + plain.size());
      at = found + plain.size();
      if (plain.empty()) at += at < text.size() ? character_bytes(text[at]) : 1;
    }
  } else {
    if (text.size() > std::numeric_limits<std::int32_t>::max() / 4)
      throw Error(ErrorCode::limit, "{}: the text has {} bytes, too many to encode at once", state_->where,
                  text.size());
    UErrorCode status = U_ZERO_ERROR;
    const auto wide =
        icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
    const std::unique_ptr<icu::RegexMatcher> matcher(state_->regex->matcher(wide, status));
    const std::size_t time = kLeastTime + text.size() / kCharactersPerTime;
    Watch watch;
    watch.deadline = thread_nanoseconds() + kLeastNanoseconds +
                     kNanosecondsPerCharacter * static_cast<std::int64_t>(text.size());
    if (U_SUCCESS(status)) {
      matcher->setTimeLimit(static_cast<std::int32_t>(time), status);
      matcher->setStackLimit(kMostStack, status);
      matcher->setFindProgressCallback(go_on, &watch, status);
    }
    Offsets offsets(text);
    std::int32_t last = -1;
    while (U_SUCCESS(status) && matcher->find(status)) {
      const std::int32_t begin = matcher->start(status);
      const std::int32_t end = matcher->end(status);
      if (begin == end && begin == last) continue;
      last = end;
      const std::size_t from = offsets.at(begin);
      add_match(parts, covered, from, offsets.at(end));
    }
    if (U_FAILURE(status))
      throw Error(
          ErrorCode::limit,
          "{}: the regular expression '{}' takes too long or too much memory for a text of {} bytes: {}",
          state_->where, safe_display(state_->plain, 120), text.size(),
          std::string_view(u_errorName(status)));
  }
  if (covered != text.size()) parts.push_back({covered, text.size(), false});
  return parts;
}

}  // namespace loadline::tokenizer
