// The writer, interrupted conversions, and the folder around them.

#include "core/base/error.h"
#include "core/io/unfinished.h"
#include "exporters/model_folder.h"
#include "exporters/preflight.h"
#include "exporters/writer/consume.h"
#include "exporters/writer/work_folder.h"
#include "exporters/writer/write_layout.h"
#include "importers/importer.h"
#include "importers/resolve.h"
#include "tests/exporters/export_support.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::tests {

// --- Interrupted conversions: what they leave, what continues them, and what removes it.

namespace {

namespace fs = std::filesystem;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

constexpr std::uint64_t kTensor = 300'000;

// Reads a model's bytes; `before` is called first.
io::ReadTensor reader_with(const graph::MetaGraphPtr& graph,
                           std::function<void(graph::TensorId, std::uint64_t)> before = {}) {
  const auto storages = std::make_shared<io::StorageReader>(graph);
  return [storages, before](graph::TensorId id, std::uint64_t offset, std::span<std::byte> out) {
    if (before) before(id, offset);
    io::TensorReader(*storages).read(id, offset, out);
  };
}

exporters::WriteOptions small_steps() {
  exporters::WriteOptions options;
  options.memory_budget = 64 << 10;
  options.checkpoint_bytes = 32 << 10;
  options.threads = 2;
  return options;
}

// The names of all files below a folder and what they hold.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder).string()] = read_file(entry.path().string());
  return files;
}

