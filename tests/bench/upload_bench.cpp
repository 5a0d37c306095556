// Uploads to a device beside memcpy, plain reads and the link: throughput, and projected against measured
// peaks. `./dev gpu-report` writes the same as a page.
#include "app/report/page_parts.h"
#include "core/base/error.h"
#include "tests/gpu_report/run_bench.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

int main(int argc, char** argv) try {
  using namespace loadline;
  CLI::App app("throughput and peaks of uploads to a GPU");
  bench::BenchOptions options;
  std::string json;
  bench::add_bench_options(app, options, "the system's temporary folder");
  app.add_option("--json", json, "write the figures to this file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  bench::GpuReport report = bench::begin_report();
  const auto model = bench::run_bench(options, report);
  if (!json.empty()) report::write_file(json, bench::report_json(report));
  return model && report.sound() ? 0 : 1;
} catch (const loadline::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
