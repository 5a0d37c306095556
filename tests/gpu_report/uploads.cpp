// Times uploads beside memcpy, reads and the link.
#include "tests/gpu_report/uploads.h"

#include "app/report/measured_loads.h"
#include "app/report/page_parts.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/device.h"
#include "core/gpu/device_memory.h"
#include "core/gpu/measure_link.h"
#include "core/gpu/upload.h"
#include "core/gpu/vulkan_machine.h"
#include "core/io/atomic_file.h"
#include "core/io/striped_reader.h"
#include "core/io/system_memory.h"
#include "core/load/answer/projection.h"
#include "core/load/measure/rehearse.h"
#include "importers/resolve.h"
#include "tests/gpu_report/run_bench.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <thread>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <malloc.h>

namespace loadline::bench {

// --- Times uploads beside memcpy, reads and the link, and holds their memory against the projections.

namespace {

constexpr std::uint64_t kMiB = 1ull << 20, kGiB = 1ull << 30;
constexpr std::uint64_t kMostBuffer = kGiB;       // of memcpy and plain reads: beyond every cache
constexpr std::uint64_t kMostMethodBytes = kGiB;  // some methods hold the weights several times
constexpr double kTableSeconds = 60;

// Makes malloc keep what is freed, with its pages.
void keep_pages() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

load::BoundRequest ring_inputs(std::uint32_t slots, std::uint64_t slot_bytes) {
  load::BoundRequest inputs;
  inputs.request.staging_bytes = slots * slot_bytes;
  inputs.request.slots = slots;
  return inputs;
}

plan::Plan plan_of(const graph::MetaGraph& graph, std::string_view method, const load::BoundRequest& inputs) {
  return load::make_plan(graph, load::find_method(method), load::find_order("file").make(graph), inputs);
}

// Rows of one model on one device, and the buffers that they share.
class Rows {
 public:
  Rows(const BenchModel& model, const gpu::Device& device)
      : model_(model), graph_(*model.graph()), total_(graph::storage_bytes(graph_)), device_(device) {}

  struct Row {
    RowUse use;
    Case run;
  };

  Row copy_all() {
    return {RowUse::baseline, {"memcpy of touched memory", [this] {
                                 for (std::uint64_t at = 0; at < total_; at += to_.size())
                                   std::memcpy(to_.data(), from_.data(),
                                               std::min<std::uint64_t>(to_.size(), total_ - at));
                               }}};
  }
  Row read_all(RowUse use, unsigned threads, io::FileReading reading = io::FileReading::cached) {
    return {use,
            {fmt::format("pread into touched memory, {}{}", counted(threads, "thread"),
                         reading == io::FileReading::cached ? "" : ", past the cache"),
             [this, threads, reading] {
               io::StripedReader reads(reader_, threads, reading);
               std::size_t at = 0;
               for (std::size_t i = 0; i < graph_.storages.size(); ++i) {
                 const auto bytes = static_cast<std::size_t>(graph_.storages[i].bytes);
                 if (at + bytes > to_.size()) {
                   reads.wait(reads.newest());
                   at = 0;
                 }
                 reads.start(graph::StorageId{static_cast<std::uint32_t>(i)}, 0,
                             std::span(to_).subspan(at, bytes));
                 at += bytes;
               }
               reads.wait(reads.newest());
             }}};
  }
  // `readers` 0: as many as the uploader chooses.
  Row upload(const char* method, std::uint64_t slot_mib = 16, unsigned readers = 0,
             io::FileReading reading = io::FileReading::cached) {
    const load::BoundRequest inputs = ring_inputs(4, slot_mib * kMiB);
    const bool ring = std::string_view(method) == "staged_ring";
    const auto machine = std::make_shared<std::optional<gpu::VulkanMachine>>();
    const auto run_it = [this, method, inputs, readers, reading, machine] {
      const plan::Plan plan = plan_of(graph_, method, inputs);
      machine->emplace(device_, reader_, plan, gpu::MachineOptions{.reads = {readers, reading}});
      plan::run(plan, **machine);
    };
    return {RowUse::upload,
            {fmt::format("{}{}{}{}", method, ring ? fmt::format(", 4 x {} MiB", slot_mib) : "",
                         readers == 0 ? "" : ", " + counted(readers, "reader"),
                         reading == io::FileReading::cached ? "" : ", past the cache"),
             run_it, [] {}, [machine] { machine->reset(); }}};
  }

