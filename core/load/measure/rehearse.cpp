// Page cache, samples, and the run itself.
#include "core/load/measure/rehearse.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/io/file_system.h"
#include "core/io/graph_reader.h"
#include "core/io/striped_reader.h"
#include "core/io/system_memory.h"
#include "core/load/answer/projection.h"
#include "core/plan/block_contents.h"
#include "core/plan/dry_machine.h"
#include "core/plan/host_machine.h"
#include "core/plan/plan.h"
#include "core/plan/run.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <mutex>
#include <utility>

namespace loadline::load {

// --- Sums over the files behind storages.

std::vector<graph::StorageId> one_of_each_file(const graph::MetaGraph& graph) {
  std::vector<bool> seen(graph.files.size(), false);
  std::vector<graph::StorageId> found;
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const graph::Storage& storage = graph.storages[i];
    if (storage.bytes == 0 || seen[graph::index(storage.file)]) continue;
    seen[graph::index(storage.file)] = true;
    found.push_back(graph::StorageId{static_cast<std::uint32_t>(i)});
  }
  return found;
}

std::uint64_t file_bytes(const io::StorageReader& reader, const std::vector<graph::StorageId>& files) {
  std::uint64_t bytes = 0;
  for (const graph::StorageId id : files) bytes += reader.file_of(id).size();
  return bytes;
}

std::uint64_t cached_bytes(const io::StorageReader& reader, const std::vector<graph::StorageId>& files) {
  std::uint64_t bytes = 0;
  for (const graph::StorageId id : files) bytes += io::resident_bytes(reader.file_of(id));
  return bytes;
}

std::optional<std::uint64_t> bytes_read_from_cache(const io::StorageReader& reader,
                                                   const std::vector<graph::StorageId>& files,
                                                   io::FileReading reading) {
  std::uint64_t bytes = 0;
  for (const graph::StorageId id : files) try {
      const io::SourceFile& file = reader.file_of(id);
      if (io::file_system_of(file.path()).memory) {
        bytes += file.size();
        continue;
      }
      if (!io::tells_residency(file)) return std::nullopt;
      const std::uint64_t held = io::resident_bytes(file);
      if (!io::reads_past_cache(reading, held, file.size()) || io::DirectFile::open(file) == nullptr)
        bytes += held;
    } catch (const Error&) {
      return std::nullopt;
    }
  return bytes;
}

// --- A table of fixed size; each entry is the maximum of a group of samples, and groups double when the
// table is full.

namespace {

void raise(plan::MemorySample& most, const plan::MemorySample& sample) {
  most.memory.rss_anon = std::max(most.memory.rss_anon, sample.memory.rss_anon);
  most.memory.rss_file = std::max(most.memory.rss_file, sample.memory.rss_file);
  most.memory.rss_shmem = std::max(most.memory.rss_shmem, sample.memory.rss_shmem);
  most.device_counted = std::max(most.device_counted, sample.device_counted);
}

}  // namespace

// Zero-initialized vectors have all their pages touched.
SampleLog::SampleLog(std::size_t most) : samples_(most), steps_(most) { assert(most >= 2 && most % 2 == 0); }

void SampleLog::add(const plan::MemorySample& sample, std::size_t step) {
  if (in_group_ > 0) {
    raise(samples_[count_ - 1], sample);
  } else {
    if (count_ == samples_.size()) halve();
    samples_[count_] = sample;
    steps_[count_++] = step;
  }
  in_group_ = (in_group_ + 1) % group_;
}

void SampleLog::halve() {
  for (std::size_t i = 0; i < count_ / 2; ++i) {
    plan::MemorySample sample = samples_[2 * i];
    raise(sample, samples_[2 * i + 1]);
    samples_[i] = sample;
    steps_[i] = steps_[2 * i];
  }
  count_ /= 2;
  group_ *= 2;
}

SampleLog::Entries SampleLog::entries() const {
  const auto end = static_cast<std::ptrdiff_t>(count_);
  return {{samples_.begin(), samples_.begin() + end}, {steps_.begin(), steps_.begin() + end}};
}

SampleLog::Entries SampleLog::take() {
  SampleLog taken = std::exchange(*this, SampleLog(samples_.size()));
  taken.samples_.resize(taken.count_);
  taken.steps_.resize(taken.count_);
  return {std::move(taken.samples_), std::move(taken.steps_)};
}

