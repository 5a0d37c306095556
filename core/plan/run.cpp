// Runs a plan step by step and records usage: the same loop for projection and measurement.
#include "core/plan/run.h"

#include "core/io/system_memory.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <utility>

namespace loadline::plan {
namespace {

constexpr double kSamplePeriod = 0.001;  // seconds

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
  io::prefer_large_pages(timeline.usage.data(), points * sizeof(UsagePoint));
  timeline.lifetimes.reserve(plan.blocks.size());
  io::prefer_large_pages(timeline.lifetimes.data(), plan.blocks.size() * sizeof(Lifetime));
  timeline.lifetimes.resize(plan.blocks.size());
  PerSpace<std::uint64_t> live = {};
  if (machine.reserved()) {
    timeline.reserved_usage.reserve(points);
    io::prefer_large_pages(timeline.reserved_usage.data(), points * sizeof(PerSpace<std::uint64_t>));
  }
  const bool own_books = machine.live_bytes().has_value();
  const bool counted = machine.sample().has_value();
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    progress.check_canceled();
    const Step& step = plan.steps[at];
    const Block& block = plan.block(step.block);
    if (step.verb == Verb::copy) {
      machine.copy(step, block);
      progress.add(step.bytes);
      continue;
    }
    Lifetime& life = timeline.lifetimes[graph::index(step.block)];
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

CostModel with_cached_files(CostModel costs, double share, bool imported) {
  const double cached = std::clamp(share, 0.0, 1.0);
  const double seconds = (1 - cached) / costs.disk_read + (imported ? 0 : cached / costs.memory_copy);
  costs.disk_read = seconds > 0 ? 1 / seconds : CostModel::kUncounted;
  costs.seek_seconds *= 1 - cached;
  return costs;
}

CostModel with_imported_pages(CostModel costs) {
  costs.staging_pages = CostModel::kUncounted;
  return costs;
}

}  // namespace loadline::plan