  // Runs each row once untimed. Rows that cannot be run here are dropped: `missing` gets why.
  RateTable measure(RateTable table, std::vector<Row> rows, const Rounds& rounds,
                    std::vector<std::string>& missing) {
    table.bytes = total_;
    std::erase_if(rows, [&](const Row& row) {
      try {
        row.run.before();
        row.run.run();
        row.run.after();
        return false;
      } catch (const Error& error) {
        row.run.after();
        missing.push_back(
            fmt::format("{}: {} could not be run: {}.", table.title, row.run.name, error.what()));
        return true;
      }
    });
    std::vector<Case> cases;
    for (const Row& row : rows) cases.push_back(row.run);
    const std::vector<Result> results = bench::measure(cases, rounds);
    for (std::size_t i = 0; i < rows.size(); ++i) table.rows.push_back({rows[i].use, results[i]});
    return table;
  }

 private:
  const BenchModel& model_;
  const graph::MetaGraph& graph_;
  std::uint64_t total_;
  const gpu::Device& device_;
  io::StorageReader reader_{model_.graph()};
  std::vector<std::byte> from_ = buffer(), to_ = buffer();

  std::vector<std::byte> buffer() const {
    return std::vector<std::byte>(static_cast<std::size_t>(std::min(total_, kMostBuffer)));
  }
};

std::string index_of(const gpu::Device& device) { return fmt::format("{}", device.info().index); }

// The link on each family of the device's queues; nothing for a device with one.
gpu::QueueRates measured_queues(const std::string& device, std::vector<std::string>& missing) {
  if (gpu::Device(gpu::DeviceOptions{.wanted = device}).info().queues.size() < 2) return {};
  load::MeasuredRates rates;
  Progress progress;
  try {
    gpu::measure_device({.wanted = device}, 64 * kMiB, rates, progress);
  } catch (const Error& error) {
    missing.push_back(fmt::format("The families of queues were not compared: {}.", error.what()));
    return {};
  }
  return gpu::queue_rates(rates);
}

MethodFigure measure_method(const graph::MetaGraphPtr& graph, const load::Method& method,
                            const gpu::Device& device, const gpu::QueueRates& queues) {
  MethodFigure figure;
  figure.method = method.id;
  try {
    const load::BoundRequest inputs = ring_inputs(4, 16 * kMiB);
    const plan::Plan plan = plan_of(*graph, method.id, inputs);
    Progress progress;
    const gpu::UploadReport report = gpu::upload(
        graph, plan, {.device = index_of(device), .verify = !method.traits.streams, .queues = queues},
        progress);
    const plan::PerSpace<std::uint64_t> taken =
        report.measured.reserved_peak.value_or(plan::PerSpace<std::uint64_t>{});
    figure.device = report.projected.peaks[plan::index(plan::Space::device)].bytes;
    figure.device_measured = taken[plan::index(plan::Space::device)];
    if (!report.software_device && report.device_budget_peak)
      figure.device_measured = *report.device_budget_peak;
    figure.staging =
        report.projected.peaks[plan::index(plan::Space::staging)].bytes + gpu::bounce_bytes(device, plan);
    figure.staging_measured = taken[plan::index(plan::Space::staging)];
    figure.anon = report.projected_rss_anon;
    figure.anon_measured = report.rss_anon_peak;
    figure.verified = report.verified;
  } catch (const Error& error) {
    figure.refusal = error.what();
  }
  return figure;
}

RingFigure measure_ring(const graph::MetaGraphPtr& graph, std::uint64_t slot_bytes, const gpu::Device& device,
                        const gpu::QueueRates& queues) {
  constexpr std::uint32_t kSlots = 4;
  Progress progress;
  const gpu::UploadReport report =
      gpu::upload(graph, plan_of(*graph, "staged_ring", ring_inputs(kSlots, slot_bytes)),
                  {.device = index_of(device), .queues = queues}, progress);
  const plan::PerSpace<std::uint64_t> taken =
      report.measured.reserved_peak.value_or(plan::PerSpace<std::uint64_t>{});
  const std::uint64_t on_device = report.device_budget_peak.value_or(taken[plan::index(plan::Space::device)]);
  return {.slots = kSlots,
          .ring = kSlots * slot_bytes,
          .held = report.software_device ? report.rss_anon_peak
                                         : on_device + taken[plan::index(plan::Space::staging)]};
}

// Seconds of a copy of one mapped staging buffer to the device, as one command: without any of the uploader's
// pieces, so that it is the link that is measured and not the uploader.
double seconds_of_link(const gpu::Device& device, std::uint64_t bytes) {
  constexpr int kRuns = 7;
  gpu::MemoryPool staging(device, gpu::MemoryUse::staging, {bytes, {}}, true);
  gpu::MemoryPool memory(device, gpu::MemoryUse::device, {bytes, {}}, true);
  const gpu::Allocation from = staging.allocate(bytes), to = memory.allocate(bytes);
  gpu::TransferQueue transfers(device, bytes);
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    transfers.copy(from.range, to.range);
    transfers.drain();
    // the first touches the memory and raises clocks
    if (run > 0)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return load::median(seconds);
}

// The link by itself.
std::vector<RateFigure> link_ceilings(const gpu::Device& device, std::uint64_t bytes,
                                      std::vector<std::string>& missing) {
  std::vector<RateFigure> figures;
  for (const std::uint64_t block : {16 * kMiB, 64 * kMiB, 256 * kMiB, kGiB}) try {
      const double seconds =
          seconds_of_link(device, block) * static_cast<double>(bytes) / static_cast<double>(block);
      figures.push_back({RowUse::ceiling,
                         {fmt::format("pinned-copy loop, blocks of {}", format_bytes(block)), seconds,
                          seconds, seconds, 7}});
    } catch (const Error& error) {
      missing.push_back(
          fmt::format("The link with blocks of {} was not measured: {}.", format_bytes(block), error.what()));
    }
  return figures;
}

unsigned many_threads() { return std::clamp(std::thread::hardware_concurrency(), 2u, 8u); }

std::vector<Rows::Row> warm_rows(Rows& rows, bool software) {
  const RowUse reading = software ? RowUse::ceiling : RowUse::reference;
  std::vector<Rows::Row> list = {rows.copy_all(), rows.read_all(reading, 1),
                                 rows.read_all(reading, many_threads())};
  for (const std::uint64_t slot_mib : {1u, 4u, 8u, 16u, 32u, 64u})
    list.push_back(rows.upload("staged_ring", slot_mib));
  for (unsigned readers = 1; readers <= many_threads(); readers *= 2)
    list.push_back(rows.upload("staged_ring", 16, readers));
  for (const char* method : {"direct", "per_tensor", "state_dict"}) list.push_back(rows.upload(method));
  return list;
}

std::vector<Rows::Row> cold_rows(Rows& rows, const BenchModel& model, bool software) {
  std::vector<Rows::Row> list;
  if (software) list.push_back(rows.read_all(RowUse::ceiling, 1));
  for (const io::FileReading reading : {io::FileReading::cached, io::FileReading::direct})
    list.push_back(rows.read_all(RowUse::ceiling, many_threads(), reading));
  for (const io::FileReading reading : {io::FileReading::cached, io::FileReading::cold}) {
    list.push_back(rows.upload("staged_ring", 16, 0, reading));
    if (software) list.push_back(rows.upload("staged_ring", 16, many_threads(), reading));
  }
  for (Rows::Row& row : list)
    row.run.before = [&model] {
      ::malloc_trim(0);
      model.drop();
    };
  return list;
}

std::vector<Rows::Row> fresh_rows(Rows& rows) {
  std::vector<Rows::Row> list = {rows.copy_all(), rows.upload("direct"), rows.upload("staged_ring"),
                                 rows.upload("staged_ring", 4)};
  for (std::size_t i = 1; i < list.size(); ++i) list[i].run.before = [] { ::malloc_trim(0); };
  return list;
}

// All methods, and staged_ring with several rings. On a software device their memory is this process's, and
// must come from the system: before keep_pages().
void measure_memory(const BenchModel& model, const gpu::Device& device, UploadFigures& figures) {
  std::optional<BenchModel> small;
  if (figures.bytes > kMostMethodBytes)
    small.emplace(std::filesystem::path(model.path()).parent_path().string(), kMostMethodBytes);
  const graph::MetaGraphPtr& graph = small ? small->graph() : model.graph();
  figures.method_bytes = graph::storage_bytes(*graph);
  for (const load::Method& method : load::methods())
    if (!method.traits.host_only)
      figures.methods.push_back(measure_method(graph, method, device, figures.queues));
  figures.held_by = figures.software() ? "the system, as memory of this process (RssAnon)"
                    : figures.device.memory_budget
                        ? "the driver (VK_EXT_memory_budget), and the staging memory taken"
                        : "the uploader: memory taken from the driver";
  for (const std::uint64_t slot_mib : {1u, 4u, 16u, 64u}) try {
      figures.rings.push_back(measure_ring(model.graph(), slot_mib * kMiB, device, figures.queues));
    } catch (const Error& error) {
      figures.missing.push_back(
          fmt::format("A ring of 4 x {} MiB was not measured: {}.", slot_mib, error.what()));
    }
}

}  // namespace

const RateFigure* RateTable::best(RowUse use) const {
  const RateFigure* found = nullptr;
  for (const RateFigure& row : rows)
    if (row.use == use && (found == nullptr || row.times.median < found->times.median)) found = &row;
  return found;
}

const RateTable* UploadFigures::table(std::string_view id) const {
  const auto found = std::ranges::find(tables, id, &RateTable::id);
  return found == tables.end() ? nullptr : &*found;
}

bool MethodFigure::agrees() const {
  return refusal.empty() && report::near_enough(device, device_measured) &&
         report::near_enough(staging, staging_measured) && report::near_enough(anon, anon_measured) &&
         verified != false;
}

double RingFigure::over(std::uint64_t weights) const {
  return (static_cast<double>(held) - static_cast<double>(ring)) / static_cast<double>(weights);
}

UploadFigures measure_uploads(const BenchModel& model, const UploadBenchOptions& options,
                              const std::function<void(const UploadFigures&)>& progress) {
  std::vector<std::string> missing;
  const gpu::QueueRates queues = measured_queues(options.device, missing);
  const gpu::Device device(
      {.wanted = options.device, .validation = false, .shaders = false, .queues = {}, .queue_rates = queues});
  UploadFigures figures{.device = device.info(), .queue = device.queue_kind(), .queues = queues};
  figures.missing = std::move(missing);
  figures.bytes = graph::storage_bytes(*model.graph());
  const bool software = figures.software();
  measure_memory(model, device, figures);
  progress(figures);
  keep_pages();
  Rows rows(model, device);
  const Rounds rounds{.most = options.rounds,
                      .least = std::min(options.rounds, 3),
                      .seconds = kTableSeconds,
                      .warm_up = false};
  const auto add = [&](RateTable table, const std::vector<Rows::Row>& list, const auto& more) {
    const std::string title = table.title;
    try {
      RateTable measured = rows.measure(std::move(table), list, rounds, figures.missing);
      more(measured);
      figures.tables.push_back(std::move(measured));
      progress(figures);
    } catch (const Error& error) {
      figures.missing.push_back(fmt::format("{}: {}.", title, error.what()));
    }
  };
  const auto nothing = [](RateTable&) {};
  add({.id = "warm",
       .title = software ? "Warm cache, touched pages" : "Warm cache",
       .about = software
                    ? "The file is in the page cache. The device's pages were touched before, as a GPU's are."
                    : "The file is in the page cache."},
      warm_rows(rows, software), [&](RateTable& warm) {
        if (model.cached() < 0.99)
          figures.missing.push_back(fmt::format(
              "A warm cache: only {:.0f} % of the file stayed in the page cache.", 100 * model.cached()));
        if (software) return;
        for (RateFigure& ceiling : link_ceilings(device, figures.bytes, figures.missing))
          warm.rows.push_back(std::move(ceiling));
      });
  if (software)
    add({.id = "fresh",
         .title = "Warm cache, fresh pages",
         .about = "The device's pages come fresh from the system, whose first touch of each costs more than "
                  "its copy. A "
                  "GPU has no such cost."},
        fresh_rows(rows), nothing);
  model.drop();
  if (model.cached() > 0.01)
    figures.missing.push_back(
        "A cold cache: the system does not drop the file's pages from memory (a file system in memory, or a "
        "sandbox).");
  else
    add({.id = "cold",
         .title = software ? "Cold cache, fresh pages" : "Cold cache",
         .about = "The file's pages are dropped before each run. Reads past the cache leave nothing in it."},
        cold_rows(rows, model, software), nothing);
  return figures;
}

// --- Writes the file, and chooses its size.

namespace {

constexpr std::uint64_t kMebibyte = 1ull << 20, kGibibyte = 1ull << 30;

}  // namespace

BenchModel::BenchModel(const std::string& folder, std::uint64_t bytes)
    : folder_(folder), path_(folder_.path() + "/bench.safetensors") {
  const std::uint64_t unit = std::min(bytes, 512 * kMebibyte);
  testing::SafetensorsHeader header;
  std::uint64_t written = 0, tensors = 0;
  const auto add = [&](std::uint64_t size) {
    size = std::min(size, bytes - written);
    if (size == 0) return;
    header.add(fmt::format("t{}", tensors++), "U8", fmt::format("{}", size), size);
    written += size;
  };
  while (written < bytes) {
    for (int i = 0; i < 2; ++i) add(unit / 4);
    for (int i = 0; i < 256; ++i) add(unit / 512);
  }
  io::OutputFile out(io::UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)),
                     path_);
  if (out.descriptor() < 0) throw system_error(path_, "create it", errno);
  const std::string head = testing::safetensors_bytes(header.text(), 0);
  out.preallocate(head.size() + bytes);
  out.write_at(0, std::as_bytes(std::span(head)));
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> words(2 * kMebibyte);
  const auto all = std::as_bytes(std::span(words));
  for (std::uint64_t at = 0; at < bytes; at += all.size()) {
    for (std::uint64_t& word : words) word = random();
    out.write_at(head.size() + at,
                 all.first(static_cast<std::size_t>(std::min<std::uint64_t>(all.size(), bytes - at))));
  }
  out.sync();  // the system drops no page that is still to be written
  graph_ = std::make_shared<const graph::MetaGraph>(importers::open_model(path_, {}));
}

