// Interrupted conversions: what they leave, what continues them, and what removes it.

#include "core/base/error.h"
#include "exporters/writer/work_folder.h"
#include "exporters/writer/write_layout.h"
#include "tests/exporters/interrupted.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace loadline::tests {
namespace {

namespace fs = std::filesystem;
using export_tests::contents;
using export_tests::reader_with;
using export_tests::small_steps;
using testing::read_file;
using testing::write_file;

using Resume = export_tests::Interrupted;

TEST_F(Resume, EndsWithTheSameBytes) {
  for (const std::string exporter : {"safetensors", "npz", "torch"}) {
    const std::string end(exporters::find_exporter(exporter).extension);
    const exporters::Layout whole = layout("whole" + end, exporter), cut = layout("out/cut" + end, exporter);
    write(whole, {});
    write_until(cut, small_steps(), 1, 100'000);
    EXPECT_EQ(remains("out"), 1u) << exporter;
    EXPECT_FALSE(fs::exists(folder_ / ("out/cut" + end)));
    exporters::WriteOptions resume = small_steps();
    resume.resume = true;
    const exporters::WriteReport report = write(cut, resume);
    EXPECT_GT(report.bytes_resumed, kTensor) << exporter;
    EXPECT_EQ(report.bytes_resumed + report.bytes_written, cut.files[0].bytes) << exporter;
    EXPECT_EQ(read_file(folder_ / ("out/cut" + end)), read_file(folder_ / ("whole" + end))) << exporter;
    EXPECT_EQ(contents(folder_ / "out").size(), 1u) << exporter;
    fs::remove_all(folder_ / "out");
  }
}

// Nor does it hinder another output in the same folder.
TEST_F(Resume, ADamagedRecordIsNotGuessedAt) {
  const exporters::Layout out = layout("out/o.safetensors");
  exporters::WriteOptions force, resume = small_steps();
  force.overwrite = resume.resume = true;
  for (const char* damaged : {"", "{", "[]", "{\"version\": 1}", "{\"version\": 99}"}) {
    write_until(out, small_steps(), 1, 100'000);
    write_file(exporters::WorkFolder::path_of(out) + "/job.json", damaged);
    write(layout("out/other.safetensors"), force);
    for (const exporters::WriteOptions& options : {exporters::WriteOptions{}, resume}) try {
        write(out, options);
        ADD_FAILURE() << damaged;
      } catch (const Error& error) {
        ASSERT_TRUE(error.remedy()) << error.what();
        EXPECT_EQ(error.remedy()->option, "force");
      }
    const exporters::Remains remains = exporters::find_remains(folder_ / "out").at(0);
    EXPECT_TRUE(remains.damaged_record);
    EXPECT_GE(remains.written, kTensor);
    if (*damaged == '[')
      exporters::remove_remains(remains, false);
    else
      EXPECT_EQ(write(out, force).bytes_resumed, 0u);
    EXPECT_EQ(this->remains("out"), 0u);
    fs::remove_all(folder_ / "out");
  }
}

// What was to be put in place, and what made way for it, is nowhere else.
TEST_F(Resume, ADamagedRecordOfALastStepIsKept) {
  const exporters::Layout out = layout("out/o.safetensors");
  exporters::WriteOptions force, resume = small_steps();
  force.overwrite = resume.resume = true;
  write_until(out, small_steps(), 1, 100'000);
  const std::string work = exporters::WorkFolder::path_of(out), good = read_file(work + "/job.json");
  write_file(work + "/publish", "");
  for (const bool gone : {false, true}) {
    write_file(work + "/job.json", "damaged");
    if (gone) fs::remove(work + "/job.json");
    const auto before = contents(folder_.path());
    EXPECT_THROW(write(out, force), Error);
    EXPECT_THROW(write(out, resume), Error);
    EXPECT_THROW(exporters::remove_remains(exporters::find_remains(folder_ / "out").at(0), true), Error);
    exporters::remove_finished(folder_ / "out/o.safetensors");
    EXPECT_EQ(contents(folder_.path()), before);
  }
  write_file(work + "/job.json", good);
  fs::remove(work + "/publish");
  EXPECT_GT(write(out, resume).bytes_resumed, 0u);
}

TEST_F(Resume, WithoutItRemainsAreNamedAndForceRemovesThem) {
  const exporters::Layout out = layout("out/o.safetensors");
  write_until(out, small_steps(), 1, 100'000);
  try {
    write(out, {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("an interrupted conversion left these files: "),
              std::string::npos)
        << error.what();
    ASSERT_TRUE(error.remedy());
    EXPECT_EQ(error.remedy()->option, "resume");
  }
  EXPECT_EQ(remains("out"), 1u);
  exporters::WriteOptions force;
  force.overwrite = true;
  EXPECT_EQ(write(out, force).bytes_resumed, 0u);
  EXPECT_EQ(contents(folder_ / "out").size(), 1u);
}

TEST_F(Resume, RemainsOfAnotherConversionAreNotContinued) {
  write_until(layout("out", "safetensors", kTensor), small_steps(), 1, 100'000);
  exporters::WriteOptions resume;
  resume.resume = true;
  EXPECT_THROW(write(layout("out", "safetensors", 2 * kTensor), resume), Error);
  EXPECT_EQ(remains("out"), 1u);
}

TEST_F(Resume, AChangedSourceIsNotContinued) {
  const exporters::Layout out = layout("out/o.safetensors");
  write_until(out, small_steps(), 1, 100'000);
  const std::string source = graph_->files[0].path;
  const auto time = fs::last_write_time(source);
  fs::last_write_time(source, time + std::chrono::seconds(5));
  exporters::WriteOptions resume;
  resume.resume = true;
  EXPECT_THROW(write(out, resume), Error);
  fs::last_write_time(source, time);
  write(out, resume);
  EXPECT_TRUE(fs::exists(folder_ / "out/o.safetensors"));
}

TEST_F(Resume, DamagedBytesAndLogsAreWrittenAgain) {
  const exporters::Layout whole = layout("whole.safetensors"), out = layout("out/o.safetensors");
  write(whole, {});
  exporters::WriteOptions resume = small_steps();
  resume.resume = true;
  const std::string work = exporters::WorkFolder::path_of(out);
  const auto damage = [&](const std::string& file, std::uint64_t at) {
    std::fstream stream(work + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put('\x5a');
  };
  const auto resumed = [&] {
    const std::uint64_t bytes = write(out, resume).bytes_resumed;
    EXPECT_EQ(read_file(folder_ / "out/o.safetensors"), read_file(folder_ / "whole.safetensors"));
    fs::remove_all(folder_ / "out");
    return bytes;
  };
  write_until(out, small_steps(), 2, 0);
  damage("00000.part", 200'000);
  const std::uint64_t before_damage = resumed();
  EXPECT_GT(before_damage, 100'000u);
  EXPECT_LE(before_damage, 200'000u);

  write_until(out, small_steps(), 2, 0);
  damage("00000.log", 3 * 51 + 7);
  const std::uint64_t three_lines = resumed();
  EXPECT_GE(three_lines, 3 * (32u << 10));
  EXPECT_LT(three_lines, 4 * (64u << 10));

  write_until(out, small_steps(), 2, 0);
  fs::resize_file(work + "/00000.part", 150'000);
  EXPECT_LE(resumed(), 150'000u);
}

TEST_F(Resume, CancelingKeepsTheFilesOnlyIfAsked) {
  const exporters::Layout out = layout("out/o.safetensors");
  for (const bool keep : {false, true}) {
    std::stop_source stop;
    Progress progress(stop.get_token());
    const io::ReadTensor stopping = reader_with(graph_, [&](graph::TensorId id, std::uint64_t at) {
      if (graph::index(id) == 1 && at > 100'000) stop.request_stop();
    });
    exporters::WriteOptions options = small_steps();
    options.resume = keep;
    EXPECT_THROW(exporters::write_layout(out, *graph_, stopping, options, progress), Error);
    EXPECT_EQ(fs::exists(folder_ / "out"), keep);
  }
  exporters::WriteOptions resume = small_steps();
  resume.resume = true;
  EXPECT_GT(write(out, resume).bytes_resumed, 0u);
}

TEST_F(Resume, TheSourceMayNotChangeMeanwhile) {
  const exporters::Layout out = layout("out/o.safetensors");
  const std::string source = graph_->files[0].path;
  const io::ReadTensor changing = reader_with(graph_, [&](graph::TensorId id, std::uint64_t) {
    if (graph::index(id) == 2)
      fs::last_write_time(source, fs::last_write_time(source) + std::chrono::seconds(1));
  });
  Progress progress;
  EXPECT_THROW(exporters::write_layout(out, *graph_, changing, small_steps(), progress), Error);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Resume, TwoProcessesDoNotWriteOneOutput) {
  const exporters::Layout out = layout("out/o.safetensors");
  const io::ReadTensor second = reader_with(graph_, [&](graph::TensorId id, std::uint64_t at) {
    if (graph::index(id) != 1 || at > 0) return;
    EXPECT_TRUE(testing::facts_of([&] { write(out, {}); }).starts_with("usage .loadline-"));
    EXPECT_TRUE(exporters::find_remains(folder_ / "out").at(0).alive);
    EXPECT_THROW(exporters::remove_remains(exporters::find_remains(folder_ / "out").at(0), true), Error);
  });
  Progress progress;
  exporters::write_layout(out, *graph_, second, small_steps(), progress);
  EXPECT_EQ(contents(folder_ / "out").size(), 1u);
}

}  // namespace
}  // namespace loadline::tests
