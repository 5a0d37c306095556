// Counters, and the three ways to measure.
#include "core/convert/numbers/statistics.h"

#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/kernels.h"
#include "core/convert/numbers/quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

namespace loadline::convert {

// --- Counters behind StatsAccumulator: groups of four with zeros, and how often each of a few hundred codes
// occurs.

namespace {

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

}  // namespace

// --- Three ways to measure. Codes of at most eight bits are counted, and the table is summed at the end.
// Values that fit a float exactly go through vector loops, wider numbers through plain loops.

namespace {

// The index in OctaveCounts of a finite number other than zero.
std::size_t octave_place(double value) {
  const auto exponent = static_cast<int>((std::bit_cast<std::uint64_t>(value) >> 52) & 0x7FF) - 1023;
  return static_cast<std::size_t>(std::clamp(exponent, kFirstOctave, kLastOctave) - kFirstOctave);
}

bool is_float_path(graph::DType dtype) {
  constexpr graph::DType kTypes[] = {graph::DType::f32, graph::DType::f16, graph::DType::bf16,
                                     graph::DType::c64, graph::DType::i16, graph::DType::u16};
  return std::find(std::begin(kTypes), std::end(kTypes), dtype) != std::end(kTypes) || can_dequantize(dtype);
}

// Indices in the table of 512: the first negative number, and a free entry that counts zeros of wider types.
constexpr std::size_t kNegativeTops = 256;
constexpr std::size_t kZeroTop = kOctaves;

// The number in its own type; a zero without its sign.
Number typed(graph::DType dtype, double value) {
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  if (info.kind == graph::DTypeKind::boolean) return static_cast<std::uint64_t>(value);
  if (info.kind != graph::DTypeKind::integer) return value + 0.0;
  if (info.name.front() == 'U') return static_cast<std::uint64_t>(value);
  return static_cast<std::int64_t>(value);
}

}  // namespace

struct StatsAccumulator::State {
  explicit State(graph::DType type) : dtype(type) {}

  graph::DType dtype;
  ValueStats counted;  // counts that are not in the tables and moments below
  Groups groups;
  Moments moments;
  Tally<256> codes;
  Tally<512> tops;  // sign and exponent of floats; sign and place, or zero, of wider numbers

  void add_codes(std::span<const std::byte> bytes, std::uint64_t elements);
  void add_code_chunk(std::span<const std::uint8_t> chunk);
  void add_as_floats(std::span<const std::byte> bytes);
  void add_floats(std::span<const float> chunk);
  void count_special(std::span<const float> chunk);
  template <typename T>
  void add_wide(std::span<const std::byte> bytes);
  template <typename T>
  void add_wide_chunk(std::span<const std::byte> bytes);
  void finish_codes(ValueStats& out) const;
  void finish_tops(ValueStats& out) const;
};

// --- codes

void StatsAccumulator::State::add_codes(std::span<const std::byte> bytes, std::uint64_t elements) {
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  const std::size_t chunk_bytes = kChunk / info.block_elements * info.block_bytes;
  std::array<std::uint8_t, kChunk> unpacked;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), chunk_bytes));
    const auto count = static_cast<std::size_t>(
        std::min<std::uint64_t>(elements, part.size() / info.block_bytes * info.block_elements));
    if (info.block_elements == 1) {
      add_code_chunk({reinterpret_cast<const std::uint8_t*>(part.data()), count});
    } else {
      unpack_codes(dtype, part, std::span(unpacked).first(count));
      add_code_chunk(std::span<const std::uint8_t>(unpacked).first(count));
    }
    bytes = bytes.subspan(part.size());
    elements -= count;
  }
}

// The bits that decide whether a code is zero; 0: no code of the type is zero.
std::uint8_t zero_mask(graph::DType dtype) {
  constexpr std::pair<graph::DType, std::uint8_t> kMasks[] = {
      {graph::DType::f8_e4m3, 0x7F}, {graph::DType::f8_e5m2, 0x7F}, {graph::DType::f4_e2m1, 0x07},
      {graph::DType::f6_e2m3, 0x1F}, {graph::DType::f6_e3m2, 0x1F}, {graph::DType::f8_e8m0, 0}};
  for (const auto& [type, mask] : kMasks)
    if (type == dtype) return mask;
  return 0xFF;
}

