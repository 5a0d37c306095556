// Packing by trying every offset: slow, short and independent of the solver.
#pragma once

#include "core/packing/problem.h"
#include "core/packing/validator.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace loadline {

// Gives one buffer after the other every offset.
class EveryOffset {
 public:
  explicit EveryOffset(const Problem& problem)
      : buffers_(problem.buffers), offsets_(buffers_.size()), meet_(buffers_.size() * buffers_.size()) {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      for (std::size_t j = 0; j < buffers_.size(); ++j)
        meet_[i * buffers_.size() + j] =
            buffers_[i].size > 0 && buffers_[j].size > 0 && alive_together(buffers_[i], buffers_[j]);
  }
  // Whether nothing has to end past `capacity`.
  bool fit(std::uint64_t capacity) { return place_rest(capacity, 0); }

 private:
  bool clashes(std::size_t at, std::uint64_t offset) const {
    const Buffer& buffer = buffers_[at];
    for (std::size_t i = 0; i < at; ++i) {
      if (buffer.group != kNoGroup && buffer.group == buffers_[i].group) {
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
    const Buffer& buffer = buffers_[at];
    const bool matters = meet_[at * buffers_.size() + at];
    const std::uint64_t first = buffer.offset.value_or(0), last = buffer.offset.value_or(capacity);
    for (std::uint64_t offset = first; offset <= last; ++offset) {
      if (matters && offset + buffer.size > capacity) break;
      if (offset % buffer.alignment != 0 || clashes(at, offset)) continue;
      offsets_[at] = offset;
      if (place_rest(capacity, at + 1)) return true;
    }
    return false;
  }

  const std::vector<Buffer>& buffers_;
  std::vector<std::uint64_t> offsets_;
  std::vector<char> meet_;
};

// The most bytes that are alive at one tick; of a group the largest counts.
inline std::uint64_t most_alive(const Problem& problem) {
  std::uint64_t most = 0;
  for (const Buffer& at : problem.buffers)
    for (std::uint64_t tick = at.lower; tick < at.upper; ++tick) {
      const Buffer now{.lower = tick, .upper = tick + 1, .size = 1};
      std::map<std::uint32_t, std::uint64_t> groups;
      std::uint64_t sum = 0;
      for (const Buffer& buffer : problem.buffers) {
        if (!alive_together(buffer, now)) continue;
        if (buffer.group == kNoGroup)
          sum += buffer.size;
        else
          groups[buffer.group] = std::max(groups[buffer.group], buffer.size);
      }
      for (const auto& [group, size] : groups) sum += size;
      most = std::max(most, sum);
    }
  return most;
}

// The least capacity, at most `most`, at which the problem has a packing.
inline std::optional<std::uint64_t> least_capacity(const Problem& problem, std::uint64_t most) {
  EveryOffset every(problem);
  for (std::uint64_t capacity = most_alive(problem); capacity <= most; ++capacity)
    if (every.fit(capacity)) return capacity;
  return std::nullopt;
}

}  // namespace loadline
