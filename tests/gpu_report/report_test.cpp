// What gpu-report reads from tests, and how it judges a machine that is not here.
#include "tests/gpu_report/report.h"

#include "tests/gpu_report/runs.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TestRun read(const std::vector<std::string>& lines, const std::string& ending) {
  TestRun run;
  TestOutput output(run);
  for (const std::string& line : lines) output.line(line);
  output.end(ending);
  return run;
}

TEST(GpuTestOutput, CountsAndKeepsWhatWasSaid) {
  const TestRun run =
      read({"Running main()", "[ RUN      ] A.passes", "[       OK ] A.passes (1 ms)",  //
            "[ RUN      ] A.fails", "a.cpp:3: Failure", "  actual: 3", "[  FAILED  ] A.fails (0 ms)",
            "[ RUN      ] A.skips", "a.cpp:9: Skipped", "no layer", "", "[  SKIPPED ] A.skips (0 ms)",
            "[ RUN      ] B.last", "[       OK ] B.last (1 ms)",
            "[  FAILED  ] 1 test, listed below:", "[  FAILED  ] A.fails"},
           "ended with code 1");
  EXPECT_EQ(run.passed, 2u);
  ASSERT_EQ(run.failed.size(), 1u);
  EXPECT_EQ(run.failed[0].name, "A.fails");
  EXPECT_EQ(run.failed[0].text, "a.cpp:3: Failure\n  actual: 3");
  ASSERT_EQ(run.skipped.size(), 1u);
  EXPECT_EQ(run.skipped[0].name, "A.skips");
  EXPECT_EQ(run.skipped[0].text, "no layer");
}

TEST(GpuTestOutput, AProgramThatDiesFailsTheTestThatRan) {
  const TestRun run = read({"[ RUN      ] A.dies", "about to"}, "was ended by signal 11");
  ASSERT_EQ(run.failed.size(), 1u);
  EXPECT_EQ(run.failed[0].name, "A.dies");
  EXPECT_EQ(run.failed[0].text, "about to\nThe program was ended by signal 11.");
  EXPECT_EQ(read({}, "cannot be started: no such file").failed.size(), 1u);
  EXPECT_EQ(read({}, "").failed.size(), 0u);
}

TEST(Child, SaysWhatItPrintedAndHowItEnded) {
  std::vector<std::string> lines;
  const auto run = [&](const char* program) {
    lines.clear();
    return run_child({.words = {"/bin/sh", "-c", program}, .set = {{"OURS", "value"}}, .unset = {"PATH"}},
                     [&](std::string_view line) { lines.emplace_back(line); });
  };
  EXPECT_EQ(run("echo $OURS; echo to errors >&2; printf 'no end'"), "");
  EXPECT_THAT(lines, ElementsAre("value", "to errors", "no end"));
  EXPECT_EQ(run("exit 3"), "ended with code 3");
  EXPECT_EQ(run("kill -9 $$"), "was ended by signal 9");
  EXPECT_THAT(run_child({.words = {"/no/such/program"}}, [](std::string_view) {}),
              HasSubstr("cannot be started"));
}

RateFigure row(RowUse use, const char* name, double seconds) {
  return {use, {name, seconds, seconds * 0.9, seconds * 1.2, 7}};
}

// A GPU that takes 50 GB/s, and an upload that takes `seconds` for 20 GB.
GpuReport on_gpu(double seconds, std::uint64_t bytes = 20'000'000'000) {
  GpuReport report;
  report.devices = {
      {.index = 0, .name = "GPU & co", .type = gpu::DeviceType::discrete, .vendor = "", .driver = ""}};
  report.tests = {
      {.device = "GPU & co", .passed = 3, .failed = {}, .skipped = {{"A.b", "<none>"}}, .seconds = 1}};
  UploadFigures figures{.device = report.devices[0]};
  figures.queue = {.index = 1, .only_copies = true};
  figures.queues = {.device = "GPU & co", .rates = {{"0 draws and computes", 24e9}, {"1 only copies", 25e9}}};
  figures.bytes = bytes;
  figures.method_bytes = 1 << 30;
  figures.tables = {
      {.id = "warm",
       .title = "Warm cache",
       .about = "",
       .bytes = bytes,
       .rows = {row(RowUse::baseline, "memcpy", 1), row(RowUse::upload, "slow", 2),
                row(RowUse::upload, "staged_ring", seconds), row(RowUse::ceiling, "pinned-copy loop", 0.4)}}};
  for (int i = 0; i < 8; ++i)
    figures.methods.push_back({.method = "m", .device = 1 << 30, .device_measured = (1 << 30) + (1 << 24)});
  figures.rings = {{.slots = 4, .ring = 1 << 26, .held = bytes / 100 * 101 + (1 << 26)}};
  report.uploads = figures;
  return report;
}

