// Keeps the holes in two trees, by place and by size.
#include "core/allocators/holes.h"

#include <iterator>

namespace loadline {

std::optional<Hole> Holes::take(std::uint64_t bytes, Of equals) {
  auto best = by_size_.lower_bound({bytes, Place{}});
  if (best == by_size_.end()) return std::nullopt;
  constexpr Place kLast = {UINT64_MAX, UINT64_MAX};
  if (equals == Of::last) best = std::prev(by_size_.upper_bound({best->first, kLast}));
  const Hole hole = {best->second, best->first};
  remove(hole.place);
  return hole;
}

Hole Holes::add(Hole hole) {
  const auto after = by_place_.find({hole.place.segment, hole.end()});
  if (after != by_place_.end()) {
    hole.bytes += after->second;
    remove(after->first);
  }
  const auto behind = by_place_.lower_bound(hole.place);
  if (behind != by_place_.begin()) {
    const Hole before = {std::prev(behind)->first, std::prev(behind)->second};
    if (before.place.segment == hole.place.segment && before.end() == hole.place.offset) {
      remove(before.place);
      hole = {before.place, before.bytes + hole.bytes};
    }
  }
  by_place_.emplace(hole.place, hole.bytes);
  by_size_.emplace(hole.bytes, hole.place);
  return hole;
}

void Holes::remove(const Place& place) {
  const auto hole = by_place_.find(place);
  by_size_.erase({hole->second, hole->first});
  by_place_.erase(hole);
}

}  // namespace loadline
