// Packing by trying every offset that matters: slow, short and independent of the solver.
#pragma once

#include "core/packing/pack.h"
#include "core/packing/problem.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace loadline::tests {

// Ascending: what any of the buffers can add up to. Without alignments and pins every packing sinks until
// each buffer rests on the ground or on one that meets it: then offsets and heights are such sums.
inline std::vector<std::uint64_t> sums_of_sizes(const packing::Problem& problem) {
  std::set<std::uint64_t> sums = {0};
  for (const packing::Buffer& buffer : problem.buffers) {
    const std::vector<std::uint64_t> before(sums.begin(), sums.end());
    for (const std::uint64_t sum : before) sums.insert(sum + buffer.size);
  }
  return {sums.begin(), sums.end()};
}

inline std::vector<std::uint64_t> numbers_to(std::uint64_t most) {
  std::vector<std::uint64_t> numbers(most + 1);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return numbers;
}

// Gives one buffer after the other every offset of `places`, or its pin; every arena has the same capacity.
class EveryOffset {
 public:
  EveryOffset(const packing::Problem& problem, std::vector<std::uint64_t> places)
      : buffers_(problem.buffers),
        places_(std::move(places)),
        offsets_(buffers_.size()),
        meet_(buffers_.size() * buffers_.size()) {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      for (std::size_t j = 0; j < buffers_.size(); ++j)
        meet_[i * buffers_.size() + j] = buffers_[i].arena == buffers_[j].arena && buffers_[i].size > 0 &&
                                         buffers_[j].size > 0 &&
                                         packing::alive_together(buffers_[i], buffers_[j]);
  }
  // Whether nothing has to end past `capacity`.
  bool fit(std::uint64_t capacity) { return place_rest(capacity, 0); }

 private:
  bool clashes(std::size_t at, std::uint64_t offset) const {
    const packing::Buffer& buffer = buffers_[at];
    for (std::size_t i = 0; i < at; ++i) {
      if (buffer.group != packing::kNoGroup && buffer.group == buffers_[i].group) {
        if (offsets_[i] != offset) return true;
      } else if (meet_[at * buffers_.size() + i] && offset < offsets_[i] + buffers_[i].size &&
                 offsets_[i] < offset + buffer.size) {
        return true;
      }
    }
    return false;
  }

  bool place_rest(std::uint64_t capacity, std::size_t at) {
    if (at == buffers_.size()) return true;
    const packing::Buffer& buffer = buffers_[at];
    const bool matters = meet_[at * buffers_.size() + at];
    const std::span<const std::uint64_t> places =
        buffer.offset ? std::span(&*buffer.offset, 1) : std::span<const std::uint64_t>(places_);
    for (const std::uint64_t offset : places) {
      if (matters ? offset + buffer.size > capacity : !buffer.offset && offset > capacity) break;
      if (offset % buffer.alignment != 0 || clashes(at, offset)) continue;
      offsets_[at] = offset;
      if (place_rest(capacity, at + 1)) return true;
    }
    return false;
  }

  const std::vector<packing::Buffer>& buffers_;
  std::vector<std::uint64_t> places_;
  std::vector<std::uint64_t> offsets_;
  std::vector<char> meet_;
};

// The most bytes that are alive at one tick in one arena; of a group the largest counts.
inline std::uint64_t most_alive(const packing::Problem& problem) {
  std::uint64_t most = 0;
  for (const packing::Buffer& at : problem.buffers)
    for (std::uint64_t tick = at.lower; tick < at.upper; ++tick) {
      const packing::Buffer now{.lower = tick, .upper = tick + 1, .size = 1, .arena = at.arena};
      std::map<std::uint32_t, std::uint64_t> groups;
      std::uint64_t sum = 0;
      for (const packing::Buffer& buffer : problem.buffers) {
        if (buffer.arena != now.arena || !packing::alive_together(buffer, now)) continue;
        if (buffer.group == packing::kNoGroup)
          sum += buffer.size;
        else
          groups[buffer.group] = std::max(groups[buffer.group], buffer.size);
      }
      for (const auto& [group, size] : groups) sum += size;
      most = std::max(most, sum);
    }
  return most;
}

// The least capacity among `places` at which the problem has a packing with offsets among them.
inline std::optional<std::uint64_t> least_capacity(const packing::Problem& problem,
                                                   const std::vector<std::uint64_t>& places) {
  EveryOffset every(problem, places);
  for (auto at = std::lower_bound(places.begin(), places.end(), most_alive(problem)); at != places.end();
       ++at)
    if (every.fit(*at)) return *at;
  return std::nullopt;
}

}  // namespace loadline::tests