const Judged& find(const std::vector<Judged>& list, std::string_view id) {
  return *std::ranges::find(list, id, &Judged::id);
}

TEST(GpuReport, JudgesAgainstTheLink) {
  EXPECT_EQ(find(judged(on_gpu(0.43)), "warm_over_link").met, true);
  EXPECT_EQ(find(judged(on_gpu(0.46)), "warm_over_link").met, false);
  EXPECT_NEAR(*find(judged(on_gpu(0.5)), "warm_over_link").value, 0.8, 1e-9);
  // the goal is for large models
  EXPECT_EQ(find(judged(on_gpu(0.43, 1'000'000'000)), "warm_over_link").met, std::nullopt);
}

TEST(GpuReport, DoesNotJudgeThroughputOfASoftwareGpu) {
  GpuReport report = on_gpu(0.43);
  report.uploads->device.type = gpu::DeviceType::cpu;
  const std::vector<Judged> list = judged(report);
  EXPECT_EQ(find(list, "warm_over_memcpy").met, std::nullopt);
  EXPECT_TRUE(std::ranges::none_of(list, [](const Judged& one) { return one.id == "warm_over_link"; }));
  EXPECT_THAT(report_html(report), HasSubstr("This is a software GPU"));
}

TEST(GpuReport, JudgesMemory) {
  GpuReport report = on_gpu(0.43);
  EXPECT_EQ(find(judged(report), "methods").met, true);
  EXPECT_EQ(find(judged(report), "held_over_weights").met, true);
  report.uploads->rings[0].held += report.uploads->bytes / 50;
  EXPECT_EQ(find(judged(report), "held_over_weights").met, false);
  report.uploads->methods[0].device_measured += 1 << 25;
  EXPECT_EQ(find(judged(report), "methods").met, false);
  report = on_gpu(0.43);
  report.uploads->methods.pop_back();
  EXPECT_EQ(find(judged(report), "methods").met, false) << "too few";
}

TEST(GpuReport, ComparesWithTorch) {
  GpuReport report = on_gpu(0.5);
  report.torch = TorchFigures{.absent = "no module named torch"};
  EXPECT_THAT(report_html(report), HasSubstr("Not compared: no module named torch"));
  report.torch = TorchFigures{.versions = "torch 2",
                              .device = "GPU & co",
                              .bytes = report.uploads->bytes,
                              .warm = Result{"load_file", 1.5, 1, 2, 7}};
  EXPECT_NEAR(*find(judged(report), "torch").value, 3, 1e-9);
  EXPECT_THAT(report_html(report), HasSubstr("warm: load_file"));
}

TEST(GpuReport, IsSoundUnlessATestFailedOrBytesDiffer) {
  GpuReport report = on_gpu(0.5);
  EXPECT_TRUE(report.sound());
  report.uploads->methods[3].verified = false;
  EXPECT_FALSE(report.sound());
  report = on_gpu(0.5);
  report.tests[0].failed = {{"A.b", "x"}};
  EXPECT_FALSE(report.sound());
  EXPECT_EQ(find(judged(report), "tests").met, false);
}

TEST(GpuReport, PageAndJsonHoldTheSame) {
  GpuReport report = on_gpu(0.43);
  report.missing = {"cold <figures>"};
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("GPU report: GPU &amp; co"));
  EXPECT_THAT(html, HasSubstr("cold &lt;figures&gt;"));
  EXPECT_THAT(html, HasSubstr("goal met: 0.9"));
  EXPECT_THAT(html, HasSubstr("family 1 of its queues, which only copies; the link on them: 0 draws and "
                              "computes: 24.00 GB/s, 1"));
  const auto json = nlohmann::json::parse(report_json(report));
  EXPECT_EQ(json["uploads"]["queue"]["links"]["1 only copies"], 25e9);
  EXPECT_EQ(json["uploads"]["tables"][0]["ceiling"], "pinned-copy loop");
  EXPECT_EQ(json["uploads"]["methods"].size(), 8u);
  EXPECT_EQ(json["tests"][0]["skipped"][0]["reason"], "<none>");
  EXPECT_EQ(json["not_measured"][0], "cold <figures>");
  EXPECT_TRUE(json["torch"].is_null());
}

TEST(GpuReport, SaysThatNoDeviceIsThere) {
  EXPECT_THAT(report_html(GpuReport{}), HasSubstr("No Vulkan device was found"));
  EXPECT_TRUE(nlohmann::json::parse(report_json(GpuReport{}))["uploads"].is_null());
}

}  // namespace
}  // namespace loadline::bench
