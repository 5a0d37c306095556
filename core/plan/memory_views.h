// The same memory as several counters show it: what a task manager, a driver or a commit limit calls used.
#pragma once

#include "core/plan/timeline.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace loadline {

// Whether the accelerator has memory of its own, or shares the host's.
enum class MemoryKind : std::uint8_t { discrete, unified };
std::string_view memory_kind_name(MemoryKind kind);
// "discrete", "unified". Throws Error{usage} that lists them.
MemoryKind memory_kind(std::string_view name);

// One way of counting: the peak of a sum over spaces.
struct MemoryView {
  std::string_view id;  // stable, for scripts
  std::string_view title;
  std::string_view counted_by;  // one sentence: what counts so, and where a person sees it
  unsigned discrete_mask = 0;   // bit i = space i
  unsigned unified_mask = 0;

  unsigned mask(MemoryKind kind) const { return kind == MemoryKind::unified ? unified_mask : discrete_mask; }
};
std::span<const MemoryView> memory_views();

// Where the row called `id`, which there must be, stands.
std::size_t view_position(std::string_view id);

// The row that decides whether a load fits: the device's own memory, or, where memory is unified, all that
// the one memory must hold, without the file pages that the system can drop.
std::size_t leading_view(MemoryKind kind);
// The spaces that it sums: what the order `optimal` keeps low.
unsigned deciding_spaces(MemoryKind kind);

struct ViewPeak {
  std::uint64_t bytes = 0;
  std::size_t step = 0;  // where it is first reached
};
// Parallel to memory_views(): peak_over() of each, all in one pass. With a limit the page cache counts as at
// most that at any moment.
std::vector<ViewPeak> view_peaks(const Timeline& timeline, MemoryKind kind,
                                 std::optional<std::uint64_t> cache_limit = {});

}  // namespace loadline
