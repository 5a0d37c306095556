// What a run leaves: lifetimes, usage, peaks; how counters of memory see it, and a limited page cache.
#pragma once

#include "core/plan/plan.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline::plan {

// --- The result of running a plan: lifetimes, usage per space over time, and peaks.

// No step: plans have fewer.
inline constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

// Half-open: the block is alive after each of the steps [from_step, to_step). to_step is kNever for blocks
// that outlive the plan. Small: a load has millions of blocks.
struct Lifetime {
  std::uint32_t from_step = kNever;
  std::uint32_t to_step = kNever;
  bool operator==(const Lifetime&) const = default;
};

// Requested bytes per space after `step`; one entry per alloc or free.
struct UsagePoint {
  std::size_t step = 0;
  double seconds = 0;
  PerSpace<std::uint64_t> bytes = {};
};

// The highest sum over some spaces, at the step that first reaches it; alive_at() lists the blocks alive
// there.
struct Peak {
  std::uint64_t bytes = 0;
  std::size_t step = 0;
  double seconds = 0;
};

// The kernel's resident set counters during a run, relative to just before it. Bytes.
struct ProcessMemory {
  std::uint64_t rss_anon = 0;
  std::uint64_t rss_file = 0;
  std::uint64_t rss_shmem = 0;
};

struct MemorySample {
  double seconds = 0;
  ProcessMemory memory;
  // Growth of the device memory by the driver's count, as last read; 0 on a machine without such a count.
  std::uint64_t device_counted = 0;
};

// Limits for the sums over spaces, by mask.
using SumLimits = std::array<std::optional<std::uint64_t>, kAllSpaces + 1>;

struct Timeline {
  std::vector<Lifetime> lifetimes;                  // parallel to Plan::blocks
  std::vector<UsagePoint> usage;                    // empty if the run kept no more than peaks
  std::array<Peak, kAllSpaces + 1> sum_peaks = {};  // of the sum over the spaces in a mask, by mask
  PerSpace<Peak> peaks;
  Peak unified;                              // peak of the sum of all spaces
  std::size_t over_step = kNever;            // the first that exceeds a limit of the run
  PerSpace<std::uint64_t> final_bytes = {};  // alive when the plan ends
  double seconds = 0;                        // the whole run, on the machine's clock
  // Peak bytes that the machine's allocator reserved from the system, including rounding and whole blocks.
  // Absent on machines that reserve exactly the requested bytes.
  std::optional<PerSpace<std::uint64_t>> reserved_peak;
  // Reserved bytes after each point of `usage`; empty on those machines, and on a machine that knows only its
  // peak.
  std::vector<PerSpace<std::uint64_t>> reserved_usage;
  // Bytes still reserved when the plan ends; absent if reserved_usage is empty.
  std::optional<PerSpace<std::uint64_t>> reserved_final;
  // Peak of the bytes that the device's allocator counts as given out, if it keeps such a count.
  std::optional<std::uint64_t> allocated_peak;
  std::vector<MemorySample> measured;  // empty on the dry machine
};

// Requested bytes of the spaces in `mask` after the last event at or before `step`.
std::uint64_t usage_at(const Timeline& timeline, std::size_t step, unsigned mask);

// When `step`, an allocation or a free, was done; the end of the run for kNever.
double seconds_at(const Timeline& timeline, std::size_t step);

// The peak of the sum over the spaces in `mask`.
Peak peak_over(const Timeline& timeline, unsigned mask);
// Sets all peaks from `usage`, in one pass.
void find_peaks(Timeline& timeline);
// The block that `step`, an allocation, allocates. Blocks must be numbered in the sequence of their
// allocations, as those of load methods are.
BlockId block_allocated_at(const Timeline& timeline, std::size_t step);
// Blocks alive after `step` in the spaces of `mask`, largest first, ties by id.
std::vector<BlockId> alive_at(const Timeline& timeline, const Plan& plan, std::size_t step, unsigned mask);

// --- One memory seen by several counters: the figures of a task manager, a driver or a commit limit.

// Whether the accelerator has its own memory or shares the host's.
enum class MemoryKind : std::uint8_t { discrete, unified };
std::string_view memory_kind_name(MemoryKind kind);
// Reads "discrete" or "unified". Throws Error{usage} that lists both.
MemoryKind memory_kind(std::string_view name);

// One way to count memory: the peak of a sum over spaces.
struct MemoryView {
  std::string_view id;  // stable, for scripts
  std::string_view title;
  std::string_view counted_by;  // one sentence: what counts this way, and where the user sees it
  unsigned discrete_mask = 0;   // bit i = space i
  unsigned unified_mask = 0;

  unsigned mask(MemoryKind kind) const { return kind == MemoryKind::unified ? unified_mask : discrete_mask; }
};
std::span<const MemoryView> memory_views();

// The position of the row with this id, which must exist.
std::size_t view_position(std::string_view id);

// The row that decides whether a load fits: the device's own memory or, if memory is unified, device, host
// and staging without file pages, which the system can drop.
std::size_t deciding_view(MemoryKind kind);
// The spaces that this row sums; order `optimal` minimizes the peak of their sum.
unsigned deciding_spaces(MemoryKind kind);

struct ViewPeak {
  std::uint64_t bytes = 0;
  std::size_t step = 0;  // where the peak is first reached
};
// peak_over() for each row of memory_views(), computed in one pass. With `cache_limit` the page cache never
// counts for more than that.
std::vector<ViewPeak> view_peaks(const Timeline& timeline, MemoryKind kind,
                                 std::optional<std::uint64_t> cache_limit = {});

// --- The extra reads that a limited page cache causes: evicted pages are read again.

struct CacheOutcome {
  std::uint64_t limit = 0;
  std::uint64_t mapped = 0;        // F: peak of mapped pages without a limit
  std::uint64_t peak = 0;          // min(F, limit)
  std::uint64_t reread_bytes = 0;  // read from files in addition to the plan's own reads
};

// Simulates the plan with a page cache of at most `limit` bytes and least-recently-used eviction. Pages
// imported by the device are staging memory: they are not evicted and do not count. Pages are evicted in
// granules of 64 KiB, larger for large plans so that the simulation costs no more; a granule larger than the
// limit is never cached. A copy out of pages that directly follows the copy which read them is the same pass
// over the file. `timeline` is the plan's.
CacheOutcome limit_cache(const Plan& plan, const Timeline& timeline, std::uint64_t limit);

}  // namespace loadline::plan