void StatsAccumulator::State::add_code_chunk(std::span<const std::uint8_t> chunk) {
  counted.count += chunk.size();
  const std::uint8_t mask = zero_mask(dtype);
  groups.add(mask == 0 ? ZeroBits{} : zero_codes(chunk, mask), chunk.size());
  auto& tables = codes.tables(chunk.size());
  std::size_t i = 0;
  for (; i + 8 <= chunk.size(); i += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, chunk.data() + i, 8);
    for (std::size_t j = 0; j < 8; ++j) ++tables[j % tables.size()][(eight >> (8 * j)) & 0xFF];
  }
  for (; i < chunk.size(); ++i) ++tables[0][chunk[i]];
}

void StatsAccumulator::State::finish_codes(ValueStats& out) const {
  const auto values = code_values(dtype);
  const auto counts = codes.counts();
  Moments sums;
  double sum = 0;
  for (std::size_t code = 0; code < counts.size(); ++code) {
    const double value = values[code];
    if (counts[code] == 0) continue;
    if (std::isnan(value)) {
      out.nans += counts[code];
    } else if (std::isinf(value)) {
      (value > 0 ? out.positive_infs : out.negative_infs) += counts[code];
    } else {
      sums.finite += counts[code];
      sums.min = std::min(sums.min, value);
      sums.max = std::max(sums.max, value);
      sum += static_cast<double>(counts[code]) * value;
      if (value == 0)
        out.zeros += counts[code];
      else
        (value > 0 ? out.positive : out.negative)[octave_place(value)] += counts[code];
    }
  }
  if (sums.finite == 0) return;
  sums.mean = sum / static_cast<double>(sums.finite);
  for (std::size_t code = 0; code < counts.size(); ++code)
    if (counts[code] != 0 && std::isfinite(values[code])) {
      const double distance = values[code] - sums.mean;
      sums.squares += static_cast<double>(counts[code]) * distance * distance;
    }
  out.min = typed(dtype, sums.min);
  out.max = typed(dtype, sums.max);
  out.mean = sums.mean;
  out.deviation = std::sqrt(sums.squares / static_cast<double>(sums.finite));
}

// --- values that fit a float exactly

void StatsAccumulator::State::add_as_floats(std::span<const std::byte> bytes) {
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  const bool block = info.kind == graph::DTypeKind::block;
  const std::size_t unit = block ? info.block_bytes : dtype == graph::DType::c64 ? 4 : info.block_bytes;
  const std::size_t unit_elements = block ? info.block_elements : 1;
  std::array<float, kChunk> floats;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kChunk / unit_elements * unit));
    const auto chunk = std::span(floats).first(part.size() / unit * unit_elements);
    if (block) {
      dequantize(dtype, part, chunk);
    } else if (dtype == graph::DType::f16 || dtype == graph::DType::bf16) {
      cast(dtype, part, graph::DType::f32, std::as_writable_bytes(chunk));
    } else if (dtype == graph::DType::i16 || dtype == graph::DType::u16) {
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, part.data() + 2 * i, 2);
        chunk[i] = dtype == graph::DType::u16 ? static_cast<float>(bits)
                                              : static_cast<float>(static_cast<std::int16_t>(bits));
      }
    } else {
      std::memcpy(chunk.data(), part.data(), part.size());
    }
    add_floats(chunk);
    bytes = bytes.subspan(part.size());
  }
}

