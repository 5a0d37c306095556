// Exact packing by many short attempts: floor searches that differ in what they prefer, on several threads.
#pragma once

#include "core/packing/floor_search.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace loadline {

// The i-th of all attempts: four ways to choose in turn, preferences shaken after the first of each, and as
// many nodes as Luby's sequence says (Luby, Sinclair, Zuckerman 1993): run times have a heavy tail, a new
// attempt is often worth more than patience.
Attempt floor_attempt(std::uint64_t index, std::uint32_t boxes, std::uint64_t seed);

// Bytes of the lists of a floor search of the model, per thread. What it learns and what undoing needs come
// on top: at most 64 MiB each.
std::uint64_t floor_search_bytes(const SectionModel& model);

// Attempts at one capacity, in lanes of a thread and a search each. The first lane does what it would do
// alone, the others begin behind the plain attempts with seeds of their own; of those that end, the one with
// the least number in its lane counts (the first lane's of equals), so the answer hangs on seed and thread
// count alone, unless the clock ends it.
class FloorPortfolio {
 public:
  // The model outlives the portfolio; fits_in<std::int64_t>(model, capacity) must hold.
  FloorPortfolio(const SectionModel& model, std::uint64_t capacity, unsigned threads, std::uint64_t seed);
  ~FloorPortfolio();
  FloorPortfolio(const FloorPortfolio&) = delete;
  FloorPortfolio& operator=(const FloorPortfolio&) = delete;

  // Each lane goes on up to its attempt number `attempts`. `gave_up`: none of them ended.
  SearchEnd run(std::uint64_t attempts, const StopRule& rule);
  // After `solved`, by box.
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  std::uint64_t nodes() const;
  // What it takes now.
  std::uint64_t bytes() const;

 private:
  class Lane;
  Attempt attempt_of(std::size_t lane, std::uint64_t index) const;
  template <typename T>
  class LaneOf;

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::uint64_t done_ = 0;
  std::uint32_t boxes_;
  std::uint64_t list_bytes_;  // of each lane
  std::uint64_t seed_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace loadline
