// What gpu-report found on one machine: tests, uploads, torch, and what could not be measured.
#pragma once

#include "app/report/page_parts.h"
#include "core/gpu/device_info.h"
#include "tests/gpu_report/uploads.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline::bench {

struct TestNote {
  std::string name = {};  // "Suite.Name"
  std::string text = {};  // what the test said
};

// The GPU tests on one device, in one process or several.
struct TestRun {
  std::string device = {};
  std::uint64_t passed = 0;
  std::vector<TestNote> failed = {};
  std::vector<TestNote> skipped = {};
  double seconds = 0;
};

// load_file of safetensors, with torch, onto the GPU.
struct TorchFigures {
  std::string absent = {};  // why there is none; then nothing else is set
  std::string versions = {}, device = {};
  std::uint64_t bytes = 0;
  std::optional<Result> warm = {}, cold = {};
  double pinned_rate = 0;        // bytes per second of torch's own copies of a pinned tensor
  std::uint64_t peak = 0;        // of the device memory that torch's allocator took
  std::string cold_absent = {};  // why there is no cold figure
};

struct GpuReport {
  std::string date = {};     // UTC
  std::string version = {};  // of Loadline
  report::OptionList machine = {};
  std::vector<gpu::DeviceInfo> devices = {};
  std::vector<TestRun> tests = {};
  std::optional<UploadFigures> uploads = {};
  std::optional<TorchFigures> torch = {};
  std::vector<std::string> missing = {};  // sentences: what was not measured, and why

  // No test failed, and all bytes on the device were those of the file.
  bool sound() const;
};

// One figure, and its goal if it has one.
struct Judged {
  std::string id = {};      // JSON key
  std::string what = {};    // short
  std::string figure = {};  // "0.93"
  std::string about = {};   // sentences: what it is made of
  std::string goal = {};    // "0.9"; "" = none
  std::optional<double> value = {};
  std::optional<bool> met = {};  // absent: there is no goal, or it does not hold here
  std::string not_judged = {};   // a sentence: why a goal does not hold here
};
std::vector<Judged> judged(const GpuReport& report);

std::string report_json(const GpuReport& report);
// A self-contained page.
std::string report_html(const GpuReport& report);

}  // namespace loadline::bench
