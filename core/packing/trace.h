// Records packing step by step, for users who want to see why greedy orders fail where search succeeds.
#pragma once

#include "core/packing/greedy.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace loadline::packing {

enum class PackingEvent : std::uint8_t {
  placed,
  taken_back,
  too_high  // placed, and the first buffer to end above the capacity
};

struct PackingStep {
  std::uint32_t buffer = 0;
  std::uint64_t offset = 0;
  PackingEvent event = PackingEvent::placed;
  bool operator==(const PackingStep&) const = default;
};

enum class TraceEnd : std::uint8_t {
  packed,      // all buffers are placed within the capacity
  too_high,    // greedy: all buffers are placed, but not within the capacity
  infeasible,  // search: proved that no packing within the capacity exists
  gave_up      // time ran out, or search used all its attempts
};

// Steps for the buffers of one arena. Pinned buffers are placed first. Buffers without bytes or never alive
// are left out. Members of a group follow one another, at one offset.
struct PackingTrace {
  std::vector<PackingStep> steps = {};
  TraceEnd end = TraceEnd::packed;
  std::uint64_t height = 0;    // of the buffers placed at the end
  std::size_t shortened = 0;   // number of steps left out: their result is placed at once instead
  std::uint64_t attempts = 0;  // of search, over all components; only the last attempt of each is shown
};

// Places buffers by the greedy rule, component by component, until all are placed or `stop` is due. Throws as
// normal_form(), and Error{limit} if an end would exceed 2^62.
PackingTrace greedy_trace(const Problem& problem, const GreedyRule& rule, std::uint64_t capacity,
                          std::uint32_t arena = 0, const StopRule& stop = {});

// Records the last attempt of exact search for each component: its last `most_steps` steps, after the
// placements that were in force before them. Makes at most `attempts` attempts per component. Throws as
// normal_form(), and Error{limit} for a problem too large for exact search.
struct SearchTraceOptions {
  std::size_t most_steps = 4096;
  std::uint64_t attempts = 256;
  std::uint64_t seed = 1;
  std::uint32_t arena = 0;
};
PackingTrace search_trace(const Problem& problem, std::uint64_t capacity, const SearchTraceOptions& options,
                          const StopRule& rule = {});

// The offsets placed after the first `steps` steps, by buffer.
std::vector<std::optional<std::uint64_t>> placed_after(const PackingTrace& trace, std::size_t buffers,
                                                       std::size_t steps);

// Ten buffers that no greedy rule packs into kTeachingCapacity; exact search does, after it undoes some
// placements.
inline constexpr std::uint64_t kTeachingCapacity = 1048576;
Problem teaching_problem();

}  // namespace loadline::packing
