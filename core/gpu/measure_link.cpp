// Times copies between blocks of one plan, each until the device has completed it.
#include "core/gpu/measure_link.h"

#include "core/base/text.h"
#include "core/gpu/vulkan_machine.h"
#include "core/load/measure_rates.h"

#include <memory>
#include <vector>

#include <fmt/format.h>

namespace loadline::gpu {
namespace {

constexpr int kRuns = 7;

// Seconds of a copy of the whole block. The first copy is not timed: it touches the memory and raises clocks.
double seconds_of(VulkanMachine& machine, const Plan& plan, BlockId to, BlockId from, Progress& progress) {
  const Step step{.verb = Verb::copy, .block = to, .from = from, .bytes = plan.block(to).bytes};
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    progress.check_cancelled();
    const double start = machine.now();
    machine.copy(step, plan.block(to));
    machine.drain();
    if (run > 0) seconds.push_back(machine.now() - start);
  }
  return median(seconds);
}

}  // namespace

void measure_link(const Device& device, std::uint64_t bytes, MeasuredRates& rates, Progress& progress) {
  const auto nothing = std::make_shared<const MetaGraph>();
  Plan plan;
  const auto make = [&](Space space) {
    return alloc(
        plan, {.space = space, .bytes = bytes, .use = BlockUse::temporary, .storage = {}, .label = "rates"});
  };
  const BlockId host = make(Space::host), staging = make(Space::staging);
  const BlockId first = make(Space::device), second = make(Space::device);
  const StorageReader reader(nothing);
  VulkanMachine machine(device, reader, plan);
  for (const BlockId id : {host, staging, first, second}) machine.alloc(id, plan.block(id));
  const auto measure = [&](const char* key, BlockId to, BlockId from) {
    rates.values[key] = static_cast<double>(bytes) / seconds_of(machine, plan, to, from, progress);
    rates.how[key] = fmt::format("{}, median of {}", format_bytes(bytes), kRuns);
  };
  measure("link", first, staging);
  measure("pageable_link", first, host);
  measure("device_copy", second, first);
  rates.device = device.info().name;
}

}  // namespace loadline::gpu