// --- A run under the eyes of a thread that samples.

void require_runnable(const graph::MetaGraph& graph, const plan::Plan& plan, std::string_view what) {
  graph::require_sound(graph, what);
  if (const auto fault = plan::check_plan(plan, graph))
    throw Error(ErrorCode::usage, "the plan is not valid: " + *fault);
  if (const std::string refusal = plan::cast_refusal(plan); !refusal.empty())
    throw Error(ErrorCode::unsupported, refusal);
}

SampledRun sampled_run(const plan::Plan& plan, plan::Machine& machine, SampleLog samples, Progress& progress,
                       const SampleOptions& options) {
  SampledRun result;
  plan::StepCounter counted(machine);
  std::mutex one_at_a_time;
  const auto look = [&] {
    const std::lock_guard lock(one_at_a_time);
    plan::MemorySample sample = {machine.now(), *machine.sample()};
    if (options.device_counted) sample.device_counted = options.device_counted();
    const std::size_t step = counted.step();
    samples.add(sample, step);
    result.measured_held = std::max(result.measured_held, sample.memory.rss_anon + sample.memory.rss_shmem);
    if (options.sampled) options.sampled(sample, step);
  };
  look();
  // also where blocks are about to go: a machine that is busy may give the other thread no time
  counted.look_before_release(look);
  Watch counters(std::chrono::milliseconds(1), look);
  result.timeline = plan::run(plan, counted, progress);
  counters.finish();
  look();
  SampleLog::Entries taken = samples.take();
  plan::MemorySample most;
  for (const plan::MemorySample& sample : taken.samples) raise(most, sample);
  result.measured = most.memory;
  result.device_counted = most.device_counted;
  result.timeline.measured = std::move(taken.samples);
  result.steps = std::move(taken.steps);
  return result;
}

// --- A plan on the host machine.

namespace {

// Refuses a plan that needs more memory than the system has available. Mapped pages do not count.
void require_room(std::uint64_t needs) {
  const auto room = io::available_system_memory();
  if (room && needs > *room)
    throw Error(ErrorCode::no_fit,
                "cannot be measured here: needs {} ({} bytes) of memory, {} ({} bytes) are available",
                format_bytes(needs), needs, format_bytes(*room), *room);
}

}  // namespace

HostMeasurement measure_on_host(const graph::MetaGraphPtr& graph, const plan::Plan& plan, bool cold,
                                Progress& progress) {
  require_runnable(*graph, plan, "measure");
  const bool maps = std::ranges::any_of(
      plan.blocks, [](const plan::Block& block) { return block.space == plan::Space::page_cache; });
  if (const std::string refusal = maps ? mapping_refusal(*graph) : ""; !refusal.empty())
    throw Error(ErrorCode::unsupported, refusal);
  HostMeasurement result;
  {
    plan::DryMachine dry;
    const plan::Timeline projected = plan::run(plan, dry);
    for (const MemoryCounter& counter : kMemoryCounters)
      result.projected.*counter.count = plan::peak_over(projected, counter.spaces).bytes;
    result.projected_held = plan::peak_over(projected, plan::kHeldSpaces).bytes;
    require_room(result.projected_held);
  }
  const io::StorageReader reader(graph);
  const std::vector<graph::StorageId> files = one_of_each_file(*graph);
  PageCacheUse& cache = result.page_cache;
  cache.files = file_bytes(reader, files);
  if (cold)
    for (const graph::StorageId id : files) io::drop_pages(reader.file_of(id));
  cache.before = cached_bytes(reader, files);
  cache.most = cache.before;
  io::release_free_memory();  // memory that is kept from before would not be counted again
  SampleLog samples;
  {
    plan::HostMachine machine(reader);
    Watch pages(std::chrono::milliseconds(20),
                [&] { cache.most = std::max(cache.most, cached_bytes(reader, files)); });
    static_cast<SampledRun&>(result) = sampled_run(plan, machine, std::move(samples), progress);
    pages.finish();
  }
  cache.after = cached_bytes(reader, files);
  cache.most = std::max(cache.most, cache.after);
  return result;
}

}  // namespace loadline::load
