// Interval sets in a segment tree over the sections.
#include "core/packing/arena_index.h"

#include "core/base/checked.h"

#include <bit>

namespace loadline {

ArenaIndex::ArenaIndex(const SectionModel& model)
    : model_(model), nodes_(2 * std::bit_ceil(std::size_t{model.sections})) {
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
  for (const auto& obstacle : model_.obstacles)
    add(1, 0, static_cast<std::uint32_t>(nodes_.size() / 2), obstacle.range,
        {obstacle.offset, obstacle.offset + obstacle.range.size});
}

// The node stands for sections [first, last).
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

void ArenaIndex::bar(const IntervalSet& taken, std::uint64_t size) {
  for (const Interval& part : taken.parts())
    barred_.push_back({part.from >= size ? part.from - size + 1 : 0, part.to});
}

void ArenaIndex::collect(std::size_t node, std::uint32_t first, std::uint32_t last,
                         const SectionRange& range) {
  bar(nodes_[node].whole, range.size);
  if (range.first <= first && last <= range.last) {
    bar(nodes_[node].parts, range.size);
    return;
  }
  const std::uint32_t middle = first + (last - first) / 2;
  if (range.first < middle) collect(2 * node, first, middle, range);
  if (middle < range.last) collect(2 * node + 1, middle, last, range);
}

std::uint64_t ArenaIndex::find(std::uint32_t box, Fit fit) {
  barred_.clear();
  for (const SectionRange& range : model_.ranges_of(box))
    collect(1, 0, static_cast<std::uint32_t>(nodes_.size() / 2), range);
  std::sort(barred_.begin(), barred_.end(),
            [](const Interval& a, const Interval& b) { return a.from < b.from; });
  const std::uint64_t alignment = model_.alignment_of(box);
  const auto aligned = [&](std::uint64_t at) { return alignment == 1 ? at : align_up(at, alignment); };
  std::uint64_t start = 0, best = 0, least = UINT64_MAX;
  for (const Interval& bar : barred_) {
    if (start < bar.from) {
      const std::uint64_t spare = bar.from - 1 - start;
      if (fit == Fit::first) return start;
      if (spare < least) least = spare, best = start;
    }
    if (bar.to > start) start = aligned(bar.to);
  }
  return least < UINT64_MAX ? best : start;
}

void ArenaIndex::take(std::uint32_t box, std::uint64_t offset) {
  for (const SectionRange& range : model_.ranges_of(box))
    add(1, 0, static_cast<std::uint32_t>(nodes_.size() / 2), range, {offset, offset + range.size});
}

}  // namespace loadline
