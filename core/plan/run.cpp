// Runs a plan step by step and records usage: the same loop for projection and measurement.
#include "core/plan/run.h"

#include "core/io/system_memory.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace loadline {
namespace {

constexpr double kSamplePeriod = 0.001;  // seconds

// Sorts blocks by size, largest first; ties keep their order. Models have a hundred thousand tensors of a
// dozen sizes, so a counting sort is several times faster than a comparison sort.
std::vector<BlockId> largest_first(const Plan& plan, std::vector<BlockId> blocks) {
  constexpr std::size_t kFew = 512;
  std::unordered_map<std::uint64_t, std::size_t> places;  // first the count of each size
  for (const BlockId id : blocks) {
    ++places[plan.block(id).bytes];
    if (places.size() <= kFew) continue;
    std::ranges::stable_sort(blocks,
                             [&](BlockId a, BlockId b) { return plan.block(a).bytes > plan.block(b).bytes; });
    return blocks;
  }
  std::vector<std::uint64_t> sizes;
  for (const auto& [bytes, count] : places) sizes.push_back(bytes);
  std::sort(sizes.rbegin(), sizes.rend());
  std::size_t place = 0;  // then the next position for each size
  for (const std::uint64_t bytes : sizes) place += std::exchange(places.at(bytes), place);
  std::vector<BlockId> sorted(blocks.size());
  for (const BlockId id : blocks) sorted[places.at(plan.block(id).bytes)++] = id;
  return sorted;
}

void raise(Peak& peak, std::uint64_t bytes, const UsagePoint& point) {
  if (bytes > peak.bytes) peak = {.bytes = bytes, .step = point.step, .seconds = point.seconds};
}

// Finds the peak of each space and of their sum in one pass.
void find_peaks(Timeline& timeline) {
  for (const UsagePoint& point : timeline.usage) {
    for (std::size_t space = 0; space < kSpaceCount; ++space)
      raise(timeline.peaks[space], point.bytes[space], point);
    raise(timeline.unified, sum_over(point.bytes, kAllSpaces), point);
  }
}

}  // namespace

Timeline run(const Plan& plan, Machine& machine, Progress& progress, Timeline used) {
  std::uint64_t total = 0;
  std::size_t points = 0;
  for (const Step& step : plan.steps) {
    total += step.bytes;
    points += step.verb != Verb::copy;
  }
  progress.add_total(total);

  Timeline timeline;
  timeline.usage = std::move(used.usage);
  timeline.usage.clear();
  timeline.lifetimes = std::move(used.lifetimes);
  timeline.lifetimes.clear();
  timeline.usage.reserve(points);
  prefer_large_pages(timeline.usage.data(), points * sizeof(UsagePoint));
  timeline.lifetimes.reserve(plan.blocks.size());
  prefer_large_pages(timeline.lifetimes.data(), plan.blocks.size() * sizeof(Lifetime));
  timeline.lifetimes.resize(plan.blocks.size());
  PerSpace<std::uint64_t> live = {};
  if (machine.reserved()) {
    timeline.reserved_usage.reserve(points);
    prefer_large_pages(timeline.reserved_usage.data(), points * sizeof(PerSpace<std::uint64_t>));
  }
  const bool own_books = machine.live_bytes().has_value();
  const bool counted = machine.sample().has_value();
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    progress.check_cancelled();
    const Step& step = plan.steps[at];
    const Block& block = plan.block(step.block);
    if (step.verb == Verb::copy) {
      machine.copy(step, block);
      progress.add(step.bytes);
      continue;
    }
    Lifetime& life = timeline.lifetimes[index(step.block)];
    if (step.verb == Verb::alloc) {
      machine.alloc(step.block, block);
      live[index(block.space)] += block.bytes;
      life.from_step = at;
      life.from_seconds = machine.now();
    } else {
      machine.free(step.block, block);
      live[index(block.space)] -= block.bytes;
      life.to_step = at;
      life.to_seconds = machine.now();
    }
    const double now = machine.now();
    timeline.usage.push_back({at, now, own_books ? *machine.live_bytes() : live});
    if (const auto reserved = machine.reserved()) timeline.reserved_usage.push_back(*reserved);
    if (!counted) continue;
    // reading the counters costs about 10 us: once a millisecond is enough to follow slow steps
    if (!timeline.measured.empty() && now - timeline.measured.back().seconds < kSamplePeriod) continue;
    if (const auto sample = machine.sample()) timeline.measured.push_back({now, *sample});
  }
  machine.drain();
  timeline.seconds = machine.now();
  if (const auto sample = machine.sample()) timeline.measured.push_back({timeline.seconds, *sample});
  for (Lifetime& life : timeline.lifetimes)
    if (life.from_step != kNever && life.to_step == kNever) life.to_seconds = timeline.seconds;

  timeline.final_bytes = machine.live_bytes().value_or(live);
  timeline.reserved_peak = machine.reserved_peak();
  timeline.reserved_final = machine.reserved();
  timeline.allocated_peak = machine.allocated_peak();
  find_peaks(timeline);
  return timeline;
}

Timeline run(const Plan& plan, Machine& machine) {
  Progress progress;
  return run(plan, machine, progress);
}

std::uint64_t usage_at(const Timeline& timeline, std::size_t step, unsigned mask) {
  const auto after = std::upper_bound(timeline.usage.begin(), timeline.usage.end(), step,
                                      [](std::size_t s, const UsagePoint& point) { return s < point.step; });
  return after == timeline.usage.begin() ? 0 : sum_over(std::prev(after)->bytes, mask);
}

Peak peak_over(const Timeline& timeline, unsigned mask) {
  Peak peak;
  for (const UsagePoint& point : timeline.usage) raise(peak, sum_over(point.bytes, mask), point);
  return peak;
}

std::vector<BlockId> alive_at(const Timeline& timeline, const Plan& plan, std::size_t step, unsigned mask) {
  std::vector<BlockId> alive;
  alive.reserve(plan.blocks.size());
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Lifetime& life = timeline.lifetimes[i];
    if (life.from_step <= step && step < life.to_step && (mask & space_bit(plan.blocks[i].space)) != 0)
      alive.push_back(BlockId{static_cast<std::uint32_t>(i)});
  }
  return largest_first(plan, std::move(alive));
}

}  // namespace loadline
