// A set of disjoint intervals that merges intervals as they are added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace loadline {

// [from, to), from < to.
struct Interval {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

// The union of all added intervals, in ascending order; touching intervals are merged.
class IntervalSet {
 public:
  void add(const Interval& interval) {
    const auto begin = std::ranges::lower_bound(parts_, interval.from, {}, &Interval::to);
    auto end = begin;
    Interval sum = interval;
    for (; end != parts_.end() && end->from <= interval.to; ++end)
      sum = {std::min(sum.from, end->from), std::max(sum.to, end->to)};
    if (begin == end) {
      parts_.insert(begin, sum);
    } else {
      *begin = sum;
      parts_.erase(begin + 1, end);
    }
  }
  void clear() { parts_.clear(); }
  const std::vector<Interval>& parts() const { return parts_; }

 private:
  std::vector<Interval> parts_;
};

}  // namespace loadline
