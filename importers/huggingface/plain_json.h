// Steps over JSON as the usual writers write it: strings of ASCII without escapes, whole numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace loadline::importers {

// A hundred thousand entries are read several times as fast as through a parser, and without its memory. What
// these functions do not take may still be valid: they say nothing about faults, and a parser must read it.
class PlainJson {
 public:
  static constexpr std::size_t kPadding = 8;

  // Behind the end of `text`, kPadding bytes more must be readable.
  explicit PlainJson(std::string_view text) : text_(text) {}

  std::size_t position() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  // Whether `token` came next.
  bool take(char token) {
    if (at_ == text_.size() || text_[at_] != token) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view token) {
    if (text_.size() - at_ < token.size() || std::memcmp(text_.data() + at_, token.data(), token.size()) != 0)
      return false;
    at_ += token.size();
    return true;
  }

  // The text between the quotes.
  std::optional<std::string_view> string() {
    if (!take('"')) return std::nullopt;
    const std::size_t begin = at_;
    for (; at_ < text_.size(); at_ += kPadding) {
      const std::uint64_t ends = ends_of_plain(at_);
      if (ends == 0) continue;
      at_ += static_cast<std::size_t>(std::countr_zero(ends)) / 8;
      if (at_ >= text_.size() || text_[at_] != '"') break;
      return text_.substr(begin, at_++ - begin);
    }
    at_ = text_.size();
    return std::nullopt;
  }

  std::optional<std::uint64_t> number() {
    constexpr std::size_t kMostDigits = 19;  // fit in 64 bits
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      value = 10 * value + static_cast<std::uint64_t>(text_[at_] - '0');
    const std::size_t digits = at_ - begin;
    if (digits == 0 || digits > kMostDigits || (digits > 1 && text_[begin] == '0')) return std::nullopt;
    return value;
  }

 private:
  // Of the eight bytes at a position, which are no ASCII text, a quote or a backslash: the lowest bit that is
  // set belongs to the first of them.
  std::uint64_t ends_of_plain(std::size_t at) const {
    constexpr std::uint64_t kOnes = 0x0101010101010101, kTops = 0x80 * kOnes;
    constexpr std::uint64_t kQuotes = std::uint64_t{'"'} * kOnes, kBackslashes = std::uint64_t{'\\'} * kOnes;
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text_.data() + at, sizeof bytes);
    const auto below = [](std::uint64_t x, std::uint64_t least) { return (x - least * kOnes) & ~x; };
    return (below(bytes ^ kQuotes, 1) | below(bytes ^ kBackslashes, 1) | below(bytes, ' ') | bytes) & kTops;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace loadline::importers
