// Rewrites regular expressions of Oniguruma (Ruby syntax, RE document of version 6.9) for ICU 72.
#include "core/base/error.h"
#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/unicode.h"

#include <cctype>
#include <optional>

#include <fmt/format.h>

namespace loadline {
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

}  // namespace loadline
