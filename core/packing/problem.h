// What offline arena planning solves, and what it answers: buffers with lifetimes get offsets in arenas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// Ticks [lower, upper) of a clock that only has an order.
struct Lifespan {
  std::uint64_t lower = 0;
  std::uint64_t upper = 0;
  bool operator==(const Lifespan&) const = default;
};

// Buffers of the same group have one offset and share memory: they may overlap each other.
inline constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();

inline constexpr std::uint32_t kMostPackingArenas = 64;

struct Buffer {
  std::uint64_t lower = 0;  // alive in ticks [lower, upper) ...
  std::uint64_t upper = 0;
  std::uint64_t size = 0;  // bytes
  std::uint64_t alignment = 1;
  std::optional<std::uint64_t> offset = {};  // pinned there
  std::vector<Lifespan> gaps = {};           // ... but for these: its bytes are not needed then
  std::uint32_t group = kNoGroup;
  std::uint32_t arena = 0;
};

struct Problem {
  std::vector<Buffer> buffers = {};
  std::vector<std::string> ids = {};  // by buffer, as a file gave them; may be empty

  std::string id_of(std::size_t buffer) const;  // its number where it has no id
};

// One more than the highest that a buffer is in, at least one.
std::uint32_t arena_count(const Problem& problem);

// Throws Error{malformed} that names the buffer and both numbers: lower > upper, a gap outside of its
// lifetime or gaps out of order, alignment 0, a pinned offset that is no multiple of the alignment or ends
// past 2^62, buffers of one group that differ in their pins or arenas; Error{limit} for a size or an
// alignment over 2^62 or an arena from kMostPackingArenas on.
void check_problem(const Problem& problem);

enum class Verdict : std::uint8_t {
  feasible,    // the offsets keep every rule and the capacity
  infeasible,  // proved: no offsets do
  undecided    // neither was found in time
};
std::string_view verdict_name(Verdict verdict);

// By how many percent a height is above a bound that is not above it; 0 for a bound of 0.
double percent_over(std::uint64_t height, std::uint64_t bound);

}  // namespace loadline
