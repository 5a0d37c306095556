// gpu-report: GPU tests, upload benchmark and torch on one machine, as a page and as JSON.
#include "app/report/page_parts.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu_report/run_bench.h"
#include "tests/gpu_report/runs.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

namespace loadline::bench {
namespace {

struct Flags {
  std::string folder = "gpu-report";
  std::string test_filter;
  BenchOptions bench;
};

// What fails is in the report too. `save` is called when a part is complete.
template <typename Save>
void measure_into(GpuReport& report, const BenchOptions& options, Save save) try {
  const std::unique_ptr<BenchModel> model = run_bench(options, report, save);
  if (!model) return;
  if (report.uploads->software())
    report.missing.insert(
        report.missing.begin(),
        "Uploads over a link, and the goals for them: this machine has no GPU that Vulkan can use.");
  save();
  fmt::print("torch\n");
  std::fflush(stdout);
  report.torch = measure_torch(model->path(), report.uploads->bytes, options.rounds);
  if (report.torch->warm)
    fmt::print("  load_file: {}\n", format_seconds(report.torch->warm->median));
  else
    report.missing.push_back(fmt::format("load_file of safetensors with torch: {}.", report.torch->absent));
  if (!report.torch->cold_absent.empty())
    report.missing.push_back(fmt::format("load_file with a cold cache: {}.", report.torch->cold_absent));
} catch (const Error& error) {
  report.missing.push_back(fmt::format("The benchmark ended: {}.", error.what()));
}

int write_report(const std::string& program, const Flags& flags) {
  namespace fs = std::filesystem;
  const fs::path folder(flags.folder);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error(ErrorCode::io, "{}: cannot make the folder: {}", safe_display(flags.folder),
                failed.message());
  const std::string page = (folder / "gpu-report.html").string(),
                    json = (folder / "gpu-report.json").string();
  GpuReport report = begin_report();
  const auto save = [&] {
    report::write_file(page, report_html(report));
    report::write_file(json, report_json(report));
  };
  report.tests = run_gpu_tests(program, report.devices, !gpu::software_driver().empty(), flags.test_filter);
  save();
  BenchOptions bench = flags.bench;
  if (bench.folder.empty()) bench.folder = flags.folder;
  measure_into(report, bench, save);
  save();
  for (const std::string& sentence : report.missing) fmt::print("not measured: {}\n", safe_display(sentence));
  fmt::print("{}\n{}\n", safe_display(page), safe_display(json));
  return report.sound() ? 0 : 1;
}

}  // namespace
}  // namespace loadline::bench

int main(int argc, char** argv) try {
  using namespace loadline;
  if (argc > 1 && argv[1] == bench::kRunTests) return gpu::run_tests(argc - 1, argv + 1);
  CLI::App app(
      "Runs every GPU test, the upload benchmark and, where torch is there, safetensors' load_file, and "
      "writes "
      "FOLDER/gpu-report.html and FOLDER/gpu-report.json. Exit code 1: a test failed, or bytes on the device "
      "differ.",
      "gpu-report");
  bench::Flags flags;
  app.add_option("folder", flags.folder, "where the report is written")
      ->type_name("FOLDER")
      ->capture_default_str();
  app.add_option("--test-filter", flags.test_filter, "run only these tests (GoogleTest's filter)")
      ->type_name("FILTER");
  bench::add_bench_options(app, flags.bench, "FOLDER");
  CLI11_PARSE(app, argc, argv);
  return bench::write_report(argv[0], flags);
} catch (const loadline::Error& error) {
  fmt::print(stderr, "gpu-report: {}\n", error.what());
  return 1;
}
