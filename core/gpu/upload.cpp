// Projection, run and verification of one upload.
#include "core/gpu/upload.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/device.h"
#include "core/gpu/vulkan_machine.h"
#include "core/io/storage_reader.h"
#include "core/plan/dry_machine.h"
#include "core/plan/run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace loadline::gpu {
namespace {

// Blocks that outlive the plan and hold a storage on the device.
std::vector<BlockId> loaded_blocks(const Plan& plan, const Timeline& timeline) {
  std::vector<BlockId> loaded;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Block& block = plan.blocks[i];
    const Lifetime& life = timeline.lifetimes[i];
    if (block.space == Space::device && block.use == BlockUse::storage && block.storage &&
        life.from_step != kNever && life.to_step == kNever)
      loaded.push_back(BlockId{static_cast<std::uint32_t>(i)});
  }
  return loaded;
}

// Device blocks of storages that the plan never frees: what loaded_blocks will find.
std::uint64_t bytes_to_verify(const Plan& plan) {
  std::vector<bool> freed(plan.blocks.size(), false);
  for (const Step& step : plan.steps)
    if (step.verb == Verb::free) freed[index(step.block)] = true;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Block& block = plan.blocks[i];
    if (!freed[i] && block.space == Space::device && block.use == BlockUse::storage && block.storage)
      bytes += block.bytes;
  }
  return bytes;
}

// Reads device blocks and their files side by side.
class Verifier {
 public:
  Verifier(VulkanMachine& machine, const StorageReader& reader, Progress& progress)
      : machine_(machine), reader_(reader), progress_(progress), owners_(first_owner(reader.graph())) {}

  // What differs first, or an empty string.
  std::string compare(const Plan& plan, const std::vector<BlockId>& blocks) {
    std::vector<bool> seen(reader_.graph().storages.size(), false);
    for (const BlockId id : blocks) {
      compare_block(id, *plan.block(id).storage);
      seen[index(*plan.block(id).storage)] = true;
      if (!difference_.empty()) return difference_;
    }
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (!seen[i] && owners_[i] && reader_.graph().storages[i].bytes > 0)
        return fmt::format("tensor '{}' is not on the device",
                           name(StorageId{static_cast<std::uint32_t>(i)}));
    return {};
  }

 private:
  std::string name(StorageId storage) const {
    const auto owner = owners_[index(storage)];
    return owner ? safe_display(reader_.graph().tensor(*owner).name)
                 : fmt::format("storage {}", index(storage));
  }

  void compare_block(BlockId id, StorageId storage) {
    machine_.read_back(id, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
      progress_.check_cancelled();
      expected_.resize(bytes.size());
      reader_.read(storage, offset, expected_);
      progress_.add(bytes.size());
      const auto differs = std::mismatch(bytes.begin(), bytes.end(), expected_.begin());
      if (differs.first == bytes.end() || !difference_.empty()) return;
      difference_ =
          fmt::format("tensor '{}': byte {} is 0x{:02x} on the device and 0x{:02x} in the file",
                      name(storage), offset + static_cast<std::uint64_t>(differs.first - bytes.begin()),
                      static_cast<unsigned>(*differs.first), static_cast<unsigned>(*differs.second));
    });
  }

  VulkanMachine& machine_;
  const StorageReader& reader_;
  Progress& progress_;
  std::vector<std::optional<TensorId>> owners_;
  std::vector<std::byte> expected_;
  std::string difference_;
};

void count_tensors(const MetaGraph& graph, const Plan& plan, const std::vector<BlockId>& loaded,
                   UploadReport& report) {
  std::vector<bool> on_device(graph.storages.size(), false);
  for (const BlockId id : loaded) on_device[index(*plan.block(id).storage)] = true;
  for (std::size_t i = 0; i < graph.storages.size(); ++i)
    if (on_device[i]) report.bytes += graph.storages[i].bytes;
  // a tensor without bytes needs no block to be there
  for (const Tensor& tensor : graph.tensors)
    if (on_device[index(tensor.storage)] || graph.storage(tensor.storage).bytes == 0) ++report.tensors;
}

// The measured half of a report. All that is made on the device is gone when this returns.
UploadReport measure(const Device& device, const MetaGraphPtr& graph, const Plan& plan, bool verify,
                     Progress& progress) {
  UploadReport report;
  report.device = device.info().name;
  report.software_device = device.info().type == DeviceType::cpu;
  const StorageReader reader(graph);
  VulkanMachine machine(device, reader, plan);
  // announced before the run, so that progress never steps back
  if (verify) progress.add_total(bytes_to_verify(plan));
  report.measured = run(plan, machine, progress);
  report.device_budget_peak = machine.device_budget_peak();
  const std::vector<BlockId> loaded = loaded_blocks(plan, report.measured);
  count_tensors(*graph, plan, loaded, report);
  if (verify) {
    report.mismatch = Verifier(machine, reader, progress).compare(plan, loaded);
    report.verified = report.mismatch.empty();
  }
  report.seconds = report.measured.seconds;
  report.bytes_per_second = report.seconds > 0 ? static_cast<double>(report.bytes) / report.seconds : 0;
  report.staging_bytes = report.measured.peaks[index(Space::staging)].bytes;
  report.device_ledger_peak = report.measured.peaks[index(Space::device)].bytes;
  for (const MemorySample& sample : report.measured.measured)
    report.rss_anon_peak = std::max(report.rss_anon_peak, sample.memory.rss_anon);
  return report;
}

}  // namespace

UploadReport upload(const MetaGraphPtr& graph, const Plan& plan, const UploadOptions& options,
                    Progress& progress) {
  require_sound(*graph, "upload");
  if (const auto fault = check_plan(plan, *graph))
    throw Error(ErrorCode::usage, "the plan is not valid: " + *fault);
  std::optional<Device> device(std::in_place, DeviceOptions{options.device, options.validation});
  UploadReport report = measure(*device, graph, plan, options.verify, progress);
  DryMachine dry;
  report.projected = run(plan, dry);
  const unsigned anonymous =
      report.software_device ? space_bit(Space::host) | space_bit(Space::staging) | space_bit(Space::device)
                             : space_bit(Space::host);
  report.projected_rss_anon = peak_over(report.projected, plan, anonymous).bytes;
  // after the device is gone, so that what was left on it is among the messages
  const std::shared_ptr<const MessageLog> log = device->log();
  device.reset();
  report.validation_messages = log->messages();
  return report;
}

}  // namespace loadline::gpu