double BenchModel::cached() const {
  const io::SourceFile file = io::SourceFile::open(path_);
  return static_cast<double>(io::resident_bytes(file)) / static_cast<double>(file.size());
}

void BenchModel::drop() const { io::drop_pages(io::SourceFile::open(path_)); }

std::uint64_t fitting_bytes(const gpu::DeviceInfo& device, const std::string& folder,
                            std::vector<std::string>& missing) {
  constexpr std::uint64_t kLeast = 64 * kMebibyte;
  const bool software = device.type == gpu::DeviceType::cpu;
  const std::uint64_t wanted = software ? 512 * kMebibyte : 16 * kGibibyte;
  struct Room {
    std::string_view what;
    std::uint64_t bytes;
  };
  const gpu::DeviceHeap* const heap = gpu::device_heap(device);
  const std::uint64_t on_device = heap == nullptr ? wanted : heap->budget.value_or(heap->bytes);
  std::error_code ignored;
  const std::uint64_t on_disk = std::filesystem::space(folder, ignored).available;
  // the page cache must hold the file; the buffers take 2 GiB
  const std::uint64_t in_memory = io::available_system_memory().value_or(wanted * 2);
  const Room rooms[] = {{"the device's memory", on_device / 10 * 8},
                        {"the disk", on_disk / 10 * 8},
                        {"the system's memory, which also caches the file",
                         in_memory > 4 * kGibibyte ? (in_memory - 2 * kGibibyte) / 10 * 7 : in_memory / 4}};
  const Room& least = *std::ranges::min_element(rooms, {}, &Room::bytes);
  if (least.bytes >= wanted) return wanted;
  const std::uint64_t bytes = std::max(least.bytes / kMebibyte * kMebibyte, kLeast);
  missing.push_back(fmt::format("A model of {}: it has {}, because no more fits into {}.",
                                format_bytes(wanted), format_bytes(bytes), least.what));
  return bytes;
}

