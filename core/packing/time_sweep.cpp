// Best fit over the holes that boxes leave when they end.
#include "core/packing/time_sweep.h"

#include "core/allocators/holes.h"
#include "core/base/checked.h"

#include <algorithm>
#include <queue>

namespace loadline {
namespace {

// The bytes from `base` upwards.
class SweptArena {
 public:
  explicit SweptArena(std::uint64_t base) : top_(base) {}

  std::uint64_t take(std::uint64_t size, std::uint64_t alignment) {
    // a hole of this size contains an aligned start at any offset
    const auto hole = holes_.take(size + (alignment - 1));
    const std::uint64_t from = hole ? hole->place.offset : top_;
    const std::uint64_t start = align_up(from, alignment);
    if (start > from) give(from, start - from);
    if (!hole) {
      top_ = start + size;
    } else if (hole->end() > start + size) {
      give(start + size, hole->end() - (start + size));
    }
    return start;
  }
  // Frees a range below the top; give_back() lowers the top if the freed range reaches it.
  void give(std::uint64_t offset, std::uint64_t size) { holes_.add({{0, offset}, size}); }
  void give_back(std::uint64_t offset, std::uint64_t size) {
    const Hole hole = holes_.add({{0, offset}, size});
    if (hole.end() != top_) return;
    holes_.remove(hole.place);
    top_ = hole.place.offset;
  }

 private:
  Holes holes_;
  std::uint64_t top_;
};

}  // namespace

GreedyPacking pack_by_time(const SectionModel& model, std::uint64_t most) {
  std::uint64_t height = 0;
  for (const auto& obstacle : model.obstacles)
    height = std::max(height, obstacle.offset + obstacle.range.size);
  SweptArena arena(height);
  using Ending = std::pair<std::uint32_t, std::uint32_t>;  // first section after the box, and box
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  GreedyPacking packing;
  packing.offsets.assign(model.box_count(), 0);
  for (const std::uint32_t box : by_first_section(model)) {
    while (!endings.empty() && endings.top().first <= model.first_of(box)) {
      const std::uint32_t ended = endings.top().second;
      endings.pop();
      arena.give_back(packing.offsets[ended], model.height_of(ended));
    }
    const std::uint64_t start = arena.take(model.height_of(box), model.alignment_of(box));
    height = std::max(height, start + model.height_of(box));
    if (height > most) return packing;
    packing.offsets[box] = start;
    endings.emplace(model.last_of(box), box);
  }
  packing.height = height;
  return packing;
}

}  // namespace loadline
