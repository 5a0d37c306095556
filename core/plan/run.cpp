// Runs a plan step by step and records usage: the same loop for projection and measurement.
#include "core/plan/run.h"

#include "core/base/error.h"
#include "core/io/system_memory.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace loadline::plan {
namespace {

// Fills the timeline of a run: the peaks, if asked a point of usage after each allocation and free, and the
// machine's own figures. `Of` is the machine's own class where that is known, so that its members need no
// calls. `kPeaks`: only peaks are kept, and the first step over a limit.
template <typename Of, bool kPeaks>
class Recorder {
 public:
  static constexpr bool kModeled = std::is_same_v<Of, DryMachine>;  // which holds no memory that counters see

  // `blocks`: about how many there will be.
  Recorder(const Of& machine, Timeline used, std::size_t blocks, const SumLimits& limits)
      : machine_(machine),
        limits_(limits),
        own_books_(machine.live_bytes().has_value()),
        reserves_(machine.reserved().has_value()),
        counted_(machine.sample().has_value()) {
    const std::size_t points = kPeaks ? 0 : 2 * blocks;  // each is allocated once and freed at most once
    take_over(timeline_.usage, std::move(used.usage), points);
    take_over(timeline_.lifetimes, std::move(used.lifetimes), blocks);
    if (reserves_) take_over(timeline_.reserved_usage, {}, points);
  }

  void make_room(std::size_t blocks) { timeline_.lifetimes.resize(blocks); }

  // After the machine has allocated or freed the block.
  void add(std::size_t at, const Step& step, const Block& block) {
    const double now = machine_.now();
    Lifetime& life = timeline_.lifetimes[graph::index(step.block)];
    const unsigned bit = space_bit(block.space);
    const bool own_books = !kModeled && own_books_;
    if (step.verb == Verb::alloc) {
      live_[index(block.space)] += block.bytes;
      life.from_step = static_cast<std::uint32_t>(at);
      if (!own_books) add_to_sums(bit, block.bytes, at, now);
    } else {
      live_[index(block.space)] -= block.bytes;
      life.to_step = static_cast<std::uint32_t>(at);
      if (!own_books) take_from_sums(bit, block.bytes);
    }
    if (!kPeaks) timeline_.usage.push_back({at, now, own_books ? *machine_.live_bytes() : live_});
    if (reserves_) [[unlikely]]
      timeline_.reserved_usage.push_back(*machine_.reserved());
    if (!kModeled && counted_) add_sample(now);
  }

  // After the machine has drained.
  Timeline finish() {
    timeline_.seconds = machine_.now();
    if (const auto sample = machine_.sample()) timeline_.measured.push_back({timeline_.seconds, *sample});
    timeline_.final_bytes = machine_.live_bytes().value_or(live_);
    timeline_.reserved_peak = machine_.reserved_peak();
    timeline_.reserved_final = machine_.reserved();
    timeline_.allocated_peak = machine_.allocated_peak();
    own_books_ ? find_peaks(timeline_) : set_peaks();
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

  // By the plan's own count, only sums with the space of an allocation can have a new peak. Sums and peaks
  // are kept for the spaces that have been used: most loads use two.
  void add_to_sums(unsigned bit, std::uint64_t bytes, std::size_t step, double seconds) {
    if ((used_spaces_ & bit) == 0) use_space(bit);
    const unsigned others = used_spaces_ & ~bit;
    for (unsigned mask = others;; mask = (mask - 1) & others) {
      const std::uint64_t sum = sums_[mask | bit] += bytes;
      Peak& peak = timeline_.sum_peaks[mask | bit];
      if (sum > peak.bytes) {
        peak = {.bytes = sum, .step = step, .seconds = seconds};
        if (sum > limits_in_use_[mask | bit]) timeline_.over_step = std::min(timeline_.over_step, step);
      }
      if (mask == 0) return;
    }
  }
  void take_from_sums(unsigned bit, std::uint64_t bytes) {
    const unsigned others = used_spaces_ & ~bit;
    for (unsigned mask = others;; mask = (mask - 1) & others) {
      sums_[mask | bit] -= bytes;
      if (mask == 0) return;
    }
  }
  void use_space(unsigned bit) {
    auto& peaks = timeline_.sum_peaks;
    for (unsigned mask = 0; mask <= kAllSpaces; ++mask)
      if ((mask & bit) != 0) {
        peaks[mask] = peaks[mask & used_spaces_];
        sums_[mask] = sums_[mask & used_spaces_];
      }
    used_spaces_ |= bit;
    limits_in_use_.fill(UINT64_MAX);
    for (unsigned mask = 0; mask <= kAllSpaces; ++mask)
      if (limits_[mask])
        limits_in_use_[mask & used_spaces_] = std::min(limits_in_use_[mask & used_spaces_], *limits_[mask]);
  }
  void set_peaks() {
    auto& peaks = timeline_.sum_peaks;
    for (unsigned mask = kAllSpaces; mask > 0; --mask) peaks[mask] = peaks[mask & used_spaces_];
    for (std::size_t space = 0; space < kSpaceCount; ++space) timeline_.peaks[space] = peaks[1u << space];
    timeline_.unified = peaks[kAllSpaces];
  }

  // Reading the counters costs about 10 us: once a millisecond is enough to follow slow steps.
  void add_sample(double now) {
    constexpr double kPeriod = 0.001;  // seconds
    if (!timeline_.measured.empty() && now - timeline_.measured.back().seconds < kPeriod) return;
    if (const auto sample = machine_.sample()) timeline_.measured.push_back({now, *sample});
  }

  const Of& machine_;
  const SumLimits limits_;
  std::array<std::uint64_t, kAllSpaces + 1> limits_in_use_ =
      {};  // by those of the used spaces that a sum has
  const bool own_books_;
  const bool reserves_;
  const bool counted_;
  Timeline timeline_;
  PerSpace<std::uint64_t> live_ = {};
  std::array<std::uint64_t, kAllSpaces + 1> sums_ = {};  // of live_, by mask of used spaces
  unsigned used_spaces_ = 0;
};

// Runs steps on a machine, as many at a time as it is given.
template <typename Of, bool kPeaks>
class StepRunner {
 public:
  StepRunner(Of& machine, Progress& progress, Timeline used, std::size_t blocks, const SumLimits& limits = {})
      : machine_(machine), progress_(progress), recorder_(machine, std::move(used), blocks, limits) {}

