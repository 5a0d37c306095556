// Times copies between blocks of one plan, each until the device has completed it.
#include "core/gpu/measure_link.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/vulkan_machine.h"
#include "core/load/measure/rehearse.h"

#include <memory>
#include <tuple>
#include <vector>

#include <fmt/core.h>

namespace loadline::gpu {
namespace {

constexpr int kRuns = 7;

plan::Block block_of(plan::Space space, std::uint64_t bytes) {
  return {.bytes = bytes, .space = space, .use = plan::BlockUse::temporary, .storage = {}, .extra = "rates"};
}

// Seconds of a copy of the whole block. The first copy is not timed: it touches the memory and raises clocks.
double seconds_of(VulkanMachine& machine, const plan::Plan& plan, plan::BlockId to, plan::BlockId from,
                  Progress& progress) {
  const plan::Step step{.verb = plan::Verb::copy, .block = to, .from = from, .bytes = plan.block(to).bytes};
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    progress.check_canceled();
    const double start = machine.now();
    machine.copy(step, plan.block(to));
    machine.drain();
    if (run > 0) seconds.push_back(machine.now() - start);
  }
  return load::median(seconds);
}

// Seconds in which the device gives a new block with all its pages. Some drivers find them only when work
// first uses the block: a small copy is such work.
double seconds_of_pages(const Device& device, const io::StorageReader& nothing, plan::Space space,
                        std::uint64_t bytes, Progress& progress) {
  constexpr std::uint64_t kSmall = 256;
  plan::Plan plan;
  const plan::BlockId id = plan::alloc(plan, block_of(space, bytes));
  const bool on_device = space == plan::Space::device;
  const plan::BlockId other =
      plan::alloc(plan, block_of(on_device ? plan::Space::staging : plan::Space::device, kSmall));
  plan::Step first_use = {.verb = plan::Verb::copy, .block = id, .from = other, .bytes = kSmall};
  if (!on_device) std::tie(first_use.block, first_use.from) = std::tuple(other, id);
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    progress.check_canceled();
    VulkanMachine machine(device, nothing, plan, {.take_at_once = true});
    machine.alloc(other, plan.block(other));
    const double start = machine.now();
    machine.alloc(id, plan.block(id));
    machine.copy(first_use, plan.block(first_use.block));
    machine.drain();
    seconds.push_back(machine.now() - start);
  }
  return load::median(seconds);
}

}  // namespace

void measure_link(const Device& device, std::uint64_t bytes, load::MeasuredRates& rates, Progress& progress) {
  const io::StorageReader nothing(std::make_shared<const graph::MetaGraph>());
  load::MeasuredRates found;
  const auto keep = [&](const char* key, double seconds) {
    found.values[key] = static_cast<double>(bytes) / seconds;
    found.how[key] = fmt::format("{}, median of {}", format_bytes(bytes), kRuns);
  };
  keep("staging_pages", seconds_of_pages(device, nothing, plan::Space::staging, bytes, progress));
  keep("device_pages", seconds_of_pages(device, nothing, plan::Space::device, bytes, progress));

  plan::Plan plan;
  const auto make = [&](plan::Space space) { return plan::alloc(plan, block_of(space, bytes)); };
  const plan::BlockId host = make(plan::Space::host), staging = make(plan::Space::staging);
  const plan::BlockId first = make(plan::Space::device), second = make(plan::Space::device);
  VulkanMachine machine(device, nothing, plan);
  for (const plan::BlockId id : {host, staging, first, second}) machine.alloc(id, plan.block(id));
  const auto measure = [&](const char* key, plan::BlockId to, plan::BlockId from) {
    keep(key, seconds_of(machine, plan, to, from, progress));
  };
  measure("link", first, staging);
  measure("pageable_link", first, host);
  measure("device_copy", second, first);
  // all of them or none
  for (const auto& [key, value] : found.values) rates.values[key] = value;
  for (const auto& [key, text] : found.how) rates.how[key] = text;
  rates.device = safe_display(device.info().name);
}

void measure_device(const DeviceOptions& wanted, std::uint64_t bytes, load::MeasuredRates& rates,
                    Progress& progress) {
  DeviceOptions options = wanted;
  const DeviceInfo info = Device(options).info();
  QueueRates& found = options.queue_rates;
  found.device = safe_display(info.name);
  for (const QueueFamily& family : info.queues) {
    // families of encoders and decoders copy too, but loads would disturb them
    if (info.queues.size() < 2 || (!family.only_copies && !family.computes && !family.draws)) continue;
    options.queues = {family.index};
    try {
      load::MeasuredRates measured;
      measure_link(Device(options), bytes, measured, progress);
      found.rates[queue_family_key(family)] = measured.values.at("link");
    } catch (const Error& error) {
      if (error.code() == ErrorCode::canceled) throw;  // a family that fails is not chosen by its rate
    }
  }
  options.queues = wanted.queues;
  measure_link(Device(options), bytes, rates, progress);
  rates.queues = found.rates;
}

QueueRates queue_rates(const std::optional<load::MeasuredRates>& rates) {
  return rates ? QueueRates{rates->device, rates->queues} : QueueRates();
}

}  // namespace loadline::gpu