class Resume : public ::testing::Test {
 protected:
  exporters::Layout layout(const std::string& out, std::string_view exporter = "safetensors",
                           std::uint64_t shard = 0) {
    return exporters::find_exporter(exporter).layout(
        *graph_, {.outtype = {}, .alignment = 0, .max_shard_bytes = shard}, folder_ / out);
  }
  exporters::WriteReport write(const exporters::Layout& layout, const exporters::WriteOptions& options) {
    Progress progress;
    return exporters::write_layout(layout, *graph_, reader_with(graph_), options, progress);
  }
  // In a process of its own, which is killed when it reads tensor `id` at `offset` or later.
  void write_until(const exporters::Layout& layout, const exporters::WriteOptions& options, std::uint32_t id,
                   std::uint64_t offset) {
    const pid_t child = ::fork();
    if (child == 0) {
      Progress progress;
      const io::ReadTensor dying = reader_with(graph_, [&](graph::TensorId tensor, std::uint64_t at) {
        if (graph::index(tensor) == id && at >= offset) ::raise(SIGKILL);
      });
      exporters::write_layout(layout, *graph_, dying, options, progress);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  std::size_t remains(const std::string& folder) { return exporters::find_remains(folder_ / folder).size(); }

  const TemporaryFolder folder_;
  graph::MetaGraphPtr graph_ = testing::byte_model(folder_, {kTensor, kTensor, kTensor});
};

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

TEST_F(Resume, AnInterruptedLastStepIsEnded) {
  const exporters::Layout whole = layout("whole", "safetensors", kTensor),
                          out = layout("out", "safetensors", kTensor);
  write(whole, {});
  // all parts are written, and the first is in place
  exporters::WriteOptions share = small_steps();
  share.share = exporters::WriteShare{0, 1};
  EXPECT_FALSE(write(out, share).complete);
  const std::string work = exporters::WorkFolder::path_of(out);
  write_file(work + "/publish", "");
  fs::rename(work + "/00000.part", out.files[0].path);
  for (const bool join : {false, true}) {
    const TemporaryFolder copy;
    fs::copy(folder_ / "out", copy / "kept", fs::copy_options::recursive);
    if (join) {
      Progress progress;
      exporters::join_parts(folder_ / "out", false, progress);
    } else {
      exporters::WriteOptions resume;
      resume.resume = true;
      EXPECT_EQ(write(out, resume).files.size(), out.files.size());
    }
    EXPECT_EQ(contents(folder_ / "out"), contents(folder_ / "whole"));
    fs::remove_all(folder_ / "out");
    fs::copy(copy / "kept", folder_ / "out", fs::copy_options::recursive);
  }
}

// Temporary files go one by one, and logs may go before the record.
TEST_F(Resume, ARemovalThatWasInterruptedIsEnded) {
  const exporters::Layout whole = layout("whole", "safetensors", kTensor),
                          out = layout("out", "safetensors", kTensor);
  write(whole, {});
  for (const bool complete : {true, false}) {
    exporters::WriteOptions share = small_steps();
    share.share = exporters::WriteShare{0, 1};
    EXPECT_FALSE(write(out, share).complete);
    const std::string work = exporters::WorkFolder::path_of(out);
    write_file(work + "/publish", "");
    for (std::size_t i = 0; i < out.files.size(); ++i) {
      const std::string part = fmt::format("{}/{:05}.part", work, i);
      if (complete || i > 0)
        fs::rename(part, out.files[i].path);
      else
        fs::resize_file(part, out.files[i].bytes - 1);
    }
    fs::remove(work + "/00000.log");
    Progress progress;
    if (!complete) {  // a file that is not in place must be whole
      EXPECT_THROW(exporters::join_parts(out.folder, false, progress), Error);
      continue;
    }
    EXPECT_EQ(exporters::join_parts(out.folder, false, progress).files.size(), out.files.size());
    EXPECT_FALSE(fs::exists(work));
    for (std::size_t i = 0; i < out.files.size(); ++i)
      EXPECT_EQ(read_file(out.files[i].path), read_file(whole.files[i].path));
    fs::remove_all(out.folder);
  }
}

// A run that is killed while it replaces several files, at each of its moves.
TEST_F(Resume, HalfAReplacementIsSaidAndEnded) {
  const exporters::Layout whole = layout("whole", "safetensors", kTensor),
                          out = layout("out", "safetensors", kTensor);
  write(whole, {});
  const std::string work = exporters::WorkFolder::path_of(out);
  const std::size_t count = out.files.size();
  ASSERT_GT(count, 2u);
  exporters::WriteOptions share = small_steps();
  share.share = exporters::WriteShare{0, 1};
  share.overwrite = true;
  for (std::size_t moves = 0; moves <= 2 * count; ++moves) {
    fs::remove_all(folder_ / "out");
    fs::create_directory(folder_ / "out");
    for (const exporters::LayoutFile& file : out.files) write_file(file.path, "old");
    write(out, share);
    io::Mark mark;
    for (const exporters::LayoutFile& file : out.files)
      mark.files.push_back(fs::path(file.path).filename().string());
    io::put_mark(work + "/publish", mark);
    for (std::size_t i = 0; i < moves; ++i)
      if (i < count)
        fs::rename(out.files[count - 1 - i].path, fmt::format("{}/{:05}.old", work, count - 1 - i));
      else
        fs::rename(fmt::format("{}/{:05}.part", work, i - count), out.files[i - count].path);
    for (const std::string& path : {folder_ / "out", out.files[count - 1].path, out.files[0].path}) try {
        importers::open_model(path, {});
        ADD_FAILURE() << path << " is opened after " << moves;
      } catch (const Error& error) {
        if (fs::exists(path))
          EXPECT_NE(std::string(error.what()).find("put its files in place"), std::string::npos)
              << error.what();
      }
    exporters::WriteOptions force;
    force.overwrite = true;
    EXPECT_THROW(write(layout("out", "safetensors", 2 * kTensor), force), Error);
    EXPECT_THROW(exporters::remove_remains(exporters::find_remains(folder_ / "out").at(0), true), Error);
    Progress progress;
    exporters::end_publication(work, progress);
    EXPECT_EQ(contents(folder_ / "out"), contents(folder_ / "whole")) << moves;
    EXPECT_NO_THROW(importers::open_model(folder_ / "out", {}));
  }
}

TEST_F(Resume, AnOutputThatIsNotedByNobodyYetIsKnown) {
  const exporters::Layout out = layout("out/o.safetensors");
  exporters::WriteOptions options = small_steps();
  options.resume = true;
  options.published = [](const exporters::WriteReport&) { throw Error(ErrorCode::io, "no room for a note"); };
  EXPECT_THROW(write(out, options), Error);
  EXPECT_NO_THROW(importers::open_model(folder_ / "out/o.safetensors", {}));
  std::size_t noted = 0;
  options.published = [&](const exporters::WriteReport& report) { noted += report.files.size(); };
  write(out, options);
  EXPECT_EQ(noted, 1u);
  EXPECT_EQ(contents(folder_ / "out").size(), 1u);
  // once somebody else has changed the output, it is not known any more
  options.published = [](const exporters::WriteReport&) { throw Error(ErrorCode::io, "no room for a note"); };
  fs::remove(folder_ / "out/o.safetensors");
  EXPECT_THROW(write(out, options), Error);
  write_file(folder_ / "out/o.safetensors", "mine");
  options.published = {};
  EXPECT_THROW(write(out, options), Error);
  EXPECT_EQ(read_file(folder_ / "out/o.safetensors"), "mine");
  exporters::remove_finished(folder_ / "out/o.safetensors");
  EXPECT_EQ(remains("out"), 0u);
}

TEST_F(Resume, APartThatIsExchangedIsNoticed) {
  const exporters::Layout out = layout("out", "safetensors", kTensor);
  std::once_flag once;  // several threads read
  const io::ReadTensor exchanging = reader_with(graph_, [&](graph::TensorId id, std::uint64_t) {
    if (graph::index(id) != 2) return;
    std::call_once(once, [&] {
      const std::string part = exporters::WorkFolder::path_of(out) + "/00000.part";
      fs::copy(part, part + ".mine");
      fs::rename(part, part + ".theirs");
      fs::copy(part + ".mine", part);
    });
  });
  Progress progress;
  EXPECT_THROW(exporters::write_layout(out, *graph_, exchanging, small_steps(), progress), Error);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
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

TEST_F(Resume, SharesTogetherAreTheWhole) {
  const exporters::Layout whole = layout("whole", "safetensors", kTensor),
                          out = layout("out", "safetensors", kTensor);
  write(whole, {});
  exporters::WriteOptions options = small_steps();
  Progress progress;
  EXPECT_THROW(exporters::join_parts(folder_.path().string(), false, progress), Error);  // nothing to join
  // the second of three dies; the others do its work
  options.share = exporters::WriteShare{1, 3};
  write_until(out, options, 1, 100'000);
  EXPECT_THROW(exporters::join_parts(folder_ / "out", false, progress), Error);  // incomplete
  for (const std::uint32_t i : {0u, 2u}) {
    options.share = exporters::WriteShare{i, 3};
    EXPECT_FALSE(write(out, options).complete);
  }
  const exporters::WriteReport report = exporters::join_parts(folder_ / "out", false, progress);
  EXPECT_EQ(report.files.size(), out.files.size());
  EXPECT_EQ(contents(folder_ / "out"), contents(folder_ / "whole"));
}

TEST_F(Resume, ADamagedPartIsNotJoined) {
  const exporters::Layout out = layout("out", "safetensors", kTensor);
  exporters::WriteOptions options;
  options.share = exporters::WriteShare{0, 1};
  write(out, options);
  std::fstream(exporters::WorkFolder::path_of(out) + "/00001.part", std::ios::in | std::ios::out).put('x');
  Progress progress;
  EXPECT_THROW(exporters::join_parts(folder_ / "out", false, progress), Error);
  EXPECT_FALSE(fs::exists(out.files[0].path));
}

// A folder that somebody else made may hold any record.
TEST_F(Resume, AHostileRecordLeadsNowhere) {
  const exporters::Layout out = layout("out", "safetensors", kTensor);
  exporters::WriteOptions share = small_steps();
  share.share = exporters::WriteShare{0, 1};
  write(out, share);
  const std::string record = exporters::WorkFolder::path_of(out) + "/job.json", good = read_file(record);
  write_file(folder_ / "precious", "mine");
  fs::create_directory_symlink(folder_.path(), folder_ / "out/link");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_file(record, text);
    Progress progress;
    return exporters::join_parts(folder_ / "out", true, progress);
  };
  const std::string first = "\"target\": \"" + fs::path(out.files[0].path).filename().string();
  for (const char* target : {"../precious", "link/precious", "/tmp/precious", ""})
    EXPECT_THROW(with(first, std::string("\"target\": \"") + target), Error) << target;
  EXPECT_THROW(with("{", "["), Error);
  EXPECT_THROW(with("\"version\": 1", "\"version\": 99"), Error);
  EXPECT_EQ(read_file(folder_ / "precious"), "mine");
  // a file that the conversion did not read is not removed after it
  with("\"removes\": []", "\"removes\": [\"" + (folder_ / "precious") + "\"]");
  EXPECT_EQ(read_file(folder_ / "precious"), "mine");
  EXPECT_TRUE(fs::exists(out.files[0].path));
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

// The same with files that give their space back.
class Consume : public Resume {
 protected:
  static constexpr std::uint64_t kLarge = 3 << 20;
  Consume() { graph_ = testing::byte_model(folder_, {kLarge, kLarge, kLarge}); }
  exporters::WriteOptions consuming() {
    exporters::WriteOptions options = small_steps();
    options.checkpoint_bytes = 1 << 20;
    options.consume = true;
    return options;
  }
  std::uint64_t source_blocks() {
    struct stat state = {};
    return ::stat(graph_->files[0].path.c_str(), &state) == 0
               ? static_cast<std::uint64_t>(state.st_blocks) * 512
               : 0;
  }
};

TEST_F(Consume, GivesSpaceBackAndRemovesTheSource) {
  const exporters::Layout whole = layout("whole.safetensors"), out = layout("out.safetensors");
  write(whole, {});
  std::atomic<std::uint64_t> least = UINT64_MAX;
  Progress progress;
  exporters::write_layout(
      out, *graph_,
      reader_with(graph_,
                  [&](graph::TensorId, std::uint64_t) { least = std::min(least.load(), source_blocks()); }),
      consuming(), progress);
  EXPECT_LT(least, 2 * kLarge);
  EXPECT_EQ(read_file(folder_ / "out.safetensors"), read_file(folder_ / "whole.safetensors"));
  EXPECT_FALSE(fs::exists(graph_->files[0].path));
  EXPECT_EQ(exporters::find_remains(folder_.path().string()).size(), 0u);
}

TEST_F(Consume, RemainsHoldTheOnlyCopyAndStay) {
  const exporters::Layout whole = layout("whole.safetensors"), out = layout("out/o.safetensors");
  write(whole, {});
  write_until(out, consuming(), 2, 0);
  EXPECT_LT(source_blocks(), 3 * kLarge);
  const exporters::Remains remains = exporters::find_remains(folder_ / "out").at(0);
  EXPECT_GE(remains.consumed, kLarge);
  EXPECT_THROW(exporters::remove_remains(remains, false), Error);
  // the source has holes now, wherever it is
  const std::string source = graph_->files[0].path, mark = folder_ / io::kConsumedMark;
  EXPECT_THROW(importers::open_model(source, {}), Error);
  EXPECT_THROW(write(layout("else.safetensors"), {}), Error);
  fs::create_directory(folder_ / "moved");
  fs::copy(source, folder_ / "moved");
  EXPECT_NO_THROW(importers::open_model(folder_ / "moved", {}));
  fs::copy(mark, folder_ / "moved");
  EXPECT_THROW(importers::open_model(folder_ / "moved", {}), Error);
  EXPECT_NO_THROW(importers::open_consumed(source, {}));
  exporters::WriteOptions force = consuming();
  force.overwrite = true;
  EXPECT_THROW(write(out, force), Error);
  // canceling does not remove them either
  std::stop_source stop;
  stop.request_stop();
  Progress canceled(stop.get_token());
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  EXPECT_THROW(exporters::write_layout(out, *graph_, reader_with(graph_), resume, canceled), Error);
  EXPECT_EQ(exporters::find_remains(folder_ / "out").size(), 1u);
  write(out, resume);
  EXPECT_EQ(read_file(folder_ / "out/o.safetensors"), read_file(folder_ / "whole.safetensors"));
  EXPECT_FALSE(fs::exists(graph_->files[0].path));
  EXPECT_FALSE(fs::exists(mark));
  EXPECT_EQ(contents(folder_ / "out").size(), 1u);
}

TEST_F(Consume, OnlyTheFilesThatAreNamedGo) {
  const std::string path = graph_->files[0].path, before = read_file(path);
  exporters::WriteOptions options = consuming();
  options.consumable_files = 0;
  write(layout("out.safetensors"), options);
  EXPECT_EQ(read_file(path), before);
  EXPECT_FALSE(fs::exists(folder_ / io::kConsumedMark));
  EXPECT_TRUE(exporters::consumed_files(*graph_, 0).empty());
  EXPECT_EQ(exporters::consumed_files(*graph_, 1), std::vector<std::string>{fs::absolute(path).string()});
}

TEST_F(Consume, CancelingKeepsWhatIsTheOnlyCopy) {
  const exporters::Layout out = layout("out/o.safetensors");
  std::stop_source stop;
  Progress progress(stop.get_token());
  const io::ReadTensor stopping = reader_with(graph_, [&](graph::TensorId id, std::uint64_t) {
    if (graph::index(id) == 2) stop.request_stop();
  });
  EXPECT_THROW(exporters::write_layout(out, *graph_, stopping, consuming(), progress), Error);
  EXPECT_GE(exporters::find_remains(folder_ / "out").at(0).consumed, kLarge);
}

TEST_F(Consume, ASourceWithOtherNamesIsRefused) {
  const std::string path = graph_->files[0].path;
  fs::create_hard_link(path, path + ".other");
  EXPECT_THROW(write(layout("out.safetensors"), consuming()), Error);
  EXPECT_EQ(read_file(path), read_file(path + ".other"));
}

}  // namespace

// --- The writer: the same bytes whatever happens, targets in the way, and failures that leave nothing.

namespace {

using export_tests::convert;
using export_tests::open;
using export_tests::plain_model;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(Writer, TheSameBytesEveryTimeAndInAnyBuffer) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {100'000, 3, 0, 70'001, 1'000'000});
  std::vector<std::uint64_t> hashes;
  for (const std::uint64_t budget : {1u << 16, 200'000u, 64u << 20}) {
    exporters::WriteOptions write;
    write.memory_budget = budget;
    write.overwrite = true;
    write.verify = true;
    const exporters::WriteReport report = convert(graph, folder / "o.safetensors", {}, write);
    EXPECT_LE(report.buffer_bytes, std::max<std::uint64_t>(budget, 128 << 10));
    EXPECT_TRUE(report.verified);
    EXPECT_EQ(report.bytes_written, fs::file_size(folder / "o.safetensors"));
    hashes.push_back(report.files[0].xxh3);
  }
  EXPECT_EQ(std::set<std::uint64_t>(hashes.begin(), hashes.end()).size(), 1u);
}

TEST(Writer, CastsInSmallPiecesAsInOne) {
  const TemporaryFolder folder;
  std::string header =
      R"({"odd":{"dtype":"U8","shape":[7],"data_offsets":[400000,400007]},"w":{"dtype":"F32","shape":[100000],"data_offsets":[0,400000]}})";
  write_file(folder / "in.safetensors", testing::safetensors_bytes(header, 400'007));
  const graph::MetaGraphPtr graph = open(folder / "in.safetensors");
  exporters::WriteOptions small, large;
  small.memory_budget = 1 << 16;
  convert(graph, folder / "s.safetensors",
          {.outtype = graph::DType::bf16, .alignment = 0, .max_shard_bytes = 0}, small);
  convert(graph, folder / "l.safetensors",
          {.outtype = graph::DType::bf16, .alignment = 0, .max_shard_bytes = 0}, large);
  EXPECT_EQ(read_file(folder / "s.safetensors"), read_file(folder / "l.safetensors"));
}

TEST(Writer, RefusesWhatTheDiskHasNoRoomFor) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {10});
  exporters::Layout layout =
      exporters::find_exporter("safetensors").layout(*graph, {}, folder / "new/out.safetensors");
  layout.files[0].bytes = std::uint64_t{1} << 60;
  const io::ReadTensor never = [](graph::TensorId, std::uint64_t, std::span<std::byte>) { ADD_FAILURE(); };
  Progress progress;
  try {
    exporters::write_layout(layout, *graph, never, {}, progress);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what())
                  .find("needs 1.00 EiB (1152921504606846976 bytes) in all, the disk of '" +
                        folder.path().string() + "' has "),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(folder / "new"));
}

TEST(Writer, LeavesExistingTargetsAloneUnlessForced) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = plain_model(folder);
  write_file(folder / "out/o.gguf", "precious");
  exporters::ExportOptions keep;
  keep.keep_names = true;
  EXPECT_THROW(convert(graph, folder / "out/o.gguf", keep), Error);
  EXPECT_EQ(read_file(folder / "out/o.gguf"), "precious");
  exporters::WriteOptions force;
  force.overwrite = true;
  convert(graph, folder / "out/o.gguf", keep, force);
  EXPECT_EQ(read_file(folder / "out/o.gguf").substr(0, 4), "GGUF");
}

TEST(Writer, AFolderHoldsOneModelAfterwards) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {40, 40, 40, 40});
  const auto write = [&](std::uint64_t shard, bool force) {
    exporters::WriteOptions options;
    options.overwrite = force;
    convert(graph, folder / "out", {.outtype = {}, .alignment = 0, .max_shard_bytes = shard}, options);
  };
  write(40, false);  // four shards and an index
  EXPECT_EQ(entries(folder / "out"), 5u);
  EXPECT_THROW(write(0, false), Error);  // would be shadowed by the index
  EXPECT_EQ(entries(folder / "out"), 5u);
  write_file(folder / "out/tokenizer.json", "{}");
  write(80, true);
  EXPECT_EQ(entries(folder / "out"), 4u);  // two shards, an index, the tokenizer
  EXPECT_EQ(open(folder / "out")->files.size(), 3u);
  write(0, true);
  EXPECT_EQ(entries(folder / "out"), 2u);
  EXPECT_EQ(open(folder / "out")->tensors.size(), 4u);
}

