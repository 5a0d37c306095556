// Two heuristics for dynamic storage allocation.
#include "core/plan/arena.h"

#include "core/base/checked.h"
#include "core/base/holes.h"

#include <algorithm>
#include <numeric>

namespace loadline {
namespace {

struct Item {
  std::size_t block = 0;
  std::size_t from = 0;  // steps, half-open
  std::size_t to = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
};

std::vector<Item> items_of(const Plan& plan, const Timeline& timeline, Space space, std::uint64_t alignment) {
  std::vector<Item> items;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Lifetime& life = timeline.lifetimes[i];
    if (plan.blocks[i].space != space || plan.blocks[i].bytes == 0 || life.from_step == kNever) continue;
    items.push_back({i, life.from_step, life.to_step, align_up(plan.blocks[i].bytes, alignment), 0});
  }
  return items;
}

std::uint64_t height_of(const std::vector<Item>& items) {
  std::uint64_t height = 0;
  for (const Item& item : items) height = std::max(height, item.offset + item.bytes);
  return height;
}

// Steps in order; what begins takes the smallest hole that holds it, or the end.
std::uint64_t by_time(std::vector<Item>& items) {
  struct Event {
    std::size_t step = 0;
    bool begins = false;
    std::size_t item = 0;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < items.size(); ++i) {
    events.push_back({items[i].from, true, i});
    if (items[i].to != kNever) events.push_back({items[i].to, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.step < b.step; });
  Holes holes;
  std::uint64_t top = 0, live = 0, bound = 0;
  for (const Event& event : events) {
    Item& item = items[event.item];
    if (!event.begins) {
      live -= item.bytes;
      const Hole hole = holes.add({{0, item.offset}, item.bytes});
      if (hole.end() != top) continue;
      holes.remove(hole.place);
      top = hole.place.offset;
      continue;
    }
    live += item.bytes;
    bound = std::max(bound, live);
    if (const auto hole = holes.take(item.bytes)) {
      item.offset = hole->place.offset;
      if (hole->bytes > item.bytes) holes.add({{0, item.offset + item.bytes}, hole->bytes - item.bytes});
    } else {
      item.offset = top;
      top += item.bytes;
    }
  }
  return bound;
}

// The largest first, each at the lowest offset where it meets nobody who is alive with it.
void by_size(std::vector<Item>& items) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return items[a].bytes > items[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    Item& item = items[i];
    std::uint64_t at = 0;
    for (const std::size_t other : placed) {
      if (items[other].to <= item.from || item.to <= items[other].from) continue;
      if (items[other].offset >= at + item.bytes) break;
      at = std::max(at, items[other].offset + items[other].bytes);
    }
    item.offset = at;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](std::size_t a, std::size_t b) { return items[a].offset < items[b].offset; }),
        i);
  }
}

}  // namespace

Arena plan_arena(const Plan& plan, const Timeline& timeline, Space space, std::uint64_t alignment) {
  constexpr std::size_t kFew = 4000;  // largest first takes quadratic time
  std::vector<Item> items = items_of(plan, timeline, space, alignment);
  Arena arena;
  arena.lower_bound = by_time(items);
  if (items.size() <= kFew && height_of(items) > arena.lower_bound) {
    std::vector<Item> sized = items;
    by_size(sized);
    if (height_of(sized) < height_of(items)) items = std::move(sized);
  }
  arena.height = height_of(items);
  arena.offsets.assign(plan.blocks.size(), 0);
  for (const Item& item : items) arena.offsets[item.block] = item.offset;
  return arena;
}

}  // namespace loadline
