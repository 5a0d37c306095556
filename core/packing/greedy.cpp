// Greedy orders, placement in order, and the squeaky wheel.
#include "core/packing/greedy.h"

#include "core/packing/mix.h"

#include <algorithm>

namespace loadline {
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

}  // namespace loadline
