// Counters behind StatsAccumulator: groups of four with zeros, and how often each of a few hundred codes
// occurs.
#pragma once

#include "core/convert/numbers/kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loadline {

// Bit 4i of the result is set if at least two of the bits 4i ... 4i + 3 of `zeros` are set.
inline std::uint64_t sparse_groups_of(std::uint64_t zeros) {
  const std::uint64_t both = zeros & (zeros >> 1), either = zeros | (zeros >> 1);
  return (both | both >> 2 | (either & (either >> 2))) & 0x1111111111111111U;
}

// Counts groups of four in a stream that arrives in pieces of any length.
class Groups {
 public:
  void add(const ZeroBits& zeros, std::size_t count) {
    std::size_t at = 0;
    for (; held_ != 0 && at < count; ++at) hold((zeros[at / 64] >> (at % 64)) & 1);
    std::array<std::uint64_t, kChunk / 64 + 1> sparse;
    std::size_t words = 0;
    for (; at + 4 <= count; at += 64) {
      const std::size_t shift = at % 64, whole = std::min<std::size_t>(64, (count - at) / 4 * 4);
      std::uint64_t word = zeros[at / 64] >> shift;
      if (shift != 0 && at / 64 + 1 < zeros.size()) word |= zeros[at / 64 + 1] << (64 - shift);
      if (whole < 64) word &= (std::uint64_t{1} << whole) - 1;
      groups_ += whole / 4;
      sparse[words++] = sparse_groups_of(word);
      if (whole < 64) {
        at += whole;
        break;
      }
    }
    sparse_ += count_ones(std::span(sparse).first(words));
    for (; at < count; ++at) hold((zeros[at / 64] >> (at % 64)) & 1);
  }
  std::uint64_t groups() const { return groups_; }
  std::uint64_t sparse() const { return sparse_; }

 private:
  void hold(std::uint64_t zero) {
    held_zeros_ += zero;
    if (++held_ < 4) return;
    ++groups_;
    if (held_zeros_ >= 2) ++sparse_;
    held_ = 0;
    held_zeros_ = 0;
  }

  std::uint64_t groups_ = 0;
  std::uint64_t sparse_ = 0;
  unsigned held_ = 0;  // elements of the incomplete group
  std::uint64_t held_zeros_ = 0;
};

// Counts in several tables by turns: in a single table, increments of one bin in a row would wait for each
// other.
template <std::size_t kBins>
class Tally {
 public:
  static constexpr std::size_t kTables = 4;

  // The tables, for at most `increments` <= kChunk increments.
  std::array<std::array<std::uint32_t, kBins>, kTables>& tables(std::size_t increments) {
    if (pending_ > (std::uint64_t{1} << 31)) flush();
    pending_ += increments;
    return tables_;
  }
  std::array<std::uint64_t, kBins> counts() const {
    std::array<std::uint64_t, kBins> sum = counts_;
    for (const auto& table : tables_)
      for (std::size_t i = 0; i < kBins; ++i) sum[i] += table[i];
    return sum;
  }

 private:
  void flush() {
    counts_ = counts();
    tables_ = {};
    pending_ = 0;
  }

  std::array<std::array<std::uint32_t, kBins>, kTables> tables_ = {};
  std::array<std::uint64_t, kBins> counts_ = {};
  std::uint64_t pending_ = 0;
};

}  // namespace loadline
