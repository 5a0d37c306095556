// Usage and peaks of a run; the table of memory counters; least-recently-used eviction.
#include "core/plan/timeline.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::plan {

// --- Usage, peaks and blocks of a run.

namespace {

// Sorts blocks by size, largest first; ties keep their order. Models have a hundred thousand tensors of a
// dozen sizes, so a counting sort is several times faster than a comparison sort.
std::vector<BlockId> largest_first(const Plan& plan, std::vector<BlockId> blocks) {
  constexpr std::size_t kFew = 512;
  std::unordered_map<std::uint64_t, std::size_t> places;  // first the count of each size
  for (const BlockId id : blocks) {
    ++places[plan.block(id).bytes];
    if (places.size() <= kFew) continue;
    std::ranges::stable_sort(blocks,
                             [&](BlockId a, BlockId b) { return plan.block(a).bytes > plan.block(b).bytes; });
    return blocks;
  }
  std::vector<std::uint64_t> sizes;
  for (const auto& [bytes, count] : places) sizes.push_back(bytes);
  std::sort(sizes.rbegin(), sizes.rend());
  std::size_t place = 0;  // then the next position for each size
  for (const std::uint64_t bytes : sizes) place += std::exchange(places.at(bytes), place);
  std::vector<BlockId> sorted(blocks.size());
  for (const BlockId id : blocks) sorted[places.at(plan.block(id).bytes)++] = id;
  return sorted;
}

void raise(Peak& peak, std::uint64_t bytes, const UsagePoint& point) {
  if (bytes > peak.bytes) peak = {.bytes = bytes, .step = point.step, .seconds = point.seconds};
}

}  // namespace

void find_peaks(Timeline& timeline) {
  for (const UsagePoint& point : timeline.usage)
    for (unsigned mask = 1; mask <= kAllSpaces; ++mask)
      raise(timeline.sum_peaks[mask], sum_over(point.bytes, mask), point);
  for (std::size_t space = 0; space < kSpaceCount; ++space)
    timeline.peaks[space] = timeline.sum_peaks[1u << space];
  timeline.unified = timeline.sum_peaks[kAllSpaces];
}

BlockId block_allocated_at(const Timeline& timeline, std::size_t step) {
  // blocks are numbered in the sequence of their allocations
  const auto at = std::ranges::lower_bound(timeline.lifetimes, step, {}, &Lifetime::from_step);
  return BlockId{static_cast<std::uint32_t>(at - timeline.lifetimes.begin())};
}

std::uint64_t usage_at(const Timeline& timeline, std::size_t step, unsigned mask) {
  const auto after = std::upper_bound(timeline.usage.begin(), timeline.usage.end(), step,
                                      [](std::size_t s, const UsagePoint& point) { return s < point.step; });
  return after == timeline.usage.begin() ? 0 : sum_over(std::prev(after)->bytes, mask);
}

double seconds_at(const Timeline& timeline, std::size_t step) {
  const auto at = std::ranges::lower_bound(timeline.usage, step, {}, &UsagePoint::step);
  return at == timeline.usage.end() ? timeline.seconds : at->seconds;
}

Peak peak_over(const Timeline& timeline, unsigned mask) { return timeline.sum_peaks[mask]; }

std::vector<BlockId> alive_at(const Timeline& timeline, const Plan& plan, std::size_t step, unsigned mask) {
  std::vector<BlockId> alive;
  alive.reserve(plan.blocks.size());
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Lifetime& life = timeline.lifetimes[i];
    if (life.from_step <= step && step < life.to_step && (mask & space_bit(plan.blocks[i].space)) != 0)
      alive.push_back(BlockId{static_cast<std::uint32_t>(i)});
  }
  return largest_first(plan, std::move(alive));
}

