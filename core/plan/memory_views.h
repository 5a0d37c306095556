// One memory seen by several counters: the figures of a task manager, a driver or a commit limit.
#pragma once

#include "core/plan/timeline.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

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
std::size_t leading_view(MemoryKind kind);
// The spaces that this row sums; order `optimal` minimises the peak of their sum.
unsigned deciding_spaces(MemoryKind kind);

struct ViewPeak {
  std::uint64_t bytes = 0;
  std::size_t step = 0;  // where the peak is first reached
};
// peak_over() for each row of memory_views(), computed in one pass. With `cache_limit` the page cache never
// counts for more than that.
std::vector<ViewPeak> view_peaks(const Timeline& timeline, MemoryKind kind,
                                 std::optional<std::uint64_t> cache_limit = {});

}  // namespace loadline
