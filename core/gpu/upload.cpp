// Projects, runs and verifies one upload.
#include "core/gpu/upload.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/device.h"
#include "core/gpu/memory_need.h"
#include "core/gpu/vulkan_machine.h"
#include "core/io/graph_reader.h"
#include "core/io/system_memory.h"
#include "core/load/answer/projection.h"
#include "core/load/measure/rehearse.h"
#include "core/plan/block_contents.h"
#include "core/plan/dry_machine.h"
#include "core/plan/plan.h"
#include "core/plan/run.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include <fmt/core.h>

namespace loadline::gpu {
namespace {

// The storages on the device at the end of a plan.
class OnDevice {
 public:
  explicit OnDevice(const plan::Plan& plan, std::size_t storages)
      : contents_(plan::final_contents(plan)), covered_(storages, 0) {
    for (std::size_t i = 0; i < contents_.size(); ++i) {
      const plan::Block& block = plan.blocks[i];
      if (block.space != plan::Space::device || contents_[i].empty()) continue;
      if (block.prepack()) {
        bytes_ += block.bytes;
        contents_[i] = {{0, block.addressed_bytes(), *block.storage, 0, {}}};
        covered_[graph::index(*block.storage)] += block.addressed_bytes();
        blocks_.push_back(plan::BlockId{static_cast<std::uint32_t>(i)});
        continue;
      }
      // a block for one storage must hold that storage, whatever the plan copied into it
      if (block.storage && block.use == plan::BlockUse::storage)
        contents_[i] = {{0, block.bytes, *block.storage, 0, contents_[i].front().cast}};
      blocks_.push_back(plan::BlockId{static_cast<std::uint32_t>(i)});
      for (const plan::Extent& extent : contents_[i]) {
        covered_[graph::index(extent.storage)] += extent.storage_bytes();
        bytes_ += extent.bytes;
      }
    }
  }

  const std::vector<plan::BlockId>& blocks() const { return blocks_; }
  std::span<const plan::Extent> extents(plan::BlockId id) const { return contents_[graph::index(id)]; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t covered(graph::StorageId id) const { return covered_[graph::index(id)]; }
  bool holds(const graph::MetaGraph& graph, graph::StorageId id) const {
    return covered_[graph::index(id)] >= graph.storage(id).bytes;
  }

 private:
  std::vector<std::vector<plan::Extent>> contents_;
  std::vector<plan::BlockId> blocks_;
  std::vector<std::uint64_t> covered_;  // bytes of each storage
  std::uint64_t bytes_ = 0;
};

// Compares device blocks with their files.
class Verifier {
 public:
  Verifier(VulkanMachine& machine, const io::StorageReader& reader, Progress& progress)
      : machine_(machine),
        reader_(reader),
        progress_(progress),
        owners_(graph::first_owner(reader.graph())) {}

  // A description of the first difference, or an empty string.
  std::string compare(const plan::Plan& plan, const OnDevice& loaded, const load::Placement& placement) {
    for (const plan::BlockId id : loaded.blocks()) {
      if (const convert::Prepack* const prepack = plan.block(id).prepack())
        compare_packed(id, *prepack, *plan.block(id).storage);
      else
        for (const plan::Extent& extent : loaded.extents(id)) compare_extent(id, extent);
      if (!difference_.empty()) return difference_;
    }
    const graph::MetaGraph& graph = reader_.graph();
    for (std::size_t i = 0; i < graph.storages.size(); ++i) {
      const graph::StorageId id{static_cast<std::uint32_t>(i)};
      if (owners_[i] && placement.of(id) == load::Home::device && !loaded.holds(graph, id))
        return fmt::format("tensor '{}' is not{} on the device", name(id),
                           loaded.covered(id) > 0 ? " whole" : "");
    }
    return {};
  }

 private:
  std::string name(graph::StorageId storage) const {
    const auto owner = owners_[graph::index(storage)];
    return owner ? safe_display(reader_.graph().tensor(*owner).name)
                 : fmt::format("storage {}", graph::index(storage));
  }

