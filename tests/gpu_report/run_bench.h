// Runs the upload benchmark and prints its tables.
#pragma once

#include "tests/gpu_report/report.h"

#include <functional>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace loadline::bench {

struct BenchOptions {
  std::string device = {};  // index or part of a name; empty = the best
  std::string size = {};    // of the model; empty: by the device
  std::string folder = {};  // of the model's file; empty: the system's temporary folder
  int rounds = 7;
};
// `model_folder` is the default of the folder in words.
void add_bench_options(CLI::App& app, BenchOptions& options, const std::string& model_folder);

// The date, the machine and its devices. Without a Vulkan driver `missing` says so.
GpuReport begin_report();

// Fills report.uploads and report.missing; prints each table, and calls `measured` when the report has it.
// Returns the model, which other loads can be measured with; null without a device. Throws Error.
std::unique_ptr<BenchModel> run_bench(
    const BenchOptions& options, GpuReport& report, const std::function<void()>& measured = [] {});

}  // namespace loadline::bench
