// Steps over JSON as the usual writers write it: strings of ASCII without escapes, whole numbers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace loadline::importers {

// A hundred thousand entries are read several times as fast as through a parser, and without its memory. What
// these functions do not take may still be valid: they say nothing about faults, and a parser must read it.
// Results fit in registers: a processor waits for a std::optional, whose parts are written to memory and then
// read as one.
class PlainJson {
 public:
  static constexpr std::size_t kPadding = 16;

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

  // The text between the quotes; one without data() if no string came next.
  std::string_view string() {
    if (!take('"')) return {};
    const std::size_t begin = at_;
    for (; at_ < text_.size(); at_ += kPadding) {
      const std::size_t plain = plain_bytes(at_);
      if (plain == kPadding) continue;
      at_ += plain;
      if (at_ >= text_.size() || text_[at_] != '"') break;
      return text_.substr(begin, at_++ - begin);
    }
    at_ = text_.size();
    return {};
  }

  static constexpr std::uint64_t kNoNumber = UINT64_MAX;  // has more digits than those that are taken
  std::uint64_t number() {
    constexpr std::size_t kMostDigits = 19;  // fit in 64 bits
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    while (at_ < text_.size()) {
      const Digits digits = digits_at(at_);
      at_ += digits.count;
      value = value * digits.power + digits.value;
      if (digits.count < kStep) break;
    }
    if (at_ > text_.size()) {  // into the padding
      at_ = text_.size();
      return kNoNumber;
    }
    const std::size_t count = at_ - begin;
    if (count == 0 || count > kMostDigits || (count > 1 && text_[begin] == '0')) return kNoNumber;
    return value;
  }

 private:
  // How many bytes at a position are ASCII text without a quote and a backslash, of kPadding.
  std::size_t plain_bytes(std::size_t at) const {
    // bytes beyond ASCII are below zero
#ifdef __SSE2__
    __m128i text;
    std::memcpy(&text, text_.data() + at, sizeof text);
    const auto is = [&](char byte) { return _mm_cmpeq_epi8(text, _mm_set1_epi8(byte)); };
    const __m128i other =
        _mm_or_si128(_mm_or_si128(is('"'), is('\\')), _mm_cmplt_epi8(text, _mm_set1_epi8(' ')));
    return static_cast<std::size_t>(
        std::countr_zero(static_cast<unsigned>(_mm_movemask_epi8(other)) | 1U << kPadding));
#else
    using Bytes = signed char __attribute__((vector_size(kPadding)));
    Bytes bytes;
    std::memcpy(&bytes, text_.data() + at, sizeof bytes);
    const Bytes ends = (bytes == Bytes{} + '"') | (bytes == Bytes{} + '\\') | (bytes < Bytes{} + ' ');
    const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(ends);
    if (halves[0] != 0) return static_cast<std::size_t>(std::countr_zero(halves[0])) / 8;
    return sizeof halves[0] + static_cast<std::size_t>(std::countr_zero(halves[1])) / 8;
#endif
  }

  static constexpr std::size_t kStep = 8;
  struct Digits {
    std::size_t count = 0;
    std::uint64_t value = 0, power = 1;  // 10^count
  };
  // The digits at the begin of the kStep bytes at a position.
  Digits digits_at(std::size_t at) const {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::array<std::uint64_t, kStep + 1> kPowers = {
        1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text_.data() + at, sizeof bytes);
    bytes ^= '0' * kOnes;
    const std::uint64_t others = ((bytes + 0x76 * kOnes) | bytes) & 0x80 * kOnes;
    const auto count = static_cast<std::size_t>(std::countr_zero(others)) / 8;
    if (count == 0) return {};
    bytes <<= 8 * (kStep - count);      // as if zeros came before
    bytes = bytes * 10 + (bytes >> 8);  // pairs, in every other byte
    constexpr std::uint64_t kPairs = 0x000000FF000000FF;
    const std::uint64_t value = ((bytes & kPairs) * (100 + (1'000'000ULL << 32)) +
                                 (bytes >> 16 & kPairs) * (1 + (10'000ULL << 32))) >>
                                32;
    return {count, value, kPowers[count]};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace loadline::importers