TEST(Writer, AnotherModelsIndexIsLeftAlone) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {40});
  write_file(folder / "out/other.safetensors.index.json", "{}");
  exporters::WriteOptions force;
  force.overwrite = true;
  EXPECT_THROW(convert(graph, folder / "out", {}, force), Error);
  EXPECT_EQ(entries(folder / "out"), 1u);
}

TEST(Writer, ATargetThatAppearsMeanwhileIsNotReplaced) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {100, 100});
  const exporters::Layout layout =
      exporters::find_exporter("safetensors")
          .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 100}, folder / "out");
  const std::string second = layout.files[1].path;
  const io::ReadTensor racing = [&](graph::TensorId, std::uint64_t, std::span<std::byte>) {
    write_file(second, "somebody else's");
  };
  Progress progress;
  EXPECT_THROW(exporters::write_layout(layout, *graph, racing, {}, progress), Error);
  EXPECT_EQ(read_file(second), "somebody else's");
  EXPECT_EQ(entries(folder / "out"), 1u);  // what had been published was taken back
}

TEST(Writer, AFailedReplacementIsTakenBack) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {300'000, 300'000, 300'000});
  const exporters::Layout layout =
      exporters::find_exporter("safetensors")
          .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 300'000}, folder / "out");
  fs::create_directory(folder / "out");
  for (std::size_t i = 0; i < layout.files.size(); ++i)
    write_file(layout.files[i].path, fmt::format("old {}", i));
  write_file(folder / "out/model.safetensors", "another model");
  const auto before = contents(folder / "out");
  exporters::WriteOptions force = small_steps();
  force.overwrite = true;
  // a folder in the way of the first of its files, which is moved last and after all others
  std::once_flag once;  // several threads read
  const io::ReadTensor racing = reader_with(graph, [&](graph::TensorId id, std::uint64_t) {
    if (graph::index(id) != 2) return;
    std::call_once(once, [&] {
      fs::remove(layout.files[0].path);
      fs::create_directories(layout.files[0].path + "/precious");
    });
  });
  Progress progress;
  force.threads = 1;
  EXPECT_THROW(exporters::write_layout(layout, *graph, racing, force, progress), Error);
  EXPECT_TRUE(fs::exists(layout.files[0].path + "/precious"));
  fs::remove_all(layout.files[0].path);
  write_file(layout.files[0].path, "old 0");
  EXPECT_EQ(contents(folder / "out"), before);
  exporters::write_layout(layout, *graph, reader_with(graph), force, progress);
  EXPECT_EQ(entries(folder / "out"), layout.files.size());
}