void StatsAccumulator::State::add_floats(std::span<const float> chunk) {
  const FloatChunk found = measure_floats(chunk);
  counted.count += chunk.size();
  counted.zeros += count_ones(found.zeros);
  groups.add(found.zeros, chunk.size());
  moments = joined(moments, found.moments);
  if (found.has_special || found.has_tiny) count_special(chunk);
  auto& tables = tops.tables(chunk.size());
  std::size_t i = 0;
  for (; i + 4 <= chunk.size(); i += 4) {
    std::uint64_t two = 0, next = 0;
    std::memcpy(&two, chunk.data() + i, 8);
    std::memcpy(&next, chunk.data() + i + 2, 8);
    ++tables[0][(two >> 23) & 511];
    ++tables[1][two >> 55];
    ++tables[2][(next >> 23) & 511];
    ++tables[3][next >> 55];
  }
  for (; i < chunk.size(); ++i) ++tables[0][std::bit_cast<std::uint32_t>(chunk[i]) >> 23];
}

// Exponent 255 holds NaN beside infinities, exponent 0 subnormals beside zeros: tell them apart.
void StatsAccumulator::State::count_special(std::span<const float> chunk) {
  for (const float value : chunk) {
    const float magnitude = std::abs(value);
    if (!(magnitude <= std::numeric_limits<float>::max())) {
      if (value != value)
        ++counted.nans;
      else
        ++(value > 0 ? counted.positive_infs : counted.negative_infs);
    } else if (magnitude < std::numeric_limits<float>::min() && value != 0) {
      ++(value > 0 ? counted.positive : counted.negative)[0];
    }
  }
}

void StatsAccumulator::State::finish_tops(ValueStats& out) const {
  const auto counts = tops.counts();
  // a float's first place also holds zeros: count_special has told them apart
  for (std::size_t place = is_float_path(dtype) ? 1 : 0; place < kOctaves; ++place) {
    out.positive[place] += counts[place];
    out.negative[place] += counts[kNegativeTops + place];
  }
}

// --- wider numbers

// Sums four elements at a time, so that the additions do not wait for each other.
template <typename Term>
double sum_of(std::span<const double> numbers, Term term) {
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= numbers.size(); i += 4)
    for (std::size_t j = 0; j < 4; ++j) sums[j] += term(numbers[i + j]);
  for (; i < numbers.size(); ++i) sums[0] += term(numbers[i]);
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

// The index of a finite number in the table of 512, without a branch on its sign, which is unpredictable.
std::size_t top_of(double value) {
  const std::size_t negative = std::bit_cast<std::uint64_t>(value) >> 63;
  return negative * kNegativeTops + (value == 0 ? kZeroTop : octave_place(value));
}
// The same for an integer, from its bits: conversion to double would round some integers up to the next
// octave.
template <typename T>
std::size_t top_of(T value) {
  const std::uint64_t negative = std::is_signed_v<T> ? static_cast<std::uint64_t>(value) >> 63 : 0;
  const std::uint64_t magnitude = (static_cast<std::uint64_t>(value) ^ (0 - negative)) + negative;
  const int exponent = static_cast<int>(std::bit_width(magnitude | 1)) - 1;
  return negative * kNegativeTops +
         (value == 0 ? kZeroTop : static_cast<std::size_t>(exponent - kFirstOctave));
}

template <typename T>
void StatsAccumulator::State::add_wide(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kChunk * sizeof(T)));
    add_wide_chunk<T>(part);
    bytes = bytes.subspan(part.size());
  }
}

