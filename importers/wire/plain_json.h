// A fast scanner for the simple subset of JSON that large headers and indexes use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace loadline::importers {

// One pass, no tree. Understands punctuation, white space, strings of printable ASCII without escapes, and
// whole numbers below 10^19. Every method returns false for anything else; the caller then uses a JSON
// parser. Texts point into the input.
class PlainJson {
 public:
  explicit PlainJson(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  // Takes the next token if it is `punctuation`.
  bool take(char punctuation) {
    skip_space();
    if (at_ == end_ || *at_ != punctuation) return false;
    ++at_;
    return true;
  }

  bool string(std::string_view& out) {
    if (!take('"')) return false;
    const auto* const quote =
        static_cast<const char*>(std::memchr(at_, '"', static_cast<std::size_t>(end_ - at_)));
    if (quote == nullptr) return false;
    unsigned odd = 0;  // without branches, so that the compiler vectorizes the loop
    for (const char* c = at_; c != quote; ++c) {
      const auto byte = static_cast<unsigned char>(*c);
      odd |= static_cast<unsigned>(byte < 0x20) | static_cast<unsigned>(byte >= 0x7F) |
             static_cast<unsigned>(byte == '\\');
    }
    if (odd != 0) return false;
    out = {at_, static_cast<std::size_t>(quote - at_)};
    at_ = quote + 1;
    return true;
  }

  // Takes a string if it equals this literal.
  template <std::size_t N>
  bool string_is(const char (&text)[N]) {
    if (!take('"')) return false;
    if (static_cast<std::size_t>(end_ - at_) < N || at_[N - 1] != '"' || std::memcmp(at_, text, N - 1) != 0)
      return false;
    at_ += N;
    return true;
  }

  bool number(std::uint64_t& out) {
    constexpr std::ptrdiff_t kSafeDigits = 19;  // any such number is below 2^64
    skip_space();
    const char* const begin = at_;
    std::uint64_t value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - begin <= kSafeDigits)
      value = value * 10 + static_cast<std::uint64_t>(*at_++ - '0');
    out = value;
    const std::ptrdiff_t digits = at_ - begin;
    const bool sound = digits > 0 && digits <= kSafeDigits && (digits == 1 || *begin != '0');
    if (!sound) at_ = begin;  // the caller may try another token at the same place
    return sound;
  }

  bool at_end() {
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  const char* at_;
  const char* end_;
};

}  // namespace loadline::importers
