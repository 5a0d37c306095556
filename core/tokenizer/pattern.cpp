// Runs patterns: plain texts by searching, regular expressions on ICU within limits.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/text_stages.h"
#include "core/tokenizer/unicode.h"

#include <ctime>
#include <limits>

#include <unicode/regex.h>
#include <unicode/unistr.h>

namespace loadline {
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

}  // namespace loadline
