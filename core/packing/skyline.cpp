// Places, lifts and undoes; each call takes time proportional to its changes.
#include "core/packing/skyline.h"

#include "core/packing/search_control.h"

#include <algorithm>
#include <utility>

namespace loadline::packing {

template <typename T>
Skyline<T>::Skyline(SectionModel model, T capacity)
    : model_(std::move(model)),
      capacity_(capacity),
      free_(model_.alignments.empty() && model_.obstacles.empty()),
      whole_(model_.ranges.size() == model_.box_count()) {
  const std::uint32_t count = model_.box_count(), sections = model_.sections;
  starts_.assign(count, 0);
  waits_.assign(count, 1);
  hashes_.resize(count);
  stacks_.resize(sections);
  listed_.assign(sections, 1);
  next_.resize(sections);
  previous_.resize(sections);
  for (std::uint32_t section = 0; section < sections; ++section) {
    next_[section] = section + 1 < sections ? section + 1 : kEnd;
    previous_[section] = section > 0 ? section - 1 : kEnd;
  }
  index_boxes();
  index_obstacles();
  for (std::uint32_t box = 0; box < count; ++box) {
    starts_[box] = fitting(box, 0);
    rehash(box);
  }
  for (std::uint32_t section = 0; section < sections; ++section) measure(section);
}

template <typename T>
void Skyline<T>::index_boxes() {
  const std::uint32_t sections = model_.sections;
  waiting_.assign(sections, 0);
  crossing_.assign(sections, 0);
  beginning_.assign(sections + 1, 0);
  std::size_t places = 0, longest = 0;
  for (std::uint32_t box = 0; box < model_.box_count(); ++box) {
    slots_.push_back(places);
    ++beginning_[model_.first_of(box) + 1];
    for (const SectionRange& range : model_.ranges_of(box)) {
      for (std::uint32_t section = range.first; section < range.last; ++section) ++waiting_[section];
      places += range.last - range.first;
    }
    for (std::uint32_t section = model_.first_of(box); section + 1 < model_.last_of(box); ++section)
      ++crossing_[section];
  }
  rows_.assign(sections + 1, 0);
  for (std::uint32_t section = 0; section < sections; ++section) {
    beginning_[section + 1] += beginning_[section];
    rows_[section + 1] = rows_[section] + waiting_[section];
    longest = std::max<std::size_t>(longest, waiting_[section]);
  }
  ids_.assign(places + kStackPadding, 0);
  row_sizes_.assign(places + kStackPadding, 0);
  places_.resize(places);
  scratch_.resize(longest + kStackPadding);
  std::vector<std::uint32_t> fill(rows_.begin(), rows_.end());
  std::size_t place = 0;
  for (std::uint32_t box = 0; box < model_.box_count(); ++box)
    for (const SectionRange& range : model_.ranges_of(box))
      for (std::uint32_t section = range.first; section < range.last; ++section) {
        const std::uint32_t at = fill[section]++;
        ids_[at] = box;
        row_sizes_[at] = static_cast<T>(range.size);
        places_[place++] = at;
      }
}

// Blocked starts of each box, sorted by their ends: starts at which one of its ranges would overlap an
// obstacle.
template <typename T>
void Skyline<T>::index_obstacles() {
  if (model_.obstacles.empty()) return;
  obstacles_.resize(model_.sections);
  for (std::uint32_t i = 0; i < model_.obstacles.size(); ++i) {
    const SectionRange& range = model_.obstacles[i].range;
    for (std::uint32_t section = range.first; section < range.last; ++section)
      obstacles_[section].push_back(i);
  }
  for (std::uint32_t box = 0; box < model_.box_count(); ++box) {
    std::vector<Barred>& bars = bars_.emplace_back();
    for (const SectionRange& range : model_.ranges_of(box))
      for (const auto& obstacle : model_.obstacles) {
        if (obstacle.range.last <= range.first || range.last <= obstacle.range.first) continue;
        const auto low = static_cast<T>(obstacle.offset);
        bars.push_back({static_cast<T>(low - static_cast<T>(range.size)),
                        static_cast<T>(low + static_cast<T>(obstacle.range.size))});
      }
    std::ranges::sort(
        bars, [](const Barred& a, const Barred& b) { return a.to != b.to ? a.to < b.to : a.from < b.from; });
  }
}

template <typename T>
T Skyline<T>::fitting(std::uint32_t box, T level) const {
  if (free_) return level;
  const auto alignment = static_cast<T>(model_.alignment_of(box));
  const auto aligned = [&](T at) {
    const T rest = at % alignment;
    return rest == 0 ? at : static_cast<T>(at + (alignment - rest));
  };
  T at = aligned(level);
  if (bars_.empty()) return at;
  // bars are sorted by end: a start above one bar is above all earlier ones too
  for (const Barred& bar : bars_[box])
    if (bar.from < at && at < bar.to) at = aligned(bar.to);
  return at;
}

template <typename T>
void Skyline<T>::rehash(std::uint32_t box) {
  if (!waits_[box]) {
    hashes_[box] = {};
    return;
  }
  const std::uint64_t key =
      mixed(static_cast<std::uint64_t>(starts_[box])) + std::uint64_t{box} * 0x9e3779b97f4a7c15u;
  hashes_[box] = {mixed(key), mixed(key ^ 0x5851f42d4c957f2du)};
}

template <typename T>
typename Skyline<T>::Hash Skyline<T>::hash(std::uint32_t from, std::uint32_t to) const {
  // boxes that begin in an unlisted section also cover the next listed one
  const std::uint32_t first = previous_[from] == kEnd ? 0 : previous_[from] + 1;
  Hash sum;
  for (std::uint32_t box = beginning_[first]; box < beginning_[to + 1]; ++box) {
    sum.a ^= hashes_[box].a;
    sum.b ^= hashes_[box].b;
  }
  return sum;
}

template <typename T>
void Skyline<T>::lift(std::uint32_t box, T start) {
  lifts_.push_back({box, starts_[box]});
  starts_[box] = start;
  rehash(box);
}

// Swaps the box with the last waiting box of the section, so that undo only has to raise the count.
template <typename T>
void Skyline<T>::leave(std::uint32_t box, std::uint32_t section) {
  const std::uint32_t end = rows_[section] + --waiting_[section];
  std::uint32_t& place = places_[slot(box, section)];
  if (place == end) return;
  const std::uint32_t other = ids_[end];
  std::swap(ids_[place], ids_[end]);
  std::swap(row_sizes_[place], row_sizes_[end]);
  places_[slot(other, section)] = place;
  place = end;
}

template <typename T>
void Skyline<T>::close(std::uint32_t box) {
  std::uint32_t first = model_.first_of(box);
  while (!listed(first)) ++first;
  placements_.push_back({box, first, unlinked_.size()});
  waits_[box] = 0;
  rehash(box);
  const std::uint32_t end = model_.last_of(box);
  for (const SectionRange& range : model_.ranges_of(box))
    for (std::uint32_t section = std::max(first, range.first); section < range.last; section = next_[section])
      leave(box, section);
  for (std::uint32_t section = first; section < end; section = next_[section])
    if (next_[section] < end) --crossing_[section];
}

template <typename T>
void Skyline<T>::reopen(const Placement& placement) {
  while (unlinked_.size() > placement.unlinked) {
    relink(unlinked_.back());
    unlinked_.pop_back();
  }
  const std::uint32_t box = placement.box, end = model_.last_of(box);
  for (const SectionRange& range : model_.ranges_of(box))
    for (std::uint32_t section = std::max(placement.first, range.first); section < range.last;
         section = next_[section])
      ++waiting_[section];
  for (std::uint32_t section = placement.first; section < end; section = next_[section])
    if (next_[section] < end) ++crossing_[section];
  waits_[box] = 1;
  rehash(box);
}

// Only the sections at the ends of a placed box can have become redundant beside a neighbor.
template <typename T>
void Skyline<T>::merge_ends(std::uint32_t first, std::uint32_t last) {
  const std::uint32_t before = previous_[first];
  if (before != kEnd && crossing_[before] > 0 && crossing_[before] == waiting_[first]) {
    unlink(first, before);
    if (first == last) return;
  }
  if (crossing_[last] > 0 && crossing_[last] == waiting_[last]) unlink(last, kEnd);
}

template <typename T>
void Skyline<T>::unlink(std::uint32_t section, std::uint32_t crossing_of) {
  unlinked_.push_back({section, crossing_of, crossing_of == kEnd ? 0 : crossing_[crossing_of]});
  if (crossing_of != kEnd) crossing_[crossing_of] = crossing_[section];
  if (previous_[section] != kEnd) next_[previous_[section]] = next_[section];
  if (next_[section] != kEnd) previous_[next_[section]] = previous_[section];
  listed_[section] = 0;
}

template <typename T>
void Skyline<T>::relink(const Unlinked& gone) {
  if (previous_[gone.section] != kEnd) next_[previous_[gone.section]] = gone.section;
  if (next_[gone.section] != kEnd) previous_[next_[gone.section]] = gone.section;
  listed_[gone.section] = 1;
  if (gone.crossing_of != kEnd) crossing_[gone.crossing_of] = gone.crossing;
}

template <typename T>
void Skyline<T>::measure(std::uint32_t section) {
  if (waiting_[section] == 0) {
    stacks_[section] = {capacity_, 0, capacity_, 0};
    return;
  }
  const std::uint32_t row = rows_[section];
  stacks_[section] = stack_section(starts_.data(), ids_.data() + row, row_sizes_.data() + row,
                                   waiting_[section], scratch_.data());
  if (!obstacles_.empty() && !obstacles_[section].empty()) measure_around(section);
}

// Obstacles above the floor count as part of the stack.
template <typename T>
void Skyline<T>::measure_around(std::uint32_t section) {
  std::vector<std::pair<T, T>> parts;
  const std::uint32_t row = rows_[section];
  for (std::uint32_t i = 0; i < waiting_[section]; ++i)
    parts.emplace_back(starts_[ids_[row + i]], row_sizes_[row + i]);
  for (const std::uint32_t i : obstacles_[section]) {
    const auto& obstacle = model_.obstacles[i];
    const auto offset = static_cast<T>(obstacle.offset), size = static_cast<T>(obstacle.range.size);
    if (offset >= stacks_[section].floor) parts.emplace_back(offset, size);
  }
  std::ranges::sort(parts);
  T top = 0;
  for (const auto& [start, size] : parts) top = std::max(top, start) + size;
  stacks_[section].top = top;
}

template <typename T>
bool Skyline<T>::remeasure(Changed range) {
  std::uint32_t section = range.first;
  while (section < range.last && !listed(section)) ++section;
  for (; section < range.last; section = next_[section]) {
    figures_.push_back({section, stacks_[section]});
    measure(section);
    if (stacks_[section].top <= capacity_) continue;
    broken_ = section;
    return false;
  }
  return true;
}

template <typename T>
void Skyline<T>::raise_over(std::uint32_t section, T level, Changed& changed) {
  for (const std::uint32_t box : waiting(section)) {
    if (starts_[box] >= level) continue;
    lift(box, fitting(box, level));
    changed = {std::min(changed.first, model_.first_of(box)), std::max(changed.last, model_.last_of(box))};
  }
}

template <typename T>
bool Skyline<T>::place(std::uint32_t box) {
  Changed changed = {model_.first_of(box), model_.last_of(box)};
  close(box);
  const std::uint32_t first = placements_.back().first;
  std::uint32_t last = first;
  for (const SectionRange& range : model_.ranges_of(box)) {
    const T level = starts_[box] + static_cast<T>(range.size);
    for (std::uint32_t section = std::max(first, range.first); section < range.last;
         section = next_[section]) {
      raise_over(section, level, changed);
      last = section;
    }
  }
  if (whole_) merge_ends(first, last);
  return remeasure(changed);
}

template <typename T>
bool Skyline<T>::raise(std::uint32_t section, T level) {
  Changed changed = {section, section + 1};
  raise_over(section, level, changed);
  return remeasure(changed);
}

template <typename T>
void Skyline<T>::undo(const Moment& moment) {
  for (; figures_.size() > moment.figures; figures_.pop_back())
    stacks_[figures_.back().section] = figures_.back().stack;
  for (; lifts_.size() > moment.lifts; lifts_.pop_back()) {
    starts_[lifts_.back().box] = lifts_.back().start;
    rehash(lifts_.back().box);
  }
  for (; placements_.size() > moment.placements; placements_.pop_back()) reopen(placements_.back());
}

template class Skyline<std::int32_t>;
template class Skyline<std::int64_t>;

}  // namespace loadline::packing
