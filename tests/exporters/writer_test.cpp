// The writer: the same bytes whatever happens, targets in the way, and failures that leave nothing.
#include "core/base/error.h"
#include "tests/exporters/export_support.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;
using export_tests::convert;
using export_tests::open;
using export_tests::plain_model;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(Writer, TheSameBytesEveryTimeAndInAnyBuffer) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {100'000, 3, 0, 70'001, 1'000'000});
  std::vector<std::uint64_t> hashes;
  for (const std::uint64_t budget : {1u << 16, 200'000u, 64u << 20}) {
    WriteOptions write;
    write.memory_budget = budget;
    write.overwrite = true;
    write.verify = true;
    const WriteReport report = convert(graph, folder / "o.safetensors", {}, write);
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
  const MetaGraphPtr graph = open(folder / "in.safetensors");
  WriteOptions small, large;
  small.memory_budget = 1 << 16;
  convert(graph, folder / "s.safetensors", {.outtype = DType::bf16, .alignment = 0, .max_shard_bytes = 0},
          small);
  convert(graph, folder / "l.safetensors", {.outtype = DType::bf16, .alignment = 0, .max_shard_bytes = 0},
          large);
  EXPECT_EQ(read_file(folder / "s.safetensors"), read_file(folder / "l.safetensors"));
}

TEST(Writer, RefusesWhatTheDiskHasNoRoomFor) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {10});
  Layout layout = find_exporter("safetensors").layout(*graph, {}, folder / "new/out.safetensors");
  layout.files[0].bytes = std::uint64_t{1} << 60;
  const ReadTensor never = [](TensorId, std::uint64_t, std::span<std::byte>) { ADD_FAILURE(); };
  Progress progress;
  try {
    write_layout(layout, *graph, never, {}, progress);
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
  const MetaGraphPtr graph = plain_model(folder);
  write_file(folder / "out/o.gguf", "precious");
  ExportOptions keep;
  keep.keep_names = true;
  EXPECT_THROW(convert(graph, folder / "out/o.gguf", keep), Error);
  EXPECT_EQ(read_file(folder / "out/o.gguf"), "precious");
  WriteOptions force;
  force.overwrite = true;
  convert(graph, folder / "out/o.gguf", keep, force);
  EXPECT_EQ(read_file(folder / "out/o.gguf").substr(0, 4), "GGUF");
}

TEST(Writer, AFolderHoldsOneModelAfterwards) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {40, 40, 40, 40});
  const auto write = [&](std::uint64_t shard, bool force) {
    WriteOptions options;
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
  const MetaGraphPtr graph = testing::byte_model(folder, {40});
  write_file(folder / "out/other.safetensors.index.json", "{}");
  WriteOptions force;
  force.overwrite = true;
  EXPECT_THROW(convert(graph, folder / "out", {}, force), Error);
  EXPECT_EQ(entries(folder / "out"), 1u);
}

TEST(Writer, ATargetThatAppearsMeanwhileIsNotReplaced) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {100, 100});
  const Layout layout =
      find_exporter("safetensors")
          .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 100}, folder / "out");
  const std::string second = layout.files[1].path;
  const ReadTensor racing = [&](TensorId, std::uint64_t, std::span<std::byte>) {
    write_file(second, "somebody else's");
  };
  Progress progress;
  EXPECT_THROW(write_layout(layout, *graph, racing, {}, progress), Error);
  EXPECT_EQ(read_file(second), "somebody else's");
  EXPECT_EQ(entries(folder / "out"), 1u);  // what had been published was taken back
}

TEST(Writer, KeepsTheModeOfWhatItReplaces) {
  const TemporaryFolder folder;
  write_file(folder / "o.gguf", "old");
  fs::permissions(folder / "o.gguf", fs::perms::owner_read | fs::perms::owner_write);
  WriteOptions force;
  force.overwrite = true;
  ExportOptions keep;
  keep.keep_names = true;
  convert(plain_model(folder), folder / "o.gguf", keep, force);
  EXPECT_EQ(fs::status(folder / "o.gguf").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Writer, NeverWritesOntoItsInput) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = plain_model(folder);
  const std::string before = read_file(folder / "in/model.safetensors");
  WriteOptions force;
  force.overwrite = true;
  fs::create_symlink(folder / "in/model.safetensors", folder / "link.safetensors");
  for (const std::string& out : {folder / "in/model.safetensors", folder / "in/../in/model.safetensors",
                                 folder / "link.safetensors", folder / "in"})
    EXPECT_THROW(convert(graph, out, {}, force), Error) << out;
  EXPECT_EQ(read_file(folder / "in/model.safetensors"), before);
}