template <typename T>
void StatsAccumulator::State::add_wide_chunk(std::span<const std::byte> bytes) {
  constexpr bool kFloating = std::is_floating_point_v<T>;
  using Exact = std::conditional_t<kFloating, double,
                                   std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  std::array<T, kChunk> chunk;
  std::array<double, kChunk> finite;
  const std::size_t count = bytes.size() / sizeof(T);
  std::memcpy(chunk.data(), bytes.data(), bytes.size());
  ZeroBits zeros = {};
  Moments found;
  Exact least = std::numeric_limits<Exact>::max(), most = std::numeric_limits<Exact>::lowest();
  auto& tables = tops.tables(count);
  std::size_t known = 0;
  for (std::size_t start = 0; start < count; start += 64) {
    std::uint64_t word = 0;
    for (std::size_t i = start; i < std::min(count, start + 64); ++i) {
      const T value = chunk[i];
      const auto number = static_cast<double>(value);
      if (kFloating && !std::isfinite(number)) {
        ++(number != number ? counted.nans : number > 0 ? counted.positive_infs : counted.negative_infs);
        continue;
      }
      word |= std::uint64_t{value == 0} << (i % 64);
      ++tables[i % tables.size()][top_of(value)];
      least = std::min(least, Exact{value});
      most = std::max(most, Exact{value});
      finite[known++] = number;
    }
    zeros[start / 64] = word;
  }
  found.finite = known;
  counted.count += count;
  counted.zeros += count_ones(zeros);
  groups.add(zeros, count);
  if (found.finite == 0) return;
  if constexpr (kFloating) least += 0.0, most += 0.0;  // -0 becomes 0
  counted.min = counted.min ? std::min(*counted.min, Number(least)) : Number(least);
  counted.max = counted.max ? std::max(*counted.max, Number(most)) : Number(most);
  const auto numbers = std::span<const double>(finite).first(known);
  found.mean = sum_of(numbers, [](double x) { return x; }) / static_cast<double>(found.finite);
  found.squares = sum_of(numbers, [&](double x) { return (x - found.mean) * (x - found.mean); });
  moments = joined(moments, found);
}

// --- the accumulator

bool can_measure(graph::DType dtype) {
  const graph::DTypeInfo& info = graph::dtype_info(dtype);
  return info.block_elements != 0 && (info.kind != graph::DTypeKind::block || can_dequantize(dtype));
}

StatsAccumulator::StatsAccumulator(graph::DType dtype) : state_(std::make_unique<State>(dtype)) {
  assert(can_measure(dtype));
}
StatsAccumulator::~StatsAccumulator() = default;
StatsAccumulator::StatsAccumulator(StatsAccumulator&&) noexcept = default;
StatsAccumulator& StatsAccumulator::operator=(StatsAccumulator&&) noexcept = default;

void StatsAccumulator::add(std::span<const std::byte> bytes) {
  const graph::DTypeInfo& info = graph::dtype_info(state_->dtype);
  add(bytes, bytes.size() / info.block_bytes * info.block_elements);
}

void StatsAccumulator::add(std::span<const std::byte> bytes, std::uint64_t elements) {
  const graph::DType dtype = state_->dtype;
  assert(bytes.size() % graph::dtype_info(dtype).block_bytes == 0);
  assert(graph::packed_byte_size(dtype, elements) == bytes.size());
  if (is_code_type(dtype)) return state_->add_codes(bytes, elements);
  if (is_float_path(dtype)) return state_->add_as_floats(bytes);
  switch (dtype) {
    case graph::DType::f64:
    case graph::DType::c128:
      return state_->add_wide<double>(bytes);
    case graph::DType::i32:
      return state_->add_wide<std::int32_t>(bytes);
    case graph::DType::u32:
      return state_->add_wide<std::uint32_t>(bytes);
    case graph::DType::i64:
      return state_->add_wide<std::int64_t>(bytes);
    case graph::DType::u64:
      return state_->add_wide<std::uint64_t>(bytes);
    default:
      assert(false && "can_measure was not asked");
  }
}

ValueStats StatsAccumulator::result() const {
  const State& state = *state_;
  ValueStats out = state.counted;
  out.groups = state.groups.groups();
  out.sparse_groups = state.groups.sparse();
  if (is_code_type(state.dtype)) {
    state.finish_codes(out);
    return out;
  }
  if (state.moments.finite > 0) {
    if (!out.min) {
      out.min = typed(state.dtype, state.moments.min);
      out.max = typed(state.dtype, state.moments.max);
    }
    out.mean = state.moments.mean;
    out.deviation = std::sqrt(state.moments.squares / static_cast<double>(state.moments.finite));
  }
  state.finish_tops(out);
  return out;
}

}  // namespace loadline::convert