// --- Chooses device and size, and prints what uploads.cpp measures.

namespace {

void print_table(const RateTable& table, const gpu::DeviceInfo& device) {
  std::vector<Result> results;
  for (const RateFigure& row : table.rows) results.push_back(row.times);
  print(fmt::format("upload {} to {}: {}", format_bytes(table.bytes), device.name, lower_case(table.title)),
        results, table.bytes, table.title);
  std::fflush(stdout);
}

void print_memory(const UploadFigures& uploads) {
  fmt::print("peaks of {}, projected / measured\n", format_bytes(uploads.method_bytes));
  const auto pair = [](std::uint64_t projected, std::uint64_t measured) {
    return fmt::format("{} / {}", format_bytes(projected), format_bytes(measured));
  };
  for (const MethodFigure& one : uploads.methods)
    if (one.refusal.empty())
      fmt::print("  {:<24} device {:<25} staging {:<23} RssAnon {:<25} {:>12} {}{}\n", one.method,
                 pair(one.device, one.device_measured), pair(one.staging, one.staging_measured),
                 pair(one.anon, one.anon_measured),
                 one.anon == 0 ? "+" + format_bytes(one.anon_measured)
                               : fmt::format("{:+.1f} %", report::error_percent(one.anon, one.anon_measured)),
                 one.agrees() ? "as projected" : "NOT AS PROJECTED",
                 one.verified == false ? ", OTHER BYTES" : "");
    else
      fmt::print("  {:<24} {}\n", one.method, one.refusal);
  fmt::print("memory held by staged_ring, counted by {}\n", uploads.held_by);
  for (const RingFigure& ring : uploads.rings)
    fmt::print("  ring of {:>10}: {:>10}, without the ring {:.3f} of the weights\n", format_bytes(ring.ring),
               format_bytes(ring.held), ring.over(uploads.bytes));
}

}  // namespace

