// The tests run in child processes of this program: a crash, and memory that tests leave, stay there.
#include "tests/gpu_report/gpu_tests.h"

#include "core/base/text.h"
#include "tests/gpu_report/child.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace loadline::bench {
namespace {

// The groups that tests/gpu/CMakeLists.txt runs in processes of their own.
constexpr std::string_view kAlone[] = {"UploadFailure.*", "UploadCount.*"};

std::vector<std::string> filters(const std::string& filter) {
  if (!filter.empty()) return {filter};
  std::string rest = "-";
  std::vector<std::string> all;
  for (const std::string_view alone : kAlone) {
    all.emplace_back(alone);
    rest += fmt::format("{}{}", rest.size() > 1 ? ":" : "", alone);
  }
  all.insert(all.begin(), rest);
  return all;
}

TestRun run_on(const std::string& program, std::string device, bool any, const std::string& filter) {
  TestRun run{.device = std::move(device)};
  fmt::print("GPU tests: {}\n", safe_display(run.device));
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& part : filters(filter)) {
    Child child{.words = {program, std::string(kRunTests), "--gtest_color=no", "--gtest_filter=" + part},
                .set = {{"LOADLINE_TEST_WITHOUT_LAYER", "1"}}};
    if (any)
      child.set.emplace_back("LOADLINE_TEST_ANY_GPU", "1");
    else
      child.unset = {"LOADLINE_TEST_ANY_GPU", "VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
    TestOutput output(run);
    output.end(run_child(child, [&](std::string_view line) { output.line(line); }));
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("  {} passed, {} failed, {} skipped in {}\n", run.passed, run.failed.size(), run.skipped.size(),
             format_seconds(run.seconds));
  for (const TestNote& note : run.failed) fmt::print("  FAILED: {}\n{}\n", note.name, note.text);
  std::fflush(stdout);
  return run;
}

}  // namespace

void TestOutput::line(std::string_view text) {
  constexpr std::string_view kRun = "[ RUN      ] ", kPassed = "[       OK ] ", kFailed = "[  FAILED  ] ",
                             kSkipped = "[  SKIPPED ] ";
  if (test_.empty()) {
    if (!text.starts_with(kRun)) return;
    test_ = text.substr(kRun.size());
    said_.clear();
    return;
  }
  const bool ends = text.find("] " + test_) == kRun.size() - 2;
  if (ends && text.starts_with(kPassed)) {
    ++run_.passed;
  } else if (ends && text.starts_with(kFailed)) {
    run_.failed.push_back({test_, said_});
  } else if (ends && text.starts_with(kSkipped)) {
    // "FILE:LINE: Skipped", then the reason
    const std::size_t reason = said_.find("Skipped\n");
    run_.skipped.push_back({test_, reason == std::string::npos ? said_ : said_.substr(reason + 8)});
  } else {
    if (!text.empty()) said_ += fmt::format("{}{}", said_.empty() ? "" : "\n", text);
    return;
  }
  test_.clear();
}

void TestOutput::end(const std::string& ending) {
  if (!test_.empty())
    run_.failed.push_back(
        {test_, fmt::format("{}\nThe program {}.", said_, ending.empty() ? "ended" : ending)});
  else if (!ending.empty() && run_.failed.empty())
    run_.failed.push_back({"the test program", fmt::format("It {}.", ending)});
}

std::vector<TestRun> run_gpu_tests(const std::string& program, const std::vector<gpu::DeviceInfo>& devices,
                                   bool software_driver, const std::string& filter) {
  const auto is_software = [](const gpu::DeviceInfo& device) { return device.type == gpu::DeviceType::cpu; };
  const auto software = std::ranges::find_if(devices, is_software);
  const gpu::DeviceChoice choice = gpu::choose_device(devices);
  std::vector<TestRun> runs;
  if (software_driver)
    runs.push_back(
        run_on(program, software == devices.end() ? "the software driver" : software->name, false, filter));
  if (choice.chosen && (!software_driver || !is_software(devices[*choice.chosen])))
    runs.push_back(run_on(program, devices[*choice.chosen].name, true, filter));
  if (runs.empty()) runs.push_back(run_on(program, "without a device", true, filter));
  return runs;
}

}  // namespace loadline::bench
