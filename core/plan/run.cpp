// Runs a plan step by step and records usage: the same loop for projection and measurement.
#include "core/plan/run.h"

#include "core/io/system_memory.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

namespace loadline::plan {
namespace {

// Fills the timeline of a run: a point of usage after each allocation and free, and the machine's own
// figures. `Of` is the machine's own class where that is known, so that its members need no calls.
template <typename Of>
class Recorder {
 public:
  Recorder(const Plan& plan, const Of& machine, Timeline used)
      : machine_(machine),
        own_books_(machine.live_bytes().has_value()),
        reserves_(machine.reserved().has_value()),
        counted_(machine.sample().has_value()) {
    const std::size_t points = 2 * plan.blocks.size();  // each is allocated once and freed at most once
    take_over(timeline_.usage, std::move(used.usage), points);
    take_over(timeline_.lifetimes, std::move(used.lifetimes), plan.blocks.size());
    timeline_.lifetimes.resize(plan.blocks.size());
    if (reserves_) take_over(timeline_.reserved_usage, {}, points);
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
    // by the plan's own count, only the space of an allocation can have a new peak
    if (!own_books_ && step.verb == Verb::alloc) {
      raise(timeline_.peaks[index(block.space)], live_[index(block.space)], at, now);
      raise(timeline_.unified, sum_over(live_, kAllSpaces), at, now);
    }
    if (reserves_) timeline_.reserved_usage.push_back(*machine_.reserved());
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
    if (own_books_) find_peaks(timeline_);
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

  static void raise(Peak& peak, std::uint64_t bytes, std::size_t step, double seconds) {
    if (bytes > peak.bytes) peak = {.bytes = bytes, .step = step, .seconds = seconds};
  }

  // Reading the counters costs about 10 us: once a millisecond is enough to follow slow steps.
  void add_sample(double now) {
    constexpr double kPeriod = 0.001;  // seconds
    if (!timeline_.measured.empty() && now - timeline_.measured.back().seconds < kPeriod) return;
    if (const auto sample = machine_.sample()) timeline_.measured.push_back({now, *sample});
  }

  const Of& machine_;
  const bool own_books_;
  const bool reserves_;
  const bool counted_;
  Timeline timeline_;
  PerSpace<std::uint64_t> live_ = {};
};

template <typename Of>
Timeline run_on(Of& machine, const Plan& plan, Progress& progress, Timeline used) {
  // modeled steps take nanoseconds: progress is told of many at once, and their total grows with them
  constexpr bool kModeled = std::is_same_v<Of, DryMachine>;
  constexpr std::size_t kTogether = kModeled ? 1024 : 1;
  if constexpr (!kModeled) {
    std::uint64_t total = 0;
    for (const Step& step : plan.steps) total += step.bytes;
    progress.add_total(total);
  }
  std::uint64_t copied = 0;
  const auto tell = [&] {
    if (kModeled) progress.add_total(copied);
    progress.add(std::exchange(copied, 0));
  };
  Recorder<Of> recorder(plan, machine, std::move(used));
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    if (at % kTogether == 0) {
      progress.check_canceled();
      tell();
    }
    const Step& step = plan.steps[at];
    const Block& block = plan.block(step.block);
    if (step.verb == Verb::copy) {
      machine.copy(step, block);
      copied += step.bytes;
      continue;
    }
    if (step.verb == Verb::alloc)
      machine.alloc(step.block, block);
    else
      machine.free(step.block, block);
    recorder.add(at, step, block);
  }
  machine.drain();
  tell();
  return recorder.finish();
}

}  // namespace

Timeline run(const Plan& plan, Machine& machine, Progress& progress, Timeline used) {
  if (auto* const dry = dynamic_cast<DryMachine*>(&machine))
    return run_on(*dry, plan, progress, std::move(used));
  return run_on(machine, plan, progress, std::move(used));
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