// --- The table of memory views.

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
     "manager. Mapped files are not in this figure. The system charges those that torch and safetensors map "
     "all the same, each as a whole while it is mapped, because they ask for pages that can be written: add "
     "the files' sizes under strict overcommit or a limit on data. Pages that a device imported are counted "
     "here, since they must be held; the device's memory is where it is the host's.",
     kHost | kStaging, kHeld},
    {"unified", "Unified with page cache",
     "The sum of all spaces, file pages included: how full a phone or an integrated GPU's memory looks while "
     "nothing is dropped.",
     kAllSpaces, kAllSpaces},
    {"unified_held", "Unified peak",
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

std::size_t deciding_view(MemoryKind kind) {
  return kind == MemoryKind::unified ? position("unified_held") : position("device");
}

unsigned deciding_spaces(MemoryKind kind) { return memory_views()[deciding_view(kind)].mask(kind); }

std::vector<ViewPeak> view_peaks(const Timeline& timeline, MemoryKind kind,
                                 std::optional<std::uint64_t> cache_limit) {
  // indexed by mask, since several views may share one
  std::array<ViewPeak, kAllSpaces + 1> peaks = {};
  for (unsigned mask = 0; mask <= kAllSpaces; ++mask)
    peaks[mask] = {timeline.sum_peaks[mask].bytes, timeline.sum_peaks[mask].step};
  if (cache_limit && *cache_limit < timeline.peaks[index(Space::page_cache)].bytes) {
    std::set<unsigned> limited;
    for (const MemoryView& view : kViews)
      if ((view.mask(kind) & kPageCache) != 0) limited.insert(view.mask(kind));
    for (const unsigned mask : limited) peaks[mask] = {};
    for (const UsagePoint& point : timeline.usage) {
      PerSpace<std::uint64_t> bytes = point.bytes;
      bytes[index(Space::page_cache)] = std::min(bytes[index(Space::page_cache)], *cache_limit);
      for (const unsigned mask : limited)
        if (const std::uint64_t sum = sum_over(bytes, mask); sum > peaks[mask].bytes)
          peaks[mask] = {sum, point.step};
    }
  }
  std::vector<ViewPeak> result;
  for (const MemoryView& view : kViews) result.push_back(peaks[view.mask(kind)]);
  return result;
}

// --- Least-recently-used eviction over granules of mapped blocks.

namespace {

// A range of a mapped block that a copy touches.
struct Pass {
  BlockId block{};
  std::uint64_t from = 0;
  std::uint64_t bytes = 0;
  bool first = false;  // reads the range for the first time; the plan counts that read
  bool operator==(const Pass& other) const {
    return block == other.block && from == other.from && bytes == other.bytes;
  }
};

bool is_mapped(const Plan& plan, BlockId id) { return plan.block(id).space == Space::page_cache; }

std::vector<Pass> passes_of(const Plan& plan, const Step& step) {
  std::vector<Pass> passes;
  if (step.verb != Verb::copy || step.bytes == 0) return passes;
  if (is_mapped(plan, step.block)) passes.push_back({step.block, step.offset, step.bytes, true});
  if (const BlockId* from = std::get_if<BlockId>(&step.from); from != nullptr && is_mapped(plan, *from))
    passes.push_back({*from, step.from_offset, step.bytes});
  return passes;
}

class Cache {
 public:
  Cache(const Plan& plan, std::uint64_t limit) : plan_(plan), limit_(limit) {
    constexpr std::uint64_t kMostGranules = 1 << 18;
    std::uint64_t passed = 0;
    for (const Step& step : plan.steps)
      for (const Pass& pass : passes_of(plan, step)) passed += pass.bytes / kMostGranules;
    for (const Block& block : plan.blocks)
      if (block.space == Space::page_cache) passed += block.bytes / kMostGranules;
    while (granule_ < passed) granule_ *= 2;
    first_.reserve(plan.blocks.size());
    std::size_t granules = 0;
    for (const Block& block : plan.blocks) {
      first_.push_back(granules);
      if (block.space == Space::page_cache) granules += count(block.bytes);
    }
    kept_.resize(granules);
  }

  // Returns the bytes that were not cached.
  std::uint64_t touch(const Pass& pass) {
    std::uint64_t missed = 0;
    const std::uint64_t end = pass.from + pass.bytes;
    for (std::uint64_t i = pass.from / granule_; i * granule_ < end; ++i) {
      const std::uint64_t from = std::max(pass.from, i * granule_);
      const std::uint64_t to = std::min(end, (i + 1) * granule_);
      if (!keep({pass.block, i})) missed += to - from;
    }
    return missed;
  }

  void drop(BlockId block) {
    for (std::uint64_t i = 0; i < count(plan_.block(block).bytes); ++i) {
      Entry& entry = kept_[first_[graph::index(block)] + i];
      if (entry.kept) forget(*entry.place);
    }
  }

 private:
  struct Granule {
    BlockId block{};
    std::uint64_t number = 0;
  };
  struct Entry {
    bool kept = false;
    std::list<Granule>::iterator place = {};
  };

  std::uint64_t count(std::uint64_t bytes) const { return bytes / granule_ + (bytes % granule_ != 0); }
  Entry& entry(const Granule& granule) { return kept_[first_[graph::index(granule.block)] + granule.number]; }
  std::uint64_t bytes(const Granule& granule) const {
    return std::min(granule_, plan_.block(granule.block).bytes - granule.number * granule_);
  }

  void forget(const Granule& granule) {
    Entry& known = entry(granule);
    held_ -= bytes(granule);
    known.kept = false;
    used_.erase(known.place);
  }

  // Marks a granule as most recently used. Returns whether it was cached.
  bool keep(const Granule& granule) {
    Entry& known = entry(granule);
    if (known.kept) {
      used_.splice(used_.end(), used_, known.place);
      return true;
    }
    const std::uint64_t wanted = bytes(granule);
    if (wanted > limit_) return false;
    while (held_ > limit_ - wanted) forget(used_.front());
    known = {true, used_.insert(used_.end(), granule)};
    held_ += wanted;
    return false;
  }

  const Plan& plan_;
  std::uint64_t limit_;
  std::uint64_t granule_ = 64 << 10;
  std::vector<std::size_t> first_;  // by block: its first granule in kept_
  std::vector<Entry> kept_;
  std::list<Granule> used_;  // least recently used first
  std::uint64_t held_ = 0;
};

}  // namespace

CacheOutcome limit_cache(const Plan& plan, const Timeline& timeline, std::uint64_t limit) {
  const std::uint64_t mapped = timeline.peaks[index(Space::page_cache)].bytes;
  CacheOutcome outcome = {limit, mapped, std::min(mapped, limit), 0};
  if (mapped <= limit) return outcome;
  Cache cache(plan, limit);
  Pass last;
  for (const Step& step : plan.steps) {
    if (step.verb == Verb::free && is_mapped(plan, step.block)) cache.drop(step.block);
    for (const Pass& pass : passes_of(plan, step)) {
      const bool same_pass = !pass.first && last.first && pass == last;
      last = pass;
      if (same_pass) continue;
      const std::uint64_t missed = cache.touch(pass);
      if (!pass.first) outcome.reread_bytes += missed;
    }
  }
  return outcome;
}

}  // namespace loadline::plan