  // `look`: called with each step and its number before it runs.
  template <typename Look>
  void run(std::span<const Block> blocks, std::span<const Step> steps, std::size_t first, const Look& look) {
    recorder_.make_room(blocks.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i % kTogether == 0) {
        progress_.check_canceled();
        tell();
      }
      const Step& step = steps[i];
      look(step, first + i);
      const Block& block = blocks[graph::index(step.block)];
      if (step.verb == Verb::copy) {
        machine_.copy(step, block);
        copied_ += step.bytes;
        continue;
      }
      if (step.verb == Verb::alloc)
        machine_.alloc(step.block, block);
      else
        machine_.free(step.block, block);
      recorder_.add(first + i, step, block);
    }
  }

  Timeline finish() {
    machine_.drain();
    tell();
    return recorder_.finish();
  }

  // Modeled steps take nanoseconds: progress is told of many at once, and their total grows with them.
  static constexpr bool kModeled = Recorder<Of, kPeaks>::kModeled;

 private:
  static constexpr std::size_t kTogether = kModeled ? 1024 : 1;

  void tell() {
    if (kModeled) progress_.add_total(copied_);
    progress_.add(std::exchange(copied_, 0));
  }

  Of& machine_;
  Progress& progress_;
  Recorder<Of, kPeaks> recorder_;
  std::uint64_t copied_ = 0;  // bytes that progress has not been told of
};

template <typename Of>
Timeline run_on(Of& machine, const Plan& plan, Progress& progress, Timeline used) {
  if constexpr (!StepRunner<Of, false>::kModeled) {
    std::uint64_t total = 0;
    for (const Step& step : plan.steps) total += step.bytes;
    progress.add_total(total);
  }
  StepRunner<Of, false> runner(machine, progress, std::move(used), plan.blocks.size());
  runner.run(plan.blocks, plan.steps, 0, [](const Step&, std::size_t) {});
  return runner.finish();
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

namespace {

constexpr std::size_t kMostBlocks = 4;  // of a storage

}  // namespace

class StreamedRun::Impl final : public StepRunner<DryMachine, true> {
 public:
  using StepRunner::StepRunner;
};

StreamedRun::StreamedRun(std::string_view name, const graph::MetaGraph& graph, DryMachine& machine,
                         const SumLimits& limits, Progress& progress, Timeline used)
    : name_(name),
      checker_(graph),
      reads_(graph),
      // room for the largest loads: untouched memory costs nothing
      run_(std::make_unique<Impl>(machine, progress, std::move(used), kMostBlocks * graph.storages.size(),
                                  limits)) {}

StreamedRun::~StreamedRun() = default;

// A step is a few instructions, and a table of loads has a hundred million: calls would cost a third more.
[[gnu::flatten]] void StreamedRun::take(std::span<const Block> blocks, std::span<const Step> steps,
                                        std::size_t first) {
  checker_.begin(blocks);
  run_->run(blocks, steps, first, [&](const Step& step, std::size_t at) {
    if (!checker_.is_plain(step)) [[unlikely]]
      if (const auto problem = checker_.check_step(step))
        throw Error(ErrorCode::limit, "{}: step {}: {}", name_, at, *problem);
    reads_.add(step);
  });
}

Timeline StreamedRun::finish() { return run_->finish(); }

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