void add_bench_options(CLI::App& app, BenchOptions& options, const std::string& model_folder) {
  app.add_option("--device", options.device, "index or part of a name of a GPU for the benchmark")
      ->type_name("N|NAME")
      ->default_str("the best");
  app.add_option("--size", options.size, "size of the model")
      ->type_name("SIZE")
      ->default_str("16GiB on a GPU, 512MiB on a software GPU, less where no more fits");
  app.add_option("--model-folder", options.folder,
                 "folder on the disk whose reads are measured; the model's file is removed at the end")
      ->type_name("FOLDER")
      ->default_str(model_folder);
  app.add_option("--rounds", options.rounds, "times that each row is run")
      ->type_name("N")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

GpuReport begin_report() {
  GpuReport report;
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  report.date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(now));
  report.version = LOADLINE_VERSION;
  report.machine = report::machine_facts();
  try {
    report.devices = gpu::list_devices();
  } catch (const Error& error) {
    report.missing.push_back(fmt::format("Uploads, and all tests that need a device: {}.", error.what()));
  }
  return report;
}

std::unique_ptr<BenchModel> run_bench(const BenchOptions& options, GpuReport& report,
                                      const std::function<void()>& measured) {
  const gpu::DeviceChoice choice = gpu::choose_device(report.devices, options.device);
  if (report.devices.empty()) return nullptr;
  if (!choice.chosen)
    throw Error(ErrorCode::usage, "no device that can be used matches '{}'", safe_display(options.device));
  const gpu::DeviceInfo& device = report.devices[*choice.chosen];
  const std::string folder =
      options.folder.empty() ? std::filesystem::temp_directory_path().string() : options.folder;
  const std::uint64_t bytes = options.size.empty() ? fitting_bytes(device, folder, report.missing)
                                                   : parse_size(options.size, "--size") / kMiB * kMiB;
  if (bytes < kMiB) throw Error(ErrorCode::usage, "--size: a model has at least 1 MiB");
  auto model = std::make_unique<BenchModel>(folder, bytes);
  report.uploads =
      measure_uploads(*model, {.device = fmt::format("{}", device.index), .rounds = options.rounds},
                      [&](const UploadFigures& figures) {
                        if (figures.tables.empty())
                          print_memory(figures);
                        else
                          print_table(figures.tables.back(), device);
                        report.uploads = figures;
                        measured();
                      });
  for (const std::string& sentence : report.uploads->missing) report.missing.push_back(sentence);
  return model;
}

}  // namespace loadline::bench
