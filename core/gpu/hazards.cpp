// Interval sets: per buffer for recorded copies, per batch for pending uses.
#include "core/gpu/hazards.h"

#include <algorithm>
#include <iterator>

namespace loadline::gpu {

void RangeSet::insert(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
  while (at != ranges_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ranges_.erase(at);
  }
  ranges_.emplace(begin, end);
}

bool RangeSet::overlaps(std::uint64_t begin, std::uint64_t end) const {
  if (begin >= end) return false;
  const auto after = ranges_.lower_bound(end);  // the first range that starts at or after `end`
  return after != ranges_.begin() && std::prev(after)->second > begin;
}

bool HazardTracker::conflicts(const Range& from, const Range& to) const {
  const auto touches = [](const std::map<std::uint64_t, RangeSet>& sets, const Range& range) {
    const auto found = sets.find(range.buffer);
    return found != sets.end() && found->second.overlaps(range.begin, range.end);
  };
  return touches(writes_, from) || touches(writes_, to) || touches(reads_, to);
}

void HazardTracker::add(const Range& from, const Range& to) {
  reads_[from.buffer].insert(from.begin, from.end);
  writes_[to.buffer].insert(to.begin, to.end);
}

void HazardTracker::clear() {
  reads_.clear();
  writes_.clear();
}

void PendingUses::add(std::uint64_t begin, std::uint64_t end, std::uint64_t value, bool writes) {
  if (batches_.empty() || batches_.back().value != value) {
    batches_.emplace_back();
    batches_.back().value = value;
  }
  (writes ? batches_.back().writes : batches_.back().reads).insert(begin, end);
}

std::uint64_t PendingUses::before_read(std::uint64_t begin, std::uint64_t end) const {
  const auto last = std::find_if(batches_.rbegin(), batches_.rend(),
                                 [&](const Batch& batch) { return batch.writes.overlaps(begin, end); });
  return last == batches_.rend() ? 0 : last->value;
}

std::uint64_t PendingUses::before_write(std::uint64_t begin, std::uint64_t end) const {
  const auto last = std::find_if(batches_.rbegin(), batches_.rend(), [&](const Batch& batch) {
    return batch.writes.overlaps(begin, end) || batch.reads.overlaps(begin, end);
  });
  return last == batches_.rend() ? 0 : last->value;
}

void PendingUses::complete(std::uint64_t value) {
  const auto first = std::ranges::find_if(batches_, [&](const Batch& batch) { return batch.value > value; });
  batches_.erase(batches_.begin(), first);
}

}  // namespace loadline::gpu
