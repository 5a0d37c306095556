// Runs the GPU tests and gathers what they say.
#pragma once

#include "tests/gpu_report/report.h"

#include <string>
#include <string_view>
#include <vector>

namespace loadline::bench {

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

}  // namespace loadline::bench
