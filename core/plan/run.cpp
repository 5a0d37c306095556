// Runs a plan step by step and records usage: the same loop for projection and measurement.
#include "core/plan/run.h"

#include "core/io/system_memory.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace loadline::plan {
namespace {

// Fills the timeline of a run: a point of usage after each allocation and free, and the machine's own
// figures.
class Recorder {
 public:
  // `points`: how many allocations and frees there are.
  Recorder(const Plan& plan, const Machine& machine, std::size_t points, Timeline used)
      : machine_(machine),
        own_books_(machine.live_bytes().has_value()),
        counted_(machine.sample().has_value()) {
    take_over(timeline_.usage, std::move(used.usage), points);
    take_over(timeline_.lifetimes, std::move(used.lifetimes), plan.blocks.size());
    timeline_.lifetimes.resize(plan.blocks.size());
    if (machine.reserved()) take_over(timeline_.reserved_usage, {}, points);
  }

  // After the machine has allocated or freed the block.
  void add(std::size_t at, const Step& step, const Block& block) {
    const double now = machine_.now();
    Lifetime& life = timeline_.lifetimes[graph::index(step.block)];
    if (step.verb == Verb::alloc) {
      live_[index(block.space)] += block.bytes;
      life.from_step = at;
      life.from_seconds = now;
    } else {
      live_[index(block.space)] -= block.bytes;
      life.to_step = at;
      life.to_seconds = now;
    }
    timeline_.usage.push_back({at, now, own_books_ ? *machine_.live_bytes() : live_});
    if (const auto reserved = machine_.reserved()) timeline_.reserved_usage.push_back(*reserved);
    if (counted_) add_sample(now);
  }

  // After the machine has drained.
  Timeline finish() {
    timeline_.seconds = machine_.now();
    if (const auto sample = machine_.sample()) timeline_.measured.push_back({timeline_.seconds, *sample});
    for (Lifetime& life : timeline_.lifetimes)
      if (life.from_step != kNever && life.to_step == kNever) life.to_seconds = timeline_.seconds;
    timeline_.final_bytes = machine_.live_bytes().value_or(live_);
    timeline_.reserved_peak = machine_.reserved_peak();
    timeline_.reserved_final = machine_.reserved();
    timeline_.allocated_peak = machine_.allocated_peak();
    find_peaks(timeline_);
    return std::move(timeline_);
  }

 private:
  // Makes an empty list in the memory of `used`, with room for `count` entries.
  template <typename Entry>
  static void take_over(std::vector<Entry>& list, std::vector<Entry> used, std::size_t count) {
    list = std::move(used);
    list.clear();
    list.reserve(count);
    io::prefer_large_pages(list.data(), count * sizeof(Entry));
  }

  // Reading the counters costs about 10 us: once a millisecond is enough to follow slow steps.
  void add_sample(double now) {
    constexpr double kPeriod = 0.001;  // seconds
    if (!timeline_.measured.empty() && now - timeline_.measured.back().seconds < kPeriod) return;
    if (const auto sample = machine_.sample()) timeline_.measured.push_back({now, *sample});
  }

  const Machine& machine_;
  const bool own_books_;
  const bool counted_;
  Timeline timeline_;
  PerSpace<std::uint64_t> live_ = {};
};

}  // namespace

Timeline run(const Plan& plan, Machine& machine, Progress& progress, Timeline used) {
  std::uint64_t total = 0;
  std::size_t points = 0;
  for (const Step& step : plan.steps) {
    total += step.bytes;
    points += step.verb != Verb::copy;
  }
  progress.add_total(total);
  Recorder recorder(plan, machine, points, std::move(used));
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    progress.check_canceled();
    const Step& step = plan.steps[at];
    const Block& block = plan.block(step.block);
    if (step.verb == Verb::copy) {
      machine.copy(step, block);
      progress.add(step.bytes);
      continue;
    }
    if (step.verb == Verb::alloc)
      machine.alloc(step.block, block);
    else
      machine.free(step.block, block);
    recorder.add(at, step, block);
  }
  machine.drain();
  return recorder.finish();
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
