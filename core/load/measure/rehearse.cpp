// Threads that sample counters while the host machine runs.
#include "core/load/measure/rehearse.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/watch.h"
#include "core/io/page_residency.h"
#include "core/io/storage_reader.h"
#include "core/io/system_memory.h"
#include "core/load/answer/projection.h"
#include "core/load/measure/cached_files.h"
#include "core/load/measure/sample_log.h"
#include "core/plan/cast_range.h"
#include "core/plan/host_machine.h"
#include "core/plan/space_sum.h"
#include "core/plan/step_counter.h"

#include <algorithm>
#include <chrono>
#include <mutex>

namespace loadline {
namespace {

void require_runnable(const MetaGraph& graph, const Plan& plan) {
  require_sound(graph, "measure");
  if (const auto fault = check_plan(plan, graph))
    throw Error(ErrorCode::usage, "the plan is not valid: " + *fault);
  if (const std::string refusal = cast_refusal(plan); !refusal.empty())
    throw Error(ErrorCode::unsupported, refusal);
  const bool maps =
      std::ranges::any_of(plan.blocks, [](const Block& block) { return block.space == Space::page_cache; });
  if (const std::string refusal = maps ? mapping_refusal(graph) : ""; !refusal.empty())
    throw Error(ErrorCode::unsupported, refusal);
}

// Refuses a plan that needs more memory than the system has available. Mapped pages do not count.
void require_room(const Timeline& projected) {
  const std::uint64_t needs = peak_over(projected, kAllSpaces & ~space_bit(Space::page_cache)).bytes;
  const auto room = available_system_memory();
  if (room && needs > *room)
    throw Error(ErrorCode::no_fit,
                "cannot be measured here: needs {} ({} bytes) of memory, {} ({} bytes) are available",
                format_bytes(needs), needs, format_bytes(*room), *room);
}

}  // namespace

HostMeasurement measure_on_host(const MetaGraphPtr& graph, const Plan& plan, bool cold, Progress& progress) {
  require_runnable(*graph, plan);
  HostMeasurement result;
  {
    DryMachine dry;
    const Timeline projected = run(plan, dry);
    require_room(projected);
    for (const MemoryCounter& counter : kMemoryCounters)
      result.projected.*counter.count = peak_over(projected, counter.spaces).bytes;
    result.projected_held = peak_over(projected, kAllSpaces & ~space_bit(Space::page_cache)).bytes;
  }
  const StorageReader reader(graph);
  const std::vector<StorageId> files = one_of_each_file(*graph);
  result.page_cache.files = file_bytes(reader, files);
  if (cold)
    for (const StorageId id : files) drop_pages(reader.file_of(id));
  result.page_cache.before = cached_bytes(reader, files);
  result.page_cache.most = result.page_cache.before;

  SampleLog samples;  // made before the machine's first sample, so its memory is in no difference
  {
    HostMachine machine(reader);
    StepCounter counted(machine);
    std::mutex one_at_a_time;
    const auto look = [&] {
      const std::lock_guard lock(one_at_a_time);
      const ProcessMemory memory = *machine.sample();
      result.measured_held = std::max(result.measured_held, memory.rss_anon + memory.rss_shmem);
      samples.add({machine.now(), memory}, counted.step());
    };
    look();
    counted.look_before_release(look);
    Watch counters(std::chrono::milliseconds(1), look);
    Watch pages(std::chrono::milliseconds(20), [&] {
      result.page_cache.most = std::max(result.page_cache.most, cached_bytes(reader, files));
    });
    result.timeline = run(plan, counted, progress);
    pages.finish();
    counters.finish();
    look();
  }
  result.page_cache.after = cached_bytes(reader, files);
  result.page_cache.most = std::max(result.page_cache.most, result.page_cache.after);

  SampleLog::Entries taken = samples.take();
  result.timeline.measured = std::move(taken.samples);
  result.steps = std::move(taken.steps);
  for (const MemorySample& sample : result.timeline.measured)
    for (const MemoryCounter& counter : kMemoryCounters)
      result.measured.*counter.count = std::max(result.measured.*counter.count, sample.memory.*counter.count);
  return result;
}

}  // namespace loadline
