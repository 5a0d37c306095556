// The search for places.
#include "core/packing/ejection.h"

#include "core/base/checked_arithmetic.h"

#include <algorithm>
#include <cmath>

namespace loadline::packing {

// --- Sweeps over the possible starts of a box, and keeps a heap of boxes without a place.

namespace {

// Number of pieces per block; a block's largest end is stored once.
constexpr std::size_t kBlock = 32;
// A step with more boxes alive together than this counts as several steps.
constexpr std::uint64_t kCrowd = 1000;

}  // namespace

EjectionSearch::EjectionSearch(const SectionModel& model, std::uint64_t seed)
    : model_(model), random_(seed), offsets_(model.box_count(), 0) {
  for (std::uint32_t box = 0; box < model.box_count(); ++box) {
    for (const SectionRange& range : model.ranges_of(box))
      pieces_.push_back({range.first, range.last, box, range.size, 0});
    weights_.push_back(std::sqrt(model.length_of(box) * static_cast<double>(model.height_of(box))));
  }
  for (const auto& obstacle : model.obstacles)
    pieces_.push_back(
        {obstacle.range.first, obstacle.range.last, kObstacle, obstacle.range.size, obstacle.offset});
  std::ranges::stable_sort(pieces_, {}, &Piece::first);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (i % kBlock == 0) reach_.push_back(0);
    if (i % (kBlock * kBlock) == 0) far_reach_.push_back(0);
    reach_.back() = std::max(reach_.back(), pieces_[i].last);
    far_reach_.back() = std::max(far_reach_.back(), pieces_[i].last);
  }
}

// Collects the placed boxes and the obstacles over the box's sections.
void EjectionSearch::meet(std::uint32_t box) {
  near_.clear();
  from_.clear();
  to_.clear();
  for (const SectionRange& range : model_.ranges_of(box)) {
    const auto end = static_cast<std::size_t>(
        std::ranges::lower_bound(pieces_, range.last, {}, &Piece::first) - pieces_.begin());
    for (std::size_t block = 0; block * kBlock < end; ++block) {
      if (block % kBlock == 0)
        while (block * kBlock < end && far_reach_[block / kBlock] <= range.first) block += kBlock;
      if (block * kBlock >= end) break;
      if (reach_[block] <= range.first) continue;
      for (std::size_t i = block * kBlock; i < std::min(end, (block + 1) * kBlock); ++i) {
        const Piece& piece = pieces_[i];
        const bool fixed = piece.box == kObstacle;
        if (piece.last <= range.first || piece.box == box || (!fixed && placed_[piece.box] == 0)) continue;
        const std::uint64_t offset = fixed ? piece.offset : offsets_[piece.box];
        const double cost = fixed ? 0 : cost_of(piece.box) * (1 + kShake * random_.fraction());
        near_.push_back({&piece, cost});
        from_.push_back(offset >= range.size ? offset - range.size + 1 : 0);
        to_.push_back(offset + piece.size);
      }
    }
  }
}

// Finds the tightest gap or, if there is none, the start with the least cost of ejections. False if obstacles
// or the target leave no start at all.
bool EjectionSearch::best_place(std::uint32_t box, std::uint64_t target, Place& place) {
  meet(box);
  const std::uint64_t height = model_.height_of(box);
  if (height > target) return false;
  const std::uint64_t alignment = model_.alignment_of(box), most = target - height;
  bool found = false;
  std::uint64_t least = 0;
  double cost = 0;
  int obstacles = 0, boxes = 0;
  const auto take = [&](const Near& near, int sign) {
    (near.piece->box == kObstacle ? obstacles : boxes) += sign;
    cost += sign * near.cost;
  };
  const auto rises = rises_.sort(from_), falls = falls_.sort(to_);
  auto rise = rises.begin(), fall = falls.begin();
  for (std::uint64_t at = 0; at <= most;) {
    for (; rise != rises.end() && from_[*rise] <= at; ++rise) take(near_[*rise], 1);
    for (; fall != falls.end() && to_[*fall] <= at; ++fall) take(near_[*fall], -1);
    std::uint64_t next = most + 1;
    if (rise != rises.end()) next = std::min(next, from_[*rise]);
    if (fall != falls.end()) next = std::min(next, to_[*fall]);
    const std::uint64_t start = alignment == 1 ? at : align_up(at, alignment);
    if (obstacles == 0 && start < next) {
      const bool free = boxes == 0;
      if (free) cost = 0;  // clears rounding errors
      const bool better =
          !found || (free ? !place.free || next - at < least : !place.free && cost < place.cost);
      if (better) place = {start, cost, free}, least = next - at;
      found = true;
    }
    at = next;
  }
  return found;
}

void EjectionSearch::wait(std::uint32_t box) {
  placed_[box] = 0;
  waiting_.push_back(box);
  std::ranges::push_heap(waiting_, lighter());
}

std::uint32_t EjectionSearch::next_waiting() {
  std::ranges::pop_heap(waiting_, lighter());
  const std::uint32_t box = waiting_.back();
  waiting_.pop_back();
  return box;
}

// Ejects every box that overlaps the box at this offset. near_ holds the result of meet().
void EjectionSearch::drive_out(std::uint32_t box, std::uint64_t offset) {
  for (const Near& near : near_) {
    const Piece* const piece = near.piece;
    if (piece->box == kObstacle || placed_[piece->box] == 0) continue;
    for (const SectionRange& range : model_.ranges_of(box)) {
      const bool together = range.first < piece->last && piece->first < range.last;
      const std::uint64_t other = offsets_[piece->box];
      if (!together || other >= offset + range.size || offset >= other + piece->size) continue;
      wait(piece->box);
      break;
    }
  }
  driven_[box] += 1;
}

bool EjectionSearch::lower(std::vector<std::uint64_t>& offsets, std::uint64_t target, std::uint64_t patience,
                           const StopRule& rule) {
  offsets_ = offsets;
  placed_.assign(model_.box_count(), 1);
  driven_.assign(model_.box_count(), 0);
  waiting_.clear();
  for (std::uint32_t box = 0; box < model_.box_count(); ++box)
    if (offsets_[box] + model_.height_of(box) > target) wait(box);
  std::size_t fewest = waiting_.size();
  std::uint64_t steps = 0, looks = 0;  // since the last new minimum
  for (; !waiting_.empty(); ++steps, looks += near_.size()) {
    if (waiting_.size() < fewest) fewest = waiting_.size(), steps = looks = 0;
    if (steps >= patience || looks / kCrowd >= patience || rule.due()) return false;
    const std::uint32_t box = next_waiting();
    Place place;
    if (!best_place(box, target, place)) return false;
    if (!place.free) drive_out(box, place.offset);
    offsets_[box] = place.offset;
    placed_[box] = 1;
  }
  offsets = offsets_;
  return true;
}

}  // namespace loadline::packing
