// Chooses device and size, and prints what uploads.cpp measures.
#include "tests/gpu_report/run_bench.h"

#include "app/report/measured_loads.h"
#include "app/report/page_parts.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <chrono>
#include <ctime>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace loadline::bench {
namespace {

void print_table(const RateTable& table, const gpu::DeviceInfo& device) {
  std::vector<Result> results;
  for (const RateFigure& row : table.rows) results.push_back(row.times);
  print(fmt::format("upload {} to {}: {}", format_bytes(table.bytes), device.name, lower_case(table.title)),
        results, table.bytes);
  std::fflush(stdout);
}

void print_memory(const UploadFigures& uploads) {
  fmt::print("peaks of {}, projected / measured\n", format_bytes(uploads.method_bytes));
  const auto pair = [](std::uint64_t projected, std::uint64_t measured) {
    return fmt::format("{} / {}", format_bytes(projected), format_bytes(measured));
  };
  for (const MethodFigure& one : uploads.methods)
    if (one.refusal.empty())
      fmt::print("  {:<24} device {:<25} staging {:<23} RssAnon {:<25} {:+6.1f} % {}{}\n", one.method,
                 pair(one.device, one.device_measured), pair(one.staging, one.staging_measured),
                 pair(one.anon, one.anon_measured), report::error_percent(one.anon, one.anon_measured),
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

std::unique_ptr<BenchModel> run_bench(const BenchOptions& options, GpuReport& report) {
  const gpu::DeviceChoice choice = gpu::choose_device(report.devices, options.device);
  if (report.devices.empty()) return nullptr;
  if (!choice.chosen)
    throw Error(ErrorCode::usage, "no device that can be used matches '{}'", safe_display(options.device));
  const gpu::DeviceInfo& device = report.devices[*choice.chosen];
  const std::string folder =
      options.folder.empty() ? std::filesystem::temp_directory_path().string() : options.folder;
  constexpr std::uint64_t kMiB = 1 << 20;
  const std::uint64_t bytes = options.size.empty() ? fitting_bytes(device, folder, report.missing)
                                                   : parse_size(options.size, "--size") / kMiB * kMiB;
  if (bytes < kMiB) throw Error(ErrorCode::usage, "--size: a model has at least 1 MiB");
  auto model = std::make_unique<BenchModel>(folder, bytes);
  report.uploads =
      measure_uploads(*model, {.device = fmt::format("{}", device.index), .rounds = options.rounds},
                      [&](const RateTable& table) { print_table(table, device); });
  print_memory(*report.uploads);
  for (const std::string& sentence : report.uploads->missing) report.missing.push_back(sentence);
  return model;
}

}  // namespace loadline::bench
