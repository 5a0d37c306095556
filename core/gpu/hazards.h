// Which recorded copies touch the same bytes, so that a barrier goes exactly where one is needed.
// No Vulkan in it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

namespace loadline::gpu {

// A set of bytes as disjoint ranges that do not touch.
class RangeSet {
 public:
  void insert(std::uint64_t begin, std::uint64_t end);
  bool overlaps(std::uint64_t begin, std::uint64_t end) const;
  void clear() { ranges_.clear(); }
  std::size_t size() const { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end
};

// Copies since the last barrier. A buffer is any number that stands for it.
class HazardTracker {
 public:
  struct Range {
    std::uint64_t buffer = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // Whether the copy reads what one of them writes, or writes what one of them reads or writes.
  bool conflicts(const Range& from, const Range& to) const;
  void add(const Range& from, const Range& to);
  void clear();

 private:
  std::map<std::uint64_t, RangeSet> reads_, writes_;
};

// What the device still does with one mapped block, for a host that wants to touch it.
class PendingUses {
 public:
  // `value` is the timeline value that ends the use; values never decrease.
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t value, bool writes);
  // The value to wait for before the host reads or writes [begin, end); 0 = none.
  std::uint64_t before_read(std::uint64_t begin, std::uint64_t end) const;
  std::uint64_t before_write(std::uint64_t begin, std::uint64_t end) const;
  // Forgets what is complete.
  void complete(std::uint64_t value);
  bool empty() const { return batches_.empty(); }

 private:
  struct Batch {
    std::uint64_t value = 0;
    RangeSet reads, writes;
  };
  std::deque<Batch> batches_;  // by increasing value
};

}  // namespace loadline::gpu
