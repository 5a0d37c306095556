// Best fit over the holes that boxes leave when they end.
#include "core/packing/time_sweep.h"

#include "core/allocators/free_ranges.h"

#include <algorithm>
#include <queue>

namespace loadline {

GreedyPacking pack_by_time(const SectionModel& model, std::uint64_t most) {
  std::uint64_t height = model.top_of_obstacles();
  BestFit arena(height);
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