  // Notes the first byte that differs. `first` is the number by which the first of the bytes is called, and
  // `as` says what they are compared with.
  void note_difference(graph::StorageId storage, std::uint64_t first, std::span<const std::byte> bytes,
                       std::span<const std::byte> expected, std::string_view as) {
    progress_.add(bytes.size());
    const auto differs = std::mismatch(bytes.begin(), bytes.end(), expected.begin());
    if (differs.first == bytes.end() || !difference_.empty()) return;
    difference_ =
        fmt::format("tensor '{}': byte {} is 0x{:02x} on the device and 0x{:02x} {}", name(storage),
                    first + static_cast<std::uint64_t>(differs.first - bytes.begin()),
                    static_cast<unsigned>(*differs.first), static_cast<unsigned>(*differs.second), as);
  }

  void compare_extent(plan::BlockId id, const plan::Extent& extent) {
    machine_.read_back(id, extent.offset, extent.bytes,
                       [&](std::uint64_t at, std::span<const std::byte> bytes) {
                         progress_.check_canceled();
                         expected_.resize(bytes.size());
                         plan::expected_bytes(reader_, {&extent, 1}, extent.offset + at, expected_);
                         note_difference(extent.storage, extent.cast ? at : extent.storage_offset + at, bytes,
                                         expected_, extent.cast ? "as cast from the file" : "in the file");
                       });
  }

  // The weight is packed again, whole, in host memory.
  void compare_packed(plan::BlockId id, const convert::Prepack& how, graph::StorageId storage) {
    progress_.check_canceled();
    expected_.assign(static_cast<std::size_t>(convert::prepacked_bytes(how)), std::byte{0});
    const plan::Step whole{
        .verb = plan::Verb::copy, .block = id, .from = storage, .bytes = convert::stored_bytes(how)};
    plan::fill_prepacked(whole, how, expected_, [&](std::uint64_t at, std::span<std::byte> out) {
      progress_.check_canceled();
      reader_.read(storage, at, out);
    });
    machine_.read_back(id, [&](std::uint64_t at, std::span<const std::byte> bytes) {
      progress_.check_canceled();
      note_difference(storage, at, bytes, std::span(expected_).subspan(static_cast<std::size_t>(at)),
                      "as packed on the host");
    });
  }

  VulkanMachine& machine_;
  const io::StorageReader& reader_;
  Progress& progress_;
  std::vector<std::optional<graph::TensorId>> owners_;
  std::vector<std::byte> expected_;
  std::string difference_;
};

// The driver's count of the device's memory, for a thread that samples. A driver may take far longer to
// answer than the kernel's counters do: it is asked so seldom that it takes at most a twentieth of the time.
class DriverCount {
 public:
  explicit DriverCount(const VulkanMachine& machine) : machine_(machine) {}

  // The last answer; a new one if it is time.
  std::uint64_t now() {
    constexpr double kLeastPause = 19;  // times the time of an answer
    const double begin = machine_.now();
    if (begin < next_) return last_;
    last_ = machine_.device_budget_growth().value_or(0);
    const double end = machine_.now();
    next_ = end + kLeastPause * (end - begin);
    return last_;
  }

