// Exact packing by many short attempts: floor searches with different preferences, on several threads.
#pragma once

#include "core/packing/floor_search.h"

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace loadline {

// Attempt number `index`: rotates through four strategies, with random noise after the first use of each. Its
// node limit follows Luby's sequence (Luby, Sinclair, Zuckerman 1993): run times have a heavy tail, so a new
// attempt often pays more than a longer one.
Attempt floor_attempt(std::uint64_t index, std::uint32_t boxes, std::uint64_t seed);

// Bytes of the lists of one floor search of the model (one per thread). Learnt states and the undo log come
// on top, at most 64 MiB each.
std::uint64_t floor_search_bytes(const SectionModel& model);

// Attempts at one capacity, in lanes with one thread and one search each. The first lane does the same as it
// would alone; the others skip the attempts without noise and use seeds of their own. If several lanes
// finish, the attempt with the lowest number counts (ties: the lowest lane). So the answer depends only on
// seed and thread count, unless the clock ends the run.
class FloorPortfolio {
 public:
  // The model must outlive the portfolio; fits_in<std::int64_t>(model, capacity) must hold.
  FloorPortfolio(const SectionModel& model, std::uint64_t capacity, unsigned threads, std::uint64_t seed);

  // Each lane continues up to attempt number `attempts`. Returns `gave_up` if no attempt finished.
  SearchEnd run(std::uint64_t attempts, const StopRule& rule);
  // The solution, by box; valid after `solved`.
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  std::uint64_t nodes() const;
  // Memory in use now.
  std::uint64_t bytes() const;

 private:
  using Lane = std::variant<FloorSearch<std::int32_t>, FloorSearch<std::int64_t>>;
  Attempt attempt_of(std::size_t lane, std::uint64_t index) const;

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::uint64_t done_ = 0;
  std::uint32_t boxes_;
  std::uint64_t list_bytes_;  // of each lane
  std::uint64_t seed_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace loadline