TEST(Writer, KeepsTheModeOfWhatItReplaces) {
  const TemporaryFolder folder;
  write_file(folder / "o.gguf", "old");
  fs::permissions(folder / "o.gguf", fs::perms::owner_read | fs::perms::owner_write);
  exporters::WriteOptions force;
  force.overwrite = true;
  exporters::ExportOptions keep;
  keep.keep_names = true;
  convert(plain_model(folder), folder / "o.gguf", keep, force);
  EXPECT_EQ(fs::status(folder / "o.gguf").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Writer, NeverWritesOntoItsInput) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = plain_model(folder);
  const std::string before = read_file(folder / "in/model.safetensors");
  exporters::WriteOptions force;
  force.overwrite = true;
  fs::create_symlink(folder / "in/model.safetensors", folder / "link.safetensors");
  for (const std::string& out : {folder / "in/model.safetensors", folder / "in/../in/model.safetensors",
                                 folder / "link.safetensors", folder / "in"})
    EXPECT_THROW(convert(graph, out, {}, force), Error) << out;
  EXPECT_EQ(read_file(folder / "in/model.safetensors"), before);
}

TEST(Writer, NeverReplacesWhatLiesBesideItsInputOrIsReadToo) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = plain_model(folder);
  exporters::WriteOptions force;
  force.overwrite = true;
  force.other_inputs = {"forward", folder / "in/importance.gguf"};
  exporters::ExportOptions keep;
  keep.keep_names = true;
  for (const char* name : {"tokenizer.json", "adapter_config.json", "importance.gguf", "other.gguf"}) {
    write_file(folder / ("in/" + std::string(name)), "mine");
    const exporters::Layout layout =
        exporters::find_exporter("gguf").layout(*graph, keep, folder / ("in/" + std::string(name)));
    Progress progress;
    const auto write = [&] { exporters::write_layout(layout, *graph, reader_with(graph), force, progress); };
    if (std::string_view(name) == "other.gguf") {
      EXPECT_NO_THROW(write());
      continue;
    }
    EXPECT_THROW(write(), Error) << name;
    EXPECT_EQ(read_file(folder / ("in/" + std::string(name))), "mine");
  }
}

