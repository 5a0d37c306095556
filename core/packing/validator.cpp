// Sweeps over the ticks and keeps the occupied ranges of bytes.
#include "core/base/checked_arithmetic.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

namespace loadline::packing {
namespace {

using Offsets = std::span<const std::uint64_t>;
using Capacity = std::span<const std::optional<std::uint64_t>>;

// The first tick, not before `tick`, at which the buffer is alive.
std::optional<std::uint64_t> alive_from(const Buffer& buffer, std::uint64_t tick) {
  tick = std::max(tick, buffer.lower);
  for (const Lifespan& gap : buffer.gaps)
    if (gap.lower <= tick && tick < gap.upper) tick = gap.upper;
  if (tick >= buffer.upper) return std::nullopt;
  return tick;
}

bool same_group(const Buffer& a, const Buffer& b) { return a.group != kNoGroup && a.group == b.group; }

std::optional<std::uint64_t> limit_of(Capacity capacity, std::uint32_t arena) {
  return arena < capacity.size() ? capacity[arena] : std::nullopt;
}

// The faults of a single buffer.
std::optional<std::string> fault_of(const Buffer& buffer, std::size_t i, std::uint64_t offset,
                                    Capacity capacity) {
  if (offset % buffer.alignment != 0)
    return fmt::format("buffer {} at {}, not a multiple of {}", i, offset, buffer.alignment);
  if (buffer.offset && *buffer.offset != offset)
    return fmt::format("buffer {} at {}, pinned to {}", i, offset, *buffer.offset);
  const auto end = checked_add(offset, buffer.size);
  if (!end) return fmt::format("buffer {} at {} wraps", i, offset);
  const auto limit = limit_of(capacity, buffer.arena);
  if (limit && *end > *limit && lives(buffer))
    return fmt::format("buffer {} ends at {}, past {}", i, *end, *limit);
  return std::nullopt;
}

std::optional<std::string> group_apart(const Problem& problem, Offsets offsets) {
  std::unordered_map<std::uint32_t, std::size_t> first;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (problem.buffers[i].group == kNoGroup) continue;
    const std::size_t j = first.try_emplace(problem.buffers[i].group, i).first->second;
    if (offsets[i] != offsets[j])
      return fmt::format("buffers {} and {} of a group at {} and {}", j, i, offsets[j], offsets[i]);
  }
  return std::nullopt;
}

// The bytes occupied at one tick: for each offset in an arena the buffers there, sorted by their ends. Only
// members of one group can be at the same offset.
class TakenBytes {
 public:
  TakenBytes(const Problem& problem, Offsets offsets) : buffers_(problem.buffers), offsets_(offsets) {}

  // Adds a buffer. If it shares a byte with another one, returns that one and adds nothing.
  std::optional<std::size_t> add(std::size_t buffer) {
    const Place place = place_of(buffer);
    const auto in_arena = [&](auto at) { return at != taken_.end() && at->first.first == place.first; };
    auto at = taken_.lower_bound(place);
    if (at != taken_.begin() && in_arena(std::prev(at)) && highest(std::prev(at)).first > place.second)
      return highest(std::prev(at)).second;
    if (in_arena(at) && at->first == place) {
      if (!same_group(buffers_[highest(at).second], buffers_[buffer])) return highest(at).second;
      ++at;
    }
    if (in_arena(at) && at->first.second < end_of(buffer)) return highest(at).second;
    taken_[place].emplace(end_of(buffer), buffer);
    return std::nullopt;
  }

  void remove(std::size_t buffer) {
    const auto at = taken_.find(place_of(buffer));
    at->second.erase({end_of(buffer), buffer});
    if (at->second.empty()) taken_.erase(at);
  }

 private:
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // arena, offset
  using Ends = std::set<std::pair<std::uint64_t, std::size_t>>;
  using Taken = std::map<Place, Ends>;

  Place place_of(std::size_t buffer) const { return {buffers_[buffer].arena, offsets_[buffer]}; }
  std::uint64_t end_of(std::size_t buffer) const { return offsets_[buffer] + buffers_[buffer].size; }
  static const Ends::value_type& highest(Taken::const_iterator at) { return *at->second.rbegin(); }

  const std::vector<Buffer>& buffers_;
  Offsets offsets_;
  Taken taken_ = {};
};

std::optional<std::string> shared_byte(const Problem& problem, Offsets offsets) {
  struct Part {
    std::uint64_t lower, upper;
    std::size_t buffer;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].size > 0)
      each_alive(problem.buffers[i], [&](std::uint64_t lower, std::uint64_t upper) {
        parts.push_back({lower, upper, i});
      });
  TakenBytes taken(problem, offsets);
  for (const TickEvent& event : tick_events(parts)) {
    const std::size_t i = parts[event.index].buffer;
    if (!event.begins) {
      taken.remove(i);
      continue;
    }
    if (const auto j = taken.add(i))
      return fmt::format("buffers {} at {} and {} at {} share bytes", *j, offsets[*j], i, offsets[i]);
  }
  return std::nullopt;
}

std::vector<std::uint64_t> highest_ends(const Problem& problem, const Packing& packing) {
  std::vector<std::uint64_t> ends(packing.arenas.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (!lives(buffer)) continue;
    std::uint64_t& end = ends[buffer.arena];
    end = std::max(end, packing.offsets[i] + buffer.size);
  }
  return ends;
}

}  // namespace

bool alive_together(const Buffer& a, const Buffer& b) {
  std::optional<std::uint64_t> tick = 0;
  while (true) {
    const auto x = alive_from(a, *tick);
    if (!x) return false;
    const auto y = alive_from(b, *x);
    if (!y) return false;
    if (*x == *y) return true;
    tick = y;
  }
}

std::optional<std::string> find_fault(const Problem& problem, Offsets offsets, Capacity capacity) {
  if (offsets.size() != problem.buffers.size())
    return fmt::format("{} offsets for {} buffers", offsets.size(), problem.buffers.size());
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (auto fault = fault_of(problem.buffers[i], i, offsets[i], capacity)) return fault;
  if (auto fault = group_apart(problem, offsets)) return fault;
  return shared_byte(problem, offsets);
}

std::optional<std::string> packing_fault(const Problem& problem, const Packing& packing, Capacity capacity) {
  if (packing.arenas.size() != arena_count(problem))
    return fmt::format("{} arenas of {}", packing.arenas.size(), arena_count(problem));
  const bool feasible = packing.verdict == Verdict::feasible;
  if (packing.height() == ArenaPacking::kNotPacked)
    return feasible ? std::optional<std::string>("called feasible, but not packed") : std::nullopt;
  if (auto fault = find_fault(problem, packing.offsets)) return fault;
  const std::vector<std::uint64_t> ends = highest_ends(problem, packing);
  for (std::uint32_t i = 0; i < packing.arenas.size(); ++i) {
    const ArenaPacking& arena = packing.arenas[i];
    if (arena.height != ends[i])
      return fmt::format("arena {} has height {}, its highest end is {}", i, arena.height, ends[i]);
    if (arena.height < arena.lower_bound)
      return fmt::format("arena {} has height {}, below its bound {}", i, arena.height, arena.lower_bound);
    if (arena.proven_optimal && arena.height != arena.lower_bound)
      return fmt::format("arena {} is called optimal at {} with bound {}", i, arena.height,
                         arena.lower_bound);
    const auto limit = limit_of(capacity, i);
    if (feasible && limit && arena.height > *limit)
      return fmt::format("arena {} is called feasible at {}, past {}", i, arena.height, *limit);
  }
  return std::nullopt;
}

}  // namespace loadline::packing
