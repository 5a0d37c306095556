// The table of memory views.
#include "core/plan/memory_views.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <bit>

namespace loadline {
namespace {

constexpr unsigned kHost = space_bit(Space::host);
constexpr unsigned kPageCache = space_bit(Space::page_cache);
constexpr unsigned kStaging = space_bit(Space::staging);
constexpr unsigned kDevice = space_bit(Space::device);
constexpr unsigned kHeld = kHost | kStaging | kDevice;

constexpr std::array<MemoryView, 8> kViews = {{
    {"device", "Device memory",
     "What the driver counts for the process: nvidia-smi, VK_EXT_memory_budget, the task manager's GPU "
     "memory.",
     kDevice, kDevice},
    {"host_anonymous", "Host, anonymous",
     "RssAnon in /proc/PID/status: pages that no file backs, which only swap can take away.", kHost, kHost},
    {"pinned_staging", "Pinned staging",
     "Memory that a driver keeps in place for transfers, file pages that a device imported among it: it can "
     "be neither swapped nor dropped, and shows as less MemAvailable in /proc/meminfo.",
     kStaging, kStaging},
    {"file_backed", "File-backed",
     "RssFile in /proc/PID/status: clean pages of mapped files, which the system can drop and read again "
     "(it also counts imported ones, which stay).",
     kPageCache, kPageCache},
    {"resident_set", "Resident set",
     "VmRSS in /proc/PID/status, RES in top, the working set in the task manager: anonymous, file and "
     "staging "
     "pages alike, so that mapped files look as if they were needed.",
     kHost | kPageCache | kStaging, kHost | kPageCache | kStaging},
    {"commit_charge", "Commit charge",
     "What the system has promised to hold: Committed_AS in /proc/meminfo, the commit size in the task "
     "manager. Mapped files are not in it (pages that a device imported are counted here all the same: they "
     "must be held); the device's memory is where it is the host's.",
     kHost | kStaging, kHeld},
    {"unified", "All as one memory",
     "The sum of all spaces, file pages included: how full a phone or an integrated GPU's memory looks while "
     "nothing is dropped.",
     kAllSpaces, kAllSpaces},
    {"unified_held", "One memory must hold",
     "The same without file pages, which go when memory is short: more than this does not fit, whatever the "
     "system does.",
     kHeld, kHeld},
}};

constexpr std::size_t position(std::string_view id) {
  std::size_t at = 0;
  while (kViews[at].id != id) ++at;
  return at;
}

}  // namespace

std::string_view memory_kind_name(MemoryKind kind) {
  return kind == MemoryKind::unified ? "unified" : "discrete";
}

MemoryKind memory_kind(std::string_view name) {
  if (name == "discrete") return MemoryKind::discrete;
  if (name == "unified") return MemoryKind::unified;
  throw Error(ErrorCode::usage, "no kind of memory is called '{}'; there are: discrete, unified",
              safe_display(name, 40));
}

std::span<const MemoryView> memory_views() { return kViews; }

std::size_t view_position(std::string_view id) { return position(id); }

std::size_t leading_view(MemoryKind kind) {
  return kind == MemoryKind::unified ? position("unified_held") : position("device");
}

unsigned deciding_spaces(MemoryKind kind) { return memory_views()[leading_view(kind)].mask(kind); }

std::vector<ViewPeak> view_peaks(const Timeline& timeline, MemoryKind kind,
                                 std::optional<std::uint64_t> cache_limit) {
  // indexed by mask, since several views may share one
  std::array<ViewPeak, kAllSpaces + 1> peaks = {};
  std::vector<unsigned> masks;
  for (const MemoryView& view : kViews)
    if (std::ranges::find(masks, view.mask(kind)) == masks.end()) masks.push_back(view.mask(kind));
  for (const UsagePoint& point : timeline.usage) {
    PerSpace<std::uint64_t> bytes = point.bytes;
    std::uint64_t& cached = bytes[index(Space::page_cache)];
    if (cache_limit) cached = std::min(cached, *cache_limit);
    // each sum is the sum over one space fewer, plus that space
    std::array<std::uint64_t, kAllSpaces + 1> sums = {};
    for (unsigned mask = 1; mask <= kAllSpaces; ++mask)
      sums[mask] = sums[mask & (mask - 1)] + bytes[static_cast<std::size_t>(std::countr_zero(mask))];
    for (const unsigned mask : masks)
      if (sums[mask] > peaks[mask].bytes) peaks[mask] = {sums[mask], point.step};
  }
  std::vector<ViewPeak> result;
  for (const MemoryView& view : kViews) result.push_back(peaks[view.mask(kind)]);
  return result;
}

}  // namespace loadline
