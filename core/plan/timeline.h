// What running a plan shows: lifetimes, usage per space over time, and peaks.
#pragma once

#include "core/plan/plan.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

inline constexpr std::size_t kNever = static_cast<std::size_t>(-1);

// Half-open: alive before and during the steps [from_step, to_step); to_step is kNever for blocks
// that outlive the plan. Seconds on the machine's clock.
struct Lifetime {
  std::size_t from_step = kNever;
  std::size_t to_step = kNever;
  double from_seconds = 0;
  double to_seconds = 0;
  bool operator==(const Lifetime&) const = default;
};

// Requested bytes per space after `step`; one entry per alloc or free.
struct UsagePoint {
  std::size_t step = 0;
  double seconds = 0;
  PerSpace<std::uint64_t> bytes = {};
};

// The highest sum over some spaces, where it is first reached; alive_at() tells what is alive there.
struct Peak {
  std::uint64_t bytes = 0;
  std::size_t step = 0;
  double seconds = 0;
};

// What the system counted while a machine ran, as differences to just before the run. Bytes.
struct ProcessMemory {
  std::uint64_t rss_anon = 0;
  std::uint64_t rss_file = 0;
  std::uint64_t rss_shmem = 0;
};

struct MemorySample {
  double seconds = 0;
  ProcessMemory memory;
};

struct Timeline {
  std::vector<Lifetime> lifetimes;  // parallel to Plan::blocks
  std::vector<UsagePoint> usage;
  PerSpace<Peak> peaks;
  Peak unified;                              // peak of the sum of all spaces
  PerSpace<std::uint64_t> final_bytes = {};  // alive when the plan ends
  double seconds = 0;                        // the whole run, on the machine's clock
  // What the machine's allocator took from the system, rounding and whole blocks included. Absent
  // on machines that take exactly what is asked.
  std::optional<PerSpace<std::uint64_t>> reserved_peak;
  // The same after each point of `usage`; empty on those machines, and on one that knows no more than its
  // peak.
  std::vector<PerSpace<std::uint64_t>> reserved_usage;
  // What it has not given back when the plan ends; absent where reserved_usage is not kept.
  std::optional<PerSpace<std::uint64_t>> reserved_final;
  // What the device's allocator itself called given out at most, where it keeps books of its own.
  std::optional<std::uint64_t> allocated_peak;
  std::vector<MemorySample> measured;  // empty on the dry machine
};

// Requested bytes of the spaces in `mask` (bit i = space i) after the last event at or before `step`.
std::uint64_t usage_at(const Timeline& timeline, std::size_t step, unsigned mask);
inline constexpr unsigned kAllSpaces = (1u << kSpaceCount) - 1;
constexpr unsigned space_bit(Space space) { return 1u << index(space); }

// The peak of the sum over the spaces in `mask`.
Peak peak_over(const Timeline& timeline, unsigned mask);
// Blocks alive after `step` in the spaces of `mask`, largest first, ties by id.
std::vector<BlockId> alive_at(const Timeline& timeline, const Plan& plan, std::size_t step, unsigned mask);

}  // namespace loadline