TEST(Writer, NeverRemovesItsInputThroughALink) {
  const TemporaryFolder folder;
  plain_model(folder);  // in/model.safetensors and in/config.json
  fs::create_symlink(folder / "in/model.safetensors", folder / "link.safetensors");
  const graph::MetaGraphPtr graph = open(folder / "link.safetensors");
  exporters::WriteOptions force;
  force.overwrite = true;
  EXPECT_THROW(convert(graph, folder / "in", {.outtype = {}, .alignment = 0, .max_shard_bytes = 50}, force),
               Error);
  EXPECT_EQ(entries(folder / "in"), 2u);
  Progress progress;
  EXPECT_THROW(exporters::convert_model({open(folder / "in/model.safetensors"),
                                         &exporters::find_exporter("gguf"),
                                         folder / "in/config.json",
                                         {},
                                         force},
                                        progress),
               Error);
}

TEST(Writer, AKilledExportLeavesTheTargetAsItWas) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {300'000});
  write_file(folder / "kept.safetensors", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const io::ReadTensor dying = [](graph::TensorId, std::uint64_t offset, std::span<std::byte>) {
      if (offset > 0) ::raise(SIGKILL);
    };
    Progress progress;
    exporters::WriteOptions options;
    options.overwrite = true;
    options.memory_budget = 1 << 16;
    exporters::write_layout(
        exporters::find_exporter("safetensors").layout(*graph, {}, folder / "kept.safetensors"), *graph,
        dying, options, progress);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(folder / "kept.safetensors"), "old");
}

