// Finds recorded copies that touch the same bytes, so that barriers stand only where they are needed.
// Contains no Vulkan.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace loadline::gpu {

// A set of bytes, stored as disjoint ranges; ranges that touch are merged.
class RangeSet {
 public:
  void insert(std::uint64_t begin, std::uint64_t end);
  bool overlaps(std::uint64_t begin, std::uint64_t end) const;
  void clear() { ranges_.clear(); }
  std::size_t size() const { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end
};

// The copies recorded since the last barrier. Any number may identify a buffer.
class HazardTracker {
 public:
  struct Range {
    std::uint64_t buffer = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // Whether the copy reads bytes that an added copy writes, or writes bytes that one reads or writes.
  bool conflicts(const Range& from, const Range& to) const;
  void add(const Range& from, const Range& to);
  void clear();

 private:
  std::map<std::uint64_t, RangeSet> reads_, writes_;
};

// Pending device accesses to one mapped block. The host asks it before touching the block.
class PendingUses {
 public:
  // The device's access is complete at timeline value `value`. Values never decrease.
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t value, bool writes);
  // The timeline value to wait for before the host reads or writes [begin, end); 0: none.
  std::uint64_t before_read(std::uint64_t begin, std::uint64_t end) const;
  std::uint64_t before_write(std::uint64_t begin, std::uint64_t end) const;
  // Forgets all accesses up to `value`, which are complete.
  void complete(std::uint64_t value);
  bool empty() const { return batches_.empty(); }

 private:
  struct Batch {
    std::uint64_t value = 0;
    RangeSet reads, writes;
  };
  std::vector<Batch> batches_;  // by increasing value; few, and an empty vector takes no memory
};

}  // namespace loadline::gpu
