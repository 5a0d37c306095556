// Other programs that gpu-report runs: its own tests, and torch.
#pragma once

#include "tests/gpu_report/report.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::bench {

// --- Runs another program and reads what it prints.

struct Child {
  std::vector<std::string> words = {};  // the program, by path or name, and its arguments
  std::vector<std::pair<std::string, std::string>> set = {};  // in the environment
  std::vector<std::string> unset = {};
};

// Calls `line` for each line of its output and errors, without '\n'. Returns how it ended: "" for exit code
// 0, else words: "ended with code 1", "was ended by signal 11", "cannot be started: ...".
std::string run_child(const Child& child, const std::function<void(std::string_view)>& line);

// --- Runs the GPU tests and gathers what they say.

// Reads what a GoogleTest program prints, line by line. A program that ends within a test failed in it.
class TestOutput {
 public:
  explicit TestOutput(TestRun& run) : run_(run) {}
  void line(std::string_view text);
  // `ending` says how the program ended; "" = well.
  void end(const std::string& ending);

 private:
  TestRun& run_;
  std::string test_ = {};  // the one that runs; "" between tests
  std::string said_ = {};  // by it
};

// On the software driver where `software_driver` says that it is installed, and on the best of `devices` if
// that is another; without either, those tests that need no device. `program` is this program, which runs the
// tests when its first argument is kRunTests. `filter` is GoogleTest's; "" = all.
inline constexpr std::string_view kRunTests = "run-tests";
std::vector<TestRun> run_gpu_tests(const std::string& program, const std::vector<gpu::DeviceInfo>& devices,
                                   bool software_driver, const std::string& filter);

// --- load_file of safetensors with torch, on the file that the uploads were measured with.

// Runs python3 where it is there, with torch and safetensors and a CUDA device; else says what is absent.
TorchFigures measure_torch(const std::string& path, std::uint64_t bytes, int rounds);

}  // namespace loadline::bench
