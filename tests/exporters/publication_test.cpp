// Outputs that are put in place: the last step, half of it, shares that are joined.

#include "core/base/error.h"
#include "core/io/unfinished.h"
#include "exporters/writer/work_folder.h"
#include "exporters/writer/write_layout.h"
#include "importers/resolve.h"
#include "tests/exporters/export_support.h"
#include "tests/exporters/interrupted.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {
namespace {

namespace fs = std::filesystem;
using export_tests::contents;
using export_tests::reader_with;
using export_tests::small_steps;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

using export_tests::convert;
using export_tests::open;
using Publication = export_tests::Interrupted;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST_F(Publication, AnInterruptedLastStepIsEnded) {
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
TEST_F(Publication, ARemovalThatWasInterruptedIsEnded) {
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
TEST_F(Publication, HalfAReplacementIsSaidAndEnded) {
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

// Another process that replaces the model again and again.
TEST_F(Publication, FilesOfTwoModelsAreNeverOpenedTogether) {
  std::vector<exporters::Layout> layouts;
  for (const std::uint64_t bytes : {100u, 200u}) {
    const fs::path parts = folder_ / fmt::format("{}", bytes);
    fs::create_directory(parts);
    const TemporaryFolder source;
    graph_ = testing::byte_model(source, {bytes, bytes});
    layouts.push_back(layout(fmt::format("{}/out", bytes), "safetensors", bytes));
    write(layouts.back(), {});
  }
  const std::string work = exporters::WorkFolder::path_of(layout("out", "safetensors", 100)),
                    mark = work + "/publish";
  fs::create_directories(work);
  std::vector<std::string> names;
  for (const exporters::LayoutFile& file : layouts[0].files)
    names.push_back(fs::path(file.path).filename().string());
  ASSERT_EQ(names.size(), 3u);
  io::put_mark(work + "/away", {.by = work, .files = names});
  const auto move = [&](const std::string& from, const std::string& to) {
    for (const std::string& name : names) fs::rename(from + "/" + name, to + "/" + name);
  };
  std::atomic<bool> done = false;
  std::jthread publisher([&] {
    constexpr int kReplacements = 150;
    for (int i = 0; i < kReplacements; ++i) {
      fs::rename(work + "/away", mark);
      if (i > 0) move(folder_ / "out", folder_ / (i % 2 == 0 ? "200/out" : "100/out"));
      move(folder_ / (i % 2 == 0 ? "100/out" : "200/out"), folder_ / "out");
      fs::rename(mark, work + "/away");
      std::this_thread::sleep_for(std::chrono::milliseconds(12));  // more than a tick of the files' clock
    }
    done = true;
  });
  std::size_t opened = 0;
  while (!done) try {
      const graph::MetaGraph graph = importers::open_model(folder_ / "out", {});
      ASSERT_EQ(graph.tensors.size(), 2u);
      EXPECT_EQ(graph.tensors[0].shape, graph.tensors[1].shape);
      EXPECT_NO_THROW(graph::require_sound(graph, "open"));
      ++opened;
    } catch (const Error&) {
    }
  publisher.join();
  EXPECT_GT(opened, 0u);
}

TEST_F(Publication, AModelThatIsReplacedSinceItWasOpenedIsNotConverted) {
  const fs::path source = graph_->files[0].path;
  const std::string work = io::work_folder_path(source.parent_path().string(), {});
  fs::create_directory(work);
  io::put_mark(work + "/publish", {.by = work, .files = {source.filename().string()}});
  EXPECT_THROW(write(layout("out.safetensors"), {}), Error);
  EXPECT_FALSE(fs::exists(folder_ / "out.safetensors"));
  fs::remove_all(work);
  EXPECT_NO_THROW(write(layout("out.safetensors"), {}));
}

TEST_F(Publication, AnOutputThatIsNotedByNobodyYetIsKnown) {
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

TEST_F(Publication, APartThatIsExchangedIsNoticed) {
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

TEST_F(Publication, SharesTogetherAreTheWhole) {
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

TEST_F(Publication, ADamagedPartIsNotJoined) {
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
TEST_F(Publication, AHostileRecordLeadsNowhere) {
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

TEST(Output, AFolderHoldsOneModelAfterwards) {
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

TEST(Output, ATargetThatAppearsMeanwhileIsNotReplaced) {
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

TEST(Output, AFailedReplacementIsTakenBack) {
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

}  // namespace
}  // namespace loadline::tests
