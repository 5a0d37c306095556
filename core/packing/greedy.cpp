// The segment tree over sections and the heuristics on it.
#include "core/packing/greedy.h"

#include "core/allocators/free_ranges.h"
#include "core/base/checked_arithmetic.h"
#include "core/packing/normal_form.h"
#include "core/packing/search_control.h"

#include <algorithm>
#include <bit>
#include <queue>

namespace loadline::packing {

// --- Interval sets in a segment tree over the sections.

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

// --- Greedy orders, placement in order, and the squeaky wheel.

namespace {

double area_of(const SectionModel& model, std::uint32_t box) {
  double area = 0;
  for (const SectionRange& range : model.ranges_of(box))
    area += static_cast<double>(range.last - range.first) * static_cast<double>(range.size);
  return area;
}

bool throughout(const SectionModel& model, std::uint32_t box) {
  return model.first_of(box) == 0 && model.last_of(box) == model.sections;
}

bool by_size_then_start(const SectionModel& model, std::uint32_t a, std::uint32_t b) {
  if (throughout(model, a) != throughout(model, b)) return throughout(model, a);
  const std::uint64_t x = model.height_of(a), y = model.height_of(b);
  if (x != y) return x > y;
  return model.first_of(a) < model.first_of(b);
}

bool by_size_then_length(const SectionModel& model, std::uint32_t a, std::uint32_t b) {
  const std::uint64_t x = model.height_of(a), y = model.height_of(b);
  return x != y ? x > y : model.length_of(a) > model.length_of(b);
}

bool by_length(const SectionModel& model, std::uint32_t a, std::uint32_t b) {
  const double x = model.length_of(a), y = model.length_of(b);
  return x != y ? x > y : model.height_of(a) > model.height_of(b);
}

bool by_area(const SectionModel& model, std::uint32_t a, std::uint32_t b) {
  return area_of(model, a) > area_of(model, b);
}

bool by_start(const SectionModel& model, std::uint32_t a, std::uint32_t b) {
  return model.first_of(a) < model.first_of(b);
}

constexpr GreedyRule kRules[] = {
    {"size", Fit::best, by_size_then_start}, {"size-length", Fit::first, by_size_then_length},
    {"area", Fit::first, by_area},           {"length", Fit::best, by_length},
    {"start", Fit::best, by_start},
};

}  // namespace

std::span<const GreedyRule> greedy_rules() { return kRules; }

std::vector<std::uint32_t> order_by(const SectionModel& model, const GreedyRule& rule) {
  return boxes_by(model, [&](std::uint32_t a, std::uint32_t b) { return rule.before(model, a, b); });
}

GreedyPacking pack_in_order(const SectionModel& model, ArenaIndex& index,
                            std::span<const std::uint32_t> order, Fit fit, std::uint64_t most,
                            const StopRule& rule) {
  constexpr std::uint32_t kBetweenLooks = 64;
  GreedyPacking packing;
  packing.offsets.assign(model.box_count(), 0);
  index.clear();
  std::uint64_t height = model.top_of_obstacles();
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (i % kBetweenLooks == 0 && rule.due()) return packing;
    const std::uint32_t box = order[i];
    const std::uint64_t offset = index.find(box, fit);
    height = std::max(height, offset + model.height_of(box));
    if (height > most) return packing;
    index.take(box, offset);
    packing.offsets[box] = offset;
  }
  packing.height = height;
  return packing;
}

GreedyPacking squeaky_wheel(const SectionModel& model, ArenaIndex& index, std::vector<std::uint32_t> order,
                            Fit fit, std::uint64_t height, std::uint64_t target, std::uint64_t rounds,
                            std::uint64_t seed, const StopRule& rule) {
  const std::uint64_t most = 2 * height;  // even a bad order shows which boxes end too high
  constexpr int kPatience = 30;           // rounds without a gain, then back to the best order
  GreedyPacking best;
  best.height = height;
  std::vector<std::uint32_t> best_order = order;
  // A box's rank is its position in the order; boxes that end too high move forward.
  MixedSequence random(seed);
  const auto count = static_cast<double>(model.box_count());
  std::vector<double> rank(model.box_count());
  const auto ranks_from = [&](const std::vector<std::uint32_t>& from) {
    for (std::uint32_t i = 0; i < from.size(); ++i) rank[from[i]] = i;
  };
  ranks_from(order);
  int since = 0;
  for (std::uint64_t round = 0; round < rounds && best.height > target; ++round) {
    GreedyPacking packing = pack_in_order(model, index, order, fit, most, rule);
    if (packing.height == UINT64_MAX) {
      if (rule.due()) break;
      since = kPatience;
    }
    for (std::uint32_t box = 0; box < model.box_count() && packing.height != UINT64_MAX; ++box) {
      if (packing.offsets[box] + model.height_of(box) <= target) continue;
      rank[box] -= (0.05 + 0.3 * random.fraction()) * count;
    }
    ++since;
    if (packing.height < best.height) {
      best = std::move(packing);
      best_order = order;
      since = 0;
    }
    if (since > kPatience) {
      since = 0;
      ranks_from(best_order);
    }
    std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      return rank[a] != rank[b] ? rank[a] < rank[b] : a < b;
    });
    ranks_from(order);
  }
  if (best.offsets.empty()) best.height = UINT64_MAX;
  return best;
}

// --- Best fit over the holes that boxes leave when they end.

GreedyPacking pack_by_time(const SectionModel& model, std::uint64_t most) {
  std::uint64_t height = model.top_of_obstacles();
  allocators::BestFit arena(height);
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

// --- The first greedy rule, component by component.

namespace {

std::optional<std::uint64_t> height_in(const Problem& problem, std::uint32_t arena, const StopRule& rule) {
  const NormalForm form = normal_form(problem, arena);
  const GreedyRule& by_size = greedy_rules().front();
  std::uint64_t height = 0;
  for (const PackingComponent& component : form.components) {
    ArenaIndex index(component.model);
    const auto packing = pack_in_order(component.model, index, order_by(component.model, by_size),
                                       by_size.fit, kHighestPacking / component.unit, rule);
    if (packing.height == UINT64_MAX) return std::nullopt;
    height = std::max(height, packing.height * component.unit);
  }
  // pinned buffers without other buffers alive belong to no component
  if (const Buffer* pin = highest_pin(problem, arena)) height = std::max(height, *pin->offset + pin->size);
  return height;
}

}  // namespace

std::vector<std::optional<std::uint64_t>> greedy_by_size_heights(const Problem& problem,
                                                                 const StopRule& rule) {
  check_problem(problem);
  const std::uint32_t arenas = arena_count(problem);
  std::vector<std::optional<std::uint64_t>> heights;
  for (std::uint32_t arena = 0; arena < arenas; ++arena) heights.push_back(height_in(problem, arena, rule));
  return heights;
}

std::optional<std::uint64_t> greedy_by_size_height(const Problem& problem, const StopRule& rule) {
  std::uint64_t most = 0;
  for (const auto& height : greedy_by_size_heights(problem, rule)) {
    if (!height) return std::nullopt;
    most = std::max(most, *height);
  }
  return most;
}

}  // namespace loadline::packing
