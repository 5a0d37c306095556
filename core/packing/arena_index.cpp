// Interval sets in a segment tree over the sections.
#include "core/packing/arena_index.h"

#include "core/base/checked_arithmetic.h"

#include <bit>

namespace loadline {

ArenaIndex::ArenaIndex(const SectionModel& model)
    : model_(model), obstacles_(model.obstacles), nodes_(2 * std::bit_ceil(std::size_t{model.sections})) {
  // in ascending order each insertion goes to the end of its sets
  std::ranges::sort(obstacles_, {}, &SectionModel::Obstacle::offset);
  take_obstacles();
}

void ArenaIndex::clear() {
  for (Node& node : nodes_) {
    node.whole.clear();
    node.parts.clear();
  }
  take_obstacles();
}

void ArenaIndex::take_obstacles() {
  for (const auto& obstacle : obstacles_)
    add(1, 0, static_cast<std::uint32_t>(nodes_.size() / 2), obstacle.range,
        {obstacle.offset, obstacle.offset + obstacle.range.size});
}

// `node` covers sections [first, last).
void ArenaIndex::add(std::size_t node, std::uint32_t first, std::uint32_t last, const SectionRange& range,
                     const Interval& taken) {
  if (range.first <= first && last <= range.last) {
    nodes_[node].whole.add(taken);
    return;
  }
  nodes_[node].parts.add(taken);
  const std::uint32_t middle = first + (last - first) / 2;
  if (range.first < middle) add(2 * node, first, middle, range, taken);
  if (middle < range.last) add(2 * node + 1, middle, last, range, taken);
}

void ArenaIndex::meet(const IntervalSet& taken, std::uint64_t size) {
  const std::vector<Interval>& parts = taken.parts();
  if (!parts.empty()) taken_.push_back({parts.data(), parts.data() + parts.size(), size});
}

void ArenaIndex::collect(std::size_t node, std::uint32_t first, std::uint32_t last,
                         const SectionRange& range) {
  meet(nodes_[node].whole, range.size);
  if (range.first <= first && last <= range.last) {
    meet(nodes_[node].parts, range.size);
    return;
  }
  const std::uint32_t middle = first + (last - first) / 2;
  if (range.first < middle) collect(2 * node, first, middle, range);
  if (middle < range.last) collect(2 * node + 1, middle, last, range);
}

// Each node in turn moves the start above the intervals that block it there, until all nodes agree.
ArenaIndex::Gap ArenaIndex::next_gap(std::uint64_t start, std::uint64_t alignment) {
  Gap gap{start};
  std::size_t agree = 0;
  for (std::size_t i = 0; agree < taken_.size(); i = i + 1 == taken_.size() ? 0 : i + 1) {
    Taken& taken = taken_[i];
    const std::uint64_t before = start;
    while (true) {
      while (taken.next != taken.end && taken.next->to <= start) ++taken.next;
      if (taken.next == taken.end || start + taken.size <= taken.next->from) break;
      start = alignment == 1 ? taken.next->to : align_up(taken.next->to, alignment);
    }
    if (start != before) gap = {start}, agree = 0;
    ++agree;
    if (taken.next != taken.end && taken.next->from - taken.size - start < gap.spare)
      gap.spare = taken.next->from - taken.size - start, gap.behind = taken.next->to;
  }
  return gap;
}

std::uint64_t ArenaIndex::find(std::uint32_t box, Fit fit) {
  taken_.clear();
  for (const SectionRange& range : model_.ranges_of(box))
    collect(1, 0, static_cast<std::uint32_t>(nodes_.size() / 2), range);
  const std::uint64_t alignment = model_.alignment_of(box);
  Gap best = next_gap(0, alignment);
  if (fit == Fit::first) return best.from;
  for (Gap gap = best; gap.spare < UINT64_MAX;) {
    gap = next_gap(alignment == 1 ? gap.behind : align_up(gap.behind, alignment), alignment);
    if (gap.spare < best.spare) best = gap;
  }
  return best.from;
}

void ArenaIndex::take(std::uint32_t box, std::uint64_t offset) {
  for (const SectionRange& range : model_.ranges_of(box))
    add(1, 0, static_cast<std::uint32_t>(nodes_.size() / 2), range, {offset, offset + range.size});
}

}  // namespace loadline
