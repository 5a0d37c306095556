// Packing as it happens, step by step: for who wants to see why greedy fails where search succeeds.
#pragma once

#include "core/packing/greedy.h"
#include "core/packing/problem.h"
#include "core/packing/stop_rule.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace loadline {

enum class PackingEvent : std::uint8_t {
  placed,
  taken_back,
  too_high  // placed, the first that ends above the capacity
};

struct PackingStep {
  std::uint32_t buffer = 0;
  std::uint64_t offset = 0;
  PackingEvent event = PackingEvent::placed;
  bool operator==(const PackingStep&) const = default;
};

enum class TraceEnd : std::uint8_t {
  packed,      // everything is placed within the capacity
  too_high,    // greedy: everything is placed, but not within the capacity
  infeasible,  // search: proved that there is no packing of that capacity
  gave_up      // the time was over, or the attempts of search
};

// Buffers of one arena. Those that are pinned are placed first; those that are never alive, or have no bytes,
// are left out; members of a group follow one another to one offset.
struct PackingTrace {
  std::vector<PackingStep> steps = {};
  TraceEnd end = TraceEnd::packed;
  std::uint64_t height = 0;    // of what is placed at the end
  std::size_t shortened = 0;   // steps that are not shown: what they came to is placed at once instead
  std::uint64_t attempts = 0;  // of search, over all components; the last of each is shown
};

// Buffer by buffer in the order of the rule, each where the rule puts it, to the end, or component by
// component until `stop` is due. Throws as normal_form(), and Error{limit} where something would end above
// 2^62.
PackingTrace greedy_trace(const Problem& problem, const GreedyRule& rule, std::uint64_t capacity,
                          std::uint32_t arena = 0, const StopRule& stop = {});

// What the exact search tries in its last attempt, component by component: at most `most_steps` steps and the
// placements that they began with. At most `attempts` attempts per component. Throws as normal_form(), and
// Error{limit} for a problem that is too large for exact search.
struct SearchTraceOptions {
  std::size_t most_steps = 4096;
  std::uint64_t attempts = 256;
  std::uint64_t seed = 1;
  std::uint32_t arena = 0;
};
PackingTrace search_trace(const Problem& problem, std::uint64_t capacity, const SearchTraceOptions& options,
                          const StopRule& rule = {});

// What is placed after so many steps: by buffer.
std::vector<std::optional<std::uint64_t>> placed_after(const PackingTrace& trace, std::size_t buffers,
                                                       std::size_t steps);

// Ten buffers that no greedy rule packs into kTeachingCapacity; search does, after taking some back.
inline constexpr std::uint64_t kTeachingCapacity = 1048576;
Problem teaching_problem();

}  // namespace loadline