TEST(Writer, FailuresAndCancellationLeaveNothing) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {300'000, 300'000});
  const exporters::Layout layout =
      exporters::find_exporter("safetensors")
          .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 300'000},
                  folder / "new/deep/out");
  write_file(folder / "kept.safetensors", "old");
  exporters::WriteOptions options;
  options.memory_budget = 1 << 16;
  options.overwrite = true;
  // fails while the second shard is written
  const io::ReadTensor failing = [](graph::TensorId id, std::uint64_t, std::span<std::byte>) {
    if (id == graph::TensorId{1}) throw Error(ErrorCode::io, "the disk went away");
  };
  Progress progress;
  EXPECT_THROW(exporters::write_layout(layout, *graph, failing, options, progress), Error);
  EXPECT_FALSE(fs::exists(folder / "new"));

  std::stop_source stop;
  Progress canceled(stop.get_token());
  std::atomic<std::uint64_t> calls = 0;
  const io::ReadTensor stopping = [&](graph::TensorId, std::uint64_t, std::span<std::byte>) {
    if (++calls == 5) stop.request_stop();
  };
  const exporters::Layout single =
      exporters::find_exporter("safetensors").layout(*graph, {}, folder / "kept.safetensors");
  EXPECT_THROW(exporters::write_layout(single, *graph, stopping, options, canceled), Error);
  EXPECT_EQ(read_file(folder / "kept.safetensors"), "old");
  EXPECT_EQ(entries(folder.path()), 2u);  // the model and the kept file
}

