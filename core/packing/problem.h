// Buffers with lifetimes, the rules that a problem keeps, lifetimes as events in the order of time, problems
// as CSV.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::packing {

// --- The input and the verdicts of offline arena planning: buffers with lifetimes get offsets in arenas.

// Ticks [lower, upper). Only the order of ticks has a meaning, not their length.
struct Lifespan {
  std::uint64_t lower = 0;
  std::uint64_t upper = 0;
  bool operator==(const Lifespan&) const = default;
};

// Buffers of a group share one offset and their memory: they may overlap each other.
inline constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();

inline constexpr std::uint32_t kMostPackingArenas = 64;
// No packing is higher, in bytes, so that sums stay in 64 bits.
inline constexpr std::uint64_t kHighestPacking = std::uint64_t{1} << 62;

struct Buffer {
  std::uint64_t lower = 0;  // alive in ticks [lower, upper) ...
  std::uint64_t upper = 0;
  std::uint64_t size = 0;  // bytes
  std::uint64_t alignment = 1;
  std::optional<std::uint64_t> offset = {};  // if set, the buffer is pinned to it
  std::vector<Lifespan> gaps = {};           // ... except in these, where its bytes are not needed
  std::uint32_t group = kNoGroup;
  std::uint32_t arena = 0;
};

struct Problem {
  std::vector<Buffer> buffers = {};
  std::vector<std::string> ids = {};  // by buffer, as in the file; may be empty

  std::string id_of(std::size_t buffer) const;  // the buffer's number if it has no id
};

// The greatest arena number of any buffer plus one; at least one.
std::uint32_t arena_count(const Problem& problem);

// Calls `visit` with the begin and the end of each stretch of ticks in which the buffer is alive: its
// lifetime without the gaps.
template <typename Visit>
void each_alive(const Buffer& buffer, const Visit& visit) {
  std::uint64_t from = buffer.lower;
  const auto until = [&](std::uint64_t upper) {
    if (from < upper) visit(from, upper);
  };
  for (const Lifespan& gap : buffer.gaps) {
    until(gap.lower);
    from = std::max(from, gap.upper);
  }
  until(buffer.upper);
}

// Whether the buffer occupies any byte at any tick: gaps may cover its whole lifetime.
bool lives(const Buffer& buffer);
// The pinned buffer of the arena that ends highest, the first of equals; null if none of them lives.
const Buffer* highest_pin(const Problem& problem, std::uint32_t arena);

// Throws Error{malformed} that names the buffer and both numbers: lower > upper; a gap outside the lifetime,
// or gaps out of order; alignment 0; a pinned offset that is not a multiple of the alignment or ends past
// 2^62; buffers of a group with different pins or arenas. Throws Error{limit} for a size or alignment over
// 2^62, or an arena number of kMostPackingArenas or more.
void check_problem(const Problem& problem);

enum class Verdict : std::uint8_t {
  feasible,    // the offsets keep every rule and the capacity
  infeasible,  // proved: no such offsets exist
  undecided    // neither was found in time
};
std::string_view verdict_name(Verdict verdict);

// By how many percent `height` exceeds `bound`, which is not greater; 0 for a bound of 0.
double percent_over(std::uint64_t height, std::uint64_t bound);

// --- The begins and ends of lifetimes in the order of time.

struct TickEvent {
  std::uint64_t tick = 0;
  bool begins = false;  // at equal ticks ends sort before begins
  std::uint32_t index = 0;
  auto operator<=>(const TickEvent&) const = default;
};

// Two events for each of `lives`, which have ticks [lower, upper); sorted.
template <typename Life>
std::vector<TickEvent> tick_events(const std::vector<Life>& lives) {
  std::vector<TickEvent> events;
  events.reserve(lives.size() * 2);
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    events.push_back({lives[i].lower, true, i});
    events.push_back({lives[i].upper, false, i});
  }
  std::sort(events.begin(), events.end());
  return events;
}

// --- Packing problems as comma-separated values: MiniMalloc's columns and additional ones.

// The first line names the columns, in any order. Required: `lower` and `upper` (or `start` and `end`), and
// `size`. Optional: `id`, `alignment`, `offset` (pinned), `gaps` (`7-9 12-14`), `group` (any name), `arena`
// (a number); `hint` is read and ignored. An empty field of an optional column counts as absent. Fields may
// be quoted as in RFC 4180; lines end in LF or CRLF; empty lines are skipped. Throws Error{malformed} that
// names `file` and line, Error{limit} for more than 2^24 buffers, kMostPackingArenas arenas, 64 columns or
// 2^16 gaps of one buffer. The problem is not checked further.
Problem read_packing_csv(std::string_view text, const std::string& file);

// The problem and its offsets as CSV: only columns in use, `offset` last.
std::string packing_csv(const Problem& problem, std::span<const std::uint64_t> offsets);

}  // namespace loadline::packing