TEST(Writer, NeverRemovesItsInputThroughALink) {
  const TemporaryFolder folder;
  plain_model(folder);  // in/model.safetensors and in/config.json
  fs::create_symlink(folder / "in/model.safetensors", folder / "link.safetensors");
  const MetaGraphPtr graph = open(folder / "link.safetensors");
  WriteOptions force;
  force.overwrite = true;
  EXPECT_THROW(convert(graph, folder / "in", {.outtype = {}, .alignment = 0, .max_shard_bytes = 50}, force),
               Error);
  EXPECT_EQ(entries(folder / "in"), 2u);
  Progress progress;
  EXPECT_THROW(convert_model(open(folder / "in/model.safetensors"), find_exporter("gguf"), {},
                             folder / "in/config.json", force, progress),
               Error);
}

TEST(Writer, AKilledExportLeavesTheTargetAsItWas) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {300'000});
  write_file(folder / "kept.safetensors", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const ReadTensor dying = [](TensorId, std::uint64_t offset, std::span<std::byte>) {
      if (offset > 0) ::raise(SIGKILL);
    };
    Progress progress;
    WriteOptions options;
    options.overwrite = true;
    options.memory_budget = 1 << 16;
    write_layout(find_exporter("safetensors").layout(*graph, {}, folder / "kept.safetensors"), *graph, dying,
                 options, progress);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(folder / "kept.safetensors"), "old");
}

TEST(Writer, FailuresAndCancellationLeaveNothing) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = testing::byte_model(folder, {300'000, 300'000});
  const Layout layout = find_exporter("safetensors")
                            .layout(*graph, {.outtype = {}, .alignment = 0, .max_shard_bytes = 300'000},
                                    folder / "new/deep/out");
  write_file(folder / "kept.safetensors", "old");
  WriteOptions options;
  options.memory_budget = 1 << 16;
  options.overwrite = true;
  // fails while the second shard is written
  const ReadTensor failing = [](TensorId id, std::uint64_t, std::span<std::byte>) {
    if (id == TensorId{1}) throw Error(ErrorCode::io, "the disk went away");
  };
  Progress progress;
  EXPECT_THROW(write_layout(layout, *graph, failing, options, progress), Error);
  EXPECT_FALSE(fs::exists(folder / "new"));

  std::stop_source stop;
  Progress cancelled(stop.get_token());
  std::atomic<std::uint64_t> calls = 0;
  const ReadTensor stopping = [&](TensorId, std::uint64_t, std::span<std::byte>) {
    if (++calls == 5) stop.request_stop();
  };
  const Layout single = find_exporter("safetensors").layout(*graph, {}, folder / "kept.safetensors");
  EXPECT_THROW(write_layout(single, *graph, stopping, options, cancelled), Error);
  EXPECT_EQ(read_file(folder / "kept.safetensors"), "old");
  EXPECT_EQ(entries(folder.path()), 2u);  // the model and the kept file
}

TEST(Convert, RefusesUnsoundModelsAndModelsWithoutWeights) {
  const TemporaryFolder folder;
  write_file(folder / "t.safetensors",
             testing::safetensors_bytes(R"({"t":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 9));
  EXPECT_THROW(convert(open(folder / "t.safetensors"), folder / "o.safetensors"), Error);
  MetaGraph shapes;
  shapes.storages = {shapes_only_storage(4)};
  shapes.tensors = {{"t", DType::u8, {4}, {}, StorageId{0}, 0}};
  EXPECT_THROW(convert(std::make_shared<const MetaGraph>(shapes), folder / "o.safetensors"), Error);
  EXPECT_FALSE(fs::exists(folder / "o.safetensors"));
}

TEST(Convert, TheOutputsNamePicksTheFormat) {
  EXPECT_EQ(exporter_for_output("a/b.gguf").id, "gguf");
  EXPECT_EQ(exporter_for_output("b.safetensors").id, "safetensors");
  EXPECT_EQ(exporter_for_output("models/Llama-3.1-8B").id, "safetensors");
  EXPECT_EQ(exporter_for_output("folder").id, "safetensors");
  EXPECT_THROW(exporter_for_output("model.tflite"), Error);
  EXPECT_THROW(exporter_for_output(""), Error);
}

}  // namespace
}  // namespace loadline