TEST(Writer, LayoutsOfArchivesHoldNoPadding) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, std::vector<std::uint64_t>(100, 16));
  const exporters::Layout layout = exporters::find_exporter("torch").layout(*graph, {}, folder / "o.pt");
  std::uint64_t held = 0;
  for (const exporters::Piece& piece : layout.files.front().pieces) held += piece.bytes.size();
  EXPECT_GT(layout.files.front().bytes, 100 * 4096u);
  EXPECT_LT(held, 100 * 400u);
}

// Any thread may be at work on any window when one of them has no memory.
TEST(Writer, EndsWhicheverReadFails) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {300'000, 200'000});
  const exporters::Layout layout =
      exporters::find_exporter("safetensors").layout(*graph, {}, folder / "out.safetensors");
  exporters::WriteOptions options = small_steps();
  options.threads = 4;
  std::size_t failures = 0;
  for (std::uint64_t n = 1; n <= 100; ++n) {
    std::atomic<std::uint64_t> calls = 0;
    const io::ReadTensor reader = reader_with(graph, [&](graph::TensorId, std::uint64_t) {
      if (++calls == n) throw std::bad_alloc();
    });
    Progress progress;
    options.overwrite = true;
    try {
      exporters::write_layout(layout, *graph, reader, options, progress);
    } catch (const std::bad_alloc&) {
      ++failures;
    }
    EXPECT_EQ(calls < n, fs::exists(folder / "out.safetensors"));
    fs::remove(folder / "out.safetensors");
  }
  EXPECT_GT(failures, 20u);
}

TEST(Convert, RefusesUnsoundModelsAndModelsWithoutWeights) {
  const TemporaryFolder folder;
  write_file(folder / "t.safetensors",
             testing::safetensors_bytes(R"({"t":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 9));
  EXPECT_THROW(convert(open(folder / "t.safetensors"), folder / "o.safetensors"), Error);
  graph::MetaGraph shapes;
  shapes.storages = {graph::shapes_only_storage(4)};
  shapes.tensors = {{"t", graph::DType::u8, {4}, {}, graph::StorageId{0}, 0}};
  EXPECT_THROW(convert(std::make_shared<const graph::MetaGraph>(shapes), folder / "o.safetensors"), Error);
  EXPECT_FALSE(fs::exists(folder / "o.safetensors"));
}

TEST(Convert, TheOutputsNamePicksTheFormat) {
  EXPECT_EQ(exporters::exporter_for_output("a/b.gguf").id, "gguf");
  EXPECT_EQ(exporters::exporter_for_output("b.safetensors").id, "safetensors");
  EXPECT_EQ(exporters::exporter_for_output("models/Llama-3.1-8B").id, "safetensors");
  EXPECT_EQ(exporters::exporter_for_output("folder").id, "safetensors");
  EXPECT_THROW(exporters::exporter_for_output("model.tflite"), Error);
  EXPECT_THROW(exporters::exporter_for_output(""), Error);
}

}  // namespace

// --- A converted folder stays a model: its other files, and a config.json that says what the weights became.

namespace {

// A model folder with everything that people leave in one.
graph::MetaGraphPtr full_folder(const TemporaryFolder& folder) {
  for (const char* name :
       {"in/tokenizer.json", "in/README.md", "in/modeling_x.py", "in/1_Pooling/config.json"})
    write_file(folder / name, std::string("content of ") + name);
  for (const char* name : {"in/pytorch_model.bin", "in/onnx/model.onnx", "in/.gitattributes",
                           "in/.cache/x.json", "in/__pycache__/x.pyc", "in/optimizer.pt"})
    write_file(folder / name, "x");
  return plain_model(folder);
}

std::vector<std::string> names(const std::vector<exporters::FolderFile>& files) {
  std::vector<std::string> result;
  for (const exporters::FolderFile& file : files) result.push_back(file.name);
  return result;
}

TEST(ModelFolder, FilesBesideTheWeightsAreCopied) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = full_folder(folder);
  const exporters::FolderFiles found = exporters::folder_files(*graph, false);
  EXPECT_EQ(names(found.files), (std::vector<std::string>{"1_Pooling/config.json", "README.md",
                                                          "modeling_x.py", "tokenizer.json"}));
  EXPECT_EQ(found.left_out,
            (std::vector<std::string>{"onnx/model.onnx", "optimizer.pt", "pytorch_model.bin"}));
  convert(graph, folder / "out");
  for (const std::string& name : names(found.files))
    EXPECT_EQ(read_file(folder / ("out/" + name)), "content of in/" + name);
  EXPECT_FALSE(fs::exists(folder / "out/optimizer.pt"));
  // again, over itself
  EXPECT_THROW(convert(graph, folder / "out"), Error);
  convert(graph, folder / "out", {}, {.overwrite = true});
}

TEST(ModelFolder, FilesCanBeLinked) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = full_folder(folder);
  exporters::ExportOptions links;
  links.link_files = true;
  convert(graph, folder / "out", links);
  EXPECT_TRUE(fs::equivalent(folder / "in/README.md", folder / "out/README.md"));
  EXPECT_FALSE(fs::equivalent(folder / "in/config.json", folder / "out/config.json"));
  // replacing them changes the names only
  convert(graph, folder / "out", {}, {.overwrite = true});
  EXPECT_FALSE(fs::equivalent(folder / "in/README.md", folder / "out/README.md"));
  EXPECT_EQ(read_file(folder / "in/README.md"), "content of in/README.md");
  EXPECT_THROW(exporters::preflight({graph, &exporters::find_exporter("gguf"), folder / "o.gguf", links}),
               Error);
}