 private:
  const VulkanMachine& machine_;
  std::uint64_t last_ = 0;
  double next_ = 0;  // on the machine's clock
};

// What the device cannot do with what it holds, and how files are read all the same.
std::vector<std::string> notes_on(const Device& device, const graph::MetaGraph& graph, const plan::Plan& plan,
                                  bool mapped_all_the_same) {
  std::vector<std::string> notes;
  if (const Unbindable large = unbindable_tensors(graph, plan, device.info()); large.largest)
    notes.push_back(fmt::format(
        "A shader on this device sees at most {} of a buffer. {} larger, the largest is '{}' ({}): it must "
        "be used in parts.",
        format_bytes(device.info().max_binding),
        large.count == 1 ? "1 tensor is" : fmt::format("{} tensors are", format_grouped(large.count)),
        safe_display(graph.tensor(*large.largest).name), format_bytes(large.most)));
  if (mapped_all_the_same)
    notes.emplace_back("This load maps the files: it reads them through the page cache all the same.");
  return notes;
}

// Whether the system counts staging memory as mapped pages of files (RssFile): NVIDIA's driver maps a device
// file, whose pages are counted; those of other drivers are counted nowhere. It is tried.
bool maps_staging_as_file(const Device& device) {
  constexpr std::uint64_t kTried = 8 << 20;
  const std::uint64_t before = io::read_process_memory().rss_file;
  MemoryPool pool(device, MemoryUse::staging, {kTried, {}}, true);
  const Allocation tried = pool.allocate(kTried);
  std::ranges::fill(tried.mapped, std::byte{1});
  return io::read_process_memory().rss_file >= before + kTried / 2;
}

void add_run(UploadReport& report, load::SampledRun run, const VulkanMachine& machine) {
  report.measured = std::move(run.timeline);
  report.sample_steps = std::move(run.steps);
  report.rss_anon_peak = run.measured.rss_anon;
  report.rss_file_peak = run.measured.rss_file;
  report.device_budget_peak = machine.device_budget_peak();
  if (report.device_budget_peak)
    report.device_budget_peak = std::max(*report.device_budget_peak, run.device_counted);
  report.imported_bytes = machine.imported_bytes();
  report.seconds = report.measured.seconds;
  report.bytes_per_second = report.seconds > 0 ? static_cast<double>(report.bytes) / report.seconds : 0;
  report.staging_bytes = report.measured.peaks[plan::index(plan::Space::staging)].bytes;
  report.device_ledger_peak = report.measured.peaks[plan::index(plan::Space::device)].bytes;
}

// The measured half of a report. The machine and its device memory are gone when this returns.
UploadReport measure(const Device& device, const graph::MetaGraphPtr& graph, const plan::Plan& plan,
                     const UploadOptions& options, Progress& progress) {
  UploadReport report;
  report.device = device.info().name;
  report.queue = device.queue_kind();
  report.packs = packs_weights(plan);
  report.queue_families = device.info().queues.size();
  report.software_device = device.info().type == DeviceType::cpu;
  report.mapped_spaces = plan::space_bit(plan::Space::page_cache);
  if (!report.software_device && maps_staging_as_file(device))
    report.mapped_spaces |= plan::space_bit(plan::Space::staging);
  const OnDevice loaded(plan, graph->storages.size());
  if (options.verify && loaded.blocks().empty() && graph::storage_bytes(*graph) > 0)
    throw Error(ErrorCode::usage, "nothing stays on the device that could be verified");
  const io::StorageReader reader(graph);
  io::release_free_memory();  // memory that is kept from before would not be counted again
  load::SampleLog samples;
  VulkanMachine machine(device, reader, plan,
                        {.reads = options.reads,
                         .take_at_once = true,
                         .import_pages = options.import_pages.value_or(
                             !report.software_device && options.reads.reading == io::FileReading::cached)});
  // after the fit check, since it takes time with large files
  const std::vector<graph::StorageId> files = load::one_of_each_file(*graph);
  report.file_bytes = load::file_bytes(reader, files);
  const bool maps = std::ranges::any_of(
      plan.blocks, [](const plan::Block& block) { return block.space == plan::Space::page_cache; });
  report.cached_bytes =
      load::bytes_read_from_cache(reader, files, maps ? io::FileReading::cached : options.reads.reading);
  report.notes = notes_on(device, *graph, plan, maps && options.reads.reading != io::FileReading::cached);
  // announced before the run, so that the fraction done never falls
  if (options.verify) progress.add_total(loaded.bytes());
  report.bytes = loaded.bytes();
  DriverCount driver(machine);
  add_run(report,
          load::sampled_run(plan, machine, std::move(samples), progress,
                            {.device_counted = [&] { return driver.now(); }, .sampled = options.sampled}),
          machine);
  // a tensor without bytes counts as loaded without a block
  for (const graph::Tensor& tensor : graph->tensors)
    if (loaded.holds(*graph, tensor.storage)) ++report.tensors;
  if (options.verify) {
    report.mismatch = Verifier(machine, reader, progress).compare(plan, loaded, options.placement);
    report.verified = report.mismatch.empty();
  }
  return report;
}

double expected_seconds(const UploadReport& report, const plan::Plan& plan, const graph::MetaGraph& graph,
                        const plan::CostModel& costs) {
  if (report.cached_bytes.value_or(0) == 0) return report.projected_seconds;
  const double share = static_cast<double>(*report.cached_bytes) / static_cast<double>(report.file_bytes);
  const plan::CostModel cached = plan::with_cached_files(costs, share, report.imported_bytes > 0);
  plan::DryMachine dry(cached);
  return load::modeled_seconds(plan::run(plan, dry), plan::read_pattern(plan, graph), cached);
}

// With the machine's own ring. Steps are those of the plan.
std::vector<plan::UsagePoint> usage_with_bounce(const Device& device, const plan::Plan& plan) {
  const plan::Plan with_ring = with_bounce(device, plan);
  plan::DryMachine dry;
  std::vector<plan::UsagePoint> usage = plan::run(with_ring, dry).usage;
  if (with_ring.steps.size() == plan.steps.size()) return usage;
  const plan::BlockId ring{static_cast<std::uint32_t>(plan.blocks.size())};
  const auto added =
      std::ranges::find_if(with_ring.steps, [&](const plan::Step& step) { return step.block == ring; });
  const auto first = static_cast<std::size_t>(added - with_ring.steps.begin());
  for (plan::UsagePoint& point : usage)
    if (point.step > first) --point.step;
  return usage;
}

std::uint64_t projected_budget(const Device& device, const plan::Plan& plan) {
  const unsigned spaces = spaces_in_device_heap(device, plan);
  plan::DryMachine books({}, allocators::AllocatorModel::vulkan,
                         plan::pool_forecasts(plan, pool_alignment(device)));
  std::uint64_t most = 0;
  for (const plan::PerSpace<std::uint64_t>& reserved : plan::run(plan, books).reserved_usage)
    most = std::max(most, plan::sum_over(reserved, spaces));
  return (spaces & plan::space_bit(plan::Space::staging)) != 0 ? most + bounce_bytes(device, plan) : most;
}

}  // namespace

UploadReport upload(const graph::MetaGraphPtr& graph, const plan::Plan& plan, const UploadOptions& options,
                    Progress& progress) {
  load::require_runnable(*graph, plan, "upload");
  std::optional<Device> device(std::in_place, DeviceOptions{.wanted = options.device,
                                                            .validation = options.validation,
                                                            .shaders = packs_weights(plan),
                                                            .queues = {},
                                                            .queue_rates = options.queues});
  UploadReport report = measure(*device, graph, plan, options, progress);
  plan::CostModel costs = options.costs;
  // the rates are those of the queue that a load without shaders takes
  if (const std::optional<double> link = device->measured_link(); link && packs_weights(plan))
    costs.link = *link;
  if (report.imported_bytes > 0) costs = plan::with_imported_pages(costs);
  plan::DryMachine dry(costs);
  report.projected = plan::run(plan, dry);
  report.projected_seconds = load::modeled_seconds(report.projected, plan::read_pattern(plan, *graph), costs);
  report.expected_seconds = expected_seconds(report, plan, *graph, costs);
  unsigned& anonymous = report.anonymous_spaces;
  anonymous = plan::space_bit(plan::Space::host);
  if (report.software_device) anonymous |= plan::space_bit(plan::Space::device);
  if (report.software_device && report.imported_bytes == 0)
    anonymous |= plan::space_bit(plan::Space::staging);
  // pages that the device reads in place are mapped too
  if (report.imported_bytes > 0) report.mapped_spaces |= plan::space_bit(plan::Space::staging);
  report.ring_bytes = bounce_bytes(*device, plan);
  report.projected_usage = ((anonymous | report.mapped_spaces) & plan::space_bit(plan::Space::staging)) != 0
                               ? usage_with_bounce(*device, plan)
                               : report.projected.usage;
  for (const plan::UsagePoint& point : report.projected_usage)
    report.projected_rss_anon = std::max(report.projected_rss_anon, plan::sum_over(point.bytes, anonymous));
  if (report.device_budget_peak) {
    report.projected_device_budget = projected_budget(*device, plan);
    report.device_heap_spaces = spaces_in_device_heap(*device, plan);
  }
  // read after the device is destroyed: the layer then reports objects that were left on it
  const std::shared_ptr<const MessageLog> log = device->log();
  device.reset();
  report.validation_messages = log->messages();
  return report;
}

}  // namespace loadline::gpu