TEST(ModelFolder, WhatASingleFileLosesIsTold) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = full_folder(folder);
  exporters::ExportOptions keep;
  keep.keep_names = true;
  const auto losses =
      exporters::preflight({graph, &exporters::find_exporter("gguf"), folder / "o.gguf", keep}).left_out;
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0],
            "4 files of the model's folder are not copied, the output is not a model folder: "
            "'1_Pooling/config.json', "
            "'README.md', 'modeling_x.py' and 1 more");
  EXPECT_EQ(
      losses[1],
      "3 files of the model's folder are not copied: 'onnx/model.onnx', 'optimizer.pt', 'pytorch_model.bin'");
  exporters::ExportOptions strict = keep;
  strict.strict = true;
  EXPECT_THROW(exporters::preflight({graph, &exporters::find_exporter("gguf"), folder / "o.gguf", strict}),
               Error);
}

TEST(ModelFolder, LinksOutOfItAreLeftOut) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = plain_model(folder);
  write_file(folder / "secret", "s");
  fs::create_symlink("../secret", folder / "in/vocab.txt");
  fs::create_symlink(".", folder / "in/circle");
  fs::create_symlink("model.safetensors", folder / "in/inside.txt");
  const exporters::FolderFiles found = exporters::folder_files(*graph, false);
  EXPECT_EQ(found.left_out, (std::vector<std::string>{"circle/", "vocab.txt"}));
  EXPECT_EQ(names(found.files), std::vector<std::string>{"inside.txt"});
}

TEST(ModelFolder, AFileThatChangesIsNotCut) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = full_folder(folder);
  const exporters::Layout layout =
      exporters::preflight({graph, &exporters::find_exporter("safetensors"), folder / "out"}).layout;
  write_file(folder / "in/README.md", "shorter");
  Progress progress;
  const io::ReadTensor nothing = [](graph::TensorId, std::uint64_t, std::span<std::byte>) {};
  EXPECT_THROW(exporters::write_layout(layout, *graph, nothing, {}, progress), Error);
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(CastConfig, FollowsTheCast) {
  EXPECT_EQ(exporters::cast_config(R"({"b":1,"torch_dtype":"float32","a":1e-05})", graph::DType::bf16, false),
            "{\n  \"b\": 1,\n  \"torch_dtype\": \"bfloat16\",\n  \"a\": 1e-05\n}\n");
  EXPECT_EQ(exporters::cast_config(R"({"quantization_config":{"bits":4},"x":1})", graph::DType::f16, true),
            "{\n  \"x\": 1,\n  \"torch_dtype\": \"float16\"\n}\n");
  EXPECT_EQ(
      exporters::cast_config(R"({"quantization_config":{"bits":4},"dtype":null})", graph::DType::f16, false),
      "{\n  \"quantization_config\": {\n    \"bits\": 4\n  },\n  \"dtype\": \"float16\"\n}\n");
  EXPECT_EQ(exporters::cast_config(R"({"text_config":{"dtype":"bfloat16","quantization_config":{}}})",
                                   graph::DType::f32, true),
            "{\n  \"text_config\": {\n    \"dtype\": \"float32\"\n  }\n}\n");
}

TEST(CastConfig, LeavesWhatItDoesNotUnderstand) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  for (const std::string& text :
       {std::string("[]"), std::string("{"), std::string(), deep,
        std::string(R"({"a":)") + std::string(100, '[') + std::string(100, ']') + "}"})
    EXPECT_EQ(exporters::cast_config(text, graph::DType::f16, true), text);
}

}  // namespace

}  // namespace loadline::tests
