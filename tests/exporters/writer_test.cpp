// The writer, and the folder around what it writes.

#include "core/base/error.h"
#include "exporters/model_folder.h"
#include "exporters/preflight.h"
#include "exporters/writer/pipeline.h"
#include "exporters/writer/write_layout.h"
#include "tests/exporters/export_support.h"
#include "tests/exporters/interrupted.h"

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <limits>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::tests {

// --- The writer: the same bytes whatever happens, targets in the way, and failures that leave nothing.

namespace {

namespace fs = std::filesystem;
using export_tests::reader_with;
using export_tests::small_steps;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

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
  const auto write_with = [&](std::uint64_t budget, io::WritePolicy policy) {
    exporters::WriteOptions write;
    write.memory_budget = budget;
    write.policy = policy;
    write.overwrite = true;
    write.verify = true;
    const exporters::WriteReport report = convert(graph, folder / "o.safetensors", {}, write);
    EXPECT_LE(report.buffer_bytes, std::max<std::uint64_t>(budget, 128 << 10));
    EXPECT_TRUE(report.verified);
    EXPECT_EQ(report.bytes_written, fs::file_size(folder / "o.safetensors"));
    hashes.push_back(report.files[0].xxh3);
  };
  for (const std::uint64_t budget : {1u << 16, 200'000u, 64u << 20})
    for (const auto policy : {io::WritePolicy::cached, io::WritePolicy::drop_behind, io::WritePolicy::direct})
      write_with(budget, policy);
  EXPECT_EQ(std::set<std::uint64_t>(hashes.begin(), hashes.end()).size(), 1u);
}

// The room for a later step may not be there before an earlier one is taken.
TEST(Writer, WindowsOfALaterStepWait) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {1'000'000});
  const exporters::Layout layout =
      exporters::find_exporter("safetensors").layout(*graph, {}, folder / "o.safetensors");
  const io::ReadTensor read = reader_with(graph);
  const exporters::LayoutFile& file = layout.files[0];
  for (const std::uint64_t windows : {1u, 4u}) {
    const exporters::PipelineSizes sizes = exporters::share_budget(1 << 17, 2, 4, false, false);
    const std::uint64_t step = windows * sizes.window;
    exporters::FileContent content(file, *graph, read, 0);
    io::Xxh3 hash, written;
    std::atomic<std::uint64_t> taken = 0, ahead = 0;
    Progress progress;
    exporters::Pipeline(sizes).run(
        content, 0, file.bytes, hash,
        {.write = [&](std::uint64_t at, std::span<const std::byte>) { ahead += taken < at / step * step; },
         .written =
             [&](std::uint64_t at, std::span<const std::byte> bytes, std::uint64_t digest) {
               EXPECT_EQ(taken, at);
               written.update(bytes);
               EXPECT_EQ(written.digest(), digest);
               taken = at + bytes.size();
             },
         .step = step - 1},
        progress);
    EXPECT_EQ(taken, file.bytes);
    EXPECT_EQ(ahead, 0u);
  }
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

TEST(Writer, SaysWhichNumbersTheirTypeCannotHold) {
  const TemporaryFolder folder;
  constexpr std::size_t kNumbers = 50'001;
  std::vector<float> big(kNumbers, 1), odd(kNumbers, 2), fine(kNumbers, -65504);
  // at both ends, in the middle, and the least that becomes infinite
  big[0] = 1e6f, big[25'000] = -65520, big[kNumbers - 1] = 3e38f, big[1] = 65519;
  odd[7] = std::numeric_limits<float>::quiet_NaN(),
  odd[kNumbers - 2] = -std::numeric_limits<float>::infinity();
  std::string content;
  for (const auto* const numbers : {&big, &odd, &fine})
    content.append(reinterpret_cast<const char*>(numbers->data()), kNumbers * sizeof(float));
  std::string header = "{";
  for (std::size_t i = 0; i < 3; ++i)
    header +=
        fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})", i == 0 ? "" : ",",
                    std::array{"big", "odd", "fine"}[i], kNumbers, i * kNumbers * 4, (i + 1) * kNumbers * 4);
  write_file(folder / "in.safetensors", testing::safetensors_bytes(header + "}", 0) + content);
  const graph::MetaGraphPtr graph = open(folder / "in.safetensors");
  for (const std::uint64_t budget : {1u << 16, 64u << 20}) {
    const auto to = [&](std::optional<graph::DType> type, const std::string& name) {
      exporters::WriteOptions write;
      write.memory_budget = budget;
      write.overwrite = true;
      return convert(graph, folder / name, {.outtype = type, .alignment = 0, .max_shard_bytes = 0}, write);
    };
    const exporters::WriteReport report = to(graph::DType::f16, "o.safetensors");
    ASSERT_EQ(report.faulty.size(), 2u) << budget;
    EXPECT_EQ(report.faulty[0].name, "big");
    EXPECT_EQ(report.faulty[0].dtype, graph::DType::f16);
    EXPECT_EQ(report.faulty[0].faults.overflowed, 3u) << budget;
    EXPECT_EQ(report.faulty[0].faults.special, 0u);
    EXPECT_EQ(report.faulty[1].name, "odd");
    EXPECT_EQ(report.faulty[1].faults.overflowed, 0u);
    EXPECT_EQ(report.faulty[1].faults.special, 2u) << budget;
    EXPECT_EQ(testing::facts(exporters::faults_text(report)), "3 1 F16 'big' 2 1 'odd'");
    const exporters::WriteReport wide = to(graph::DType::bf16, "b.safetensors");
    ASSERT_EQ(wide.faulty.size(), 1u) << "all but the special ones have a place in BF16";
    EXPECT_EQ(wide.faulty[0].name, "odd");
    EXPECT_TRUE(to(std::nullopt, "c.safetensors").faulty.empty()) << "copies are not looked at";
  }
  exporters::ExportOptions strict{.outtype = graph::DType::f16};
  strict.strict = true;
  EXPECT_EQ(
      testing::facts_of([&] { convert(graph, folder / "s.safetensors", strict); }).rfind("unsupported", 0),
      0u);
  EXPECT_FALSE(fs::exists(folder / "s.safetensors"));
  EXPECT_EQ(entries(folder.path()), 4u) << "nothing of it is left";
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

TEST(Writer, AnotherModelsIndexIsLeftAlone) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = testing::byte_model(folder, {40});
  write_file(folder / "out/other.safetensors.index.json", "{}");
  exporters::WriteOptions force;
  force.overwrite = true;
  EXPECT_THROW(convert(graph, folder / "out", {}, force), Error);
  EXPECT_EQ(entries(folder / "out"), 1u);
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

TEST(ModelFolder, AnAdaptersTokenizerStandsForTheModels) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = full_folder(folder);
  for (const char* name : {"tokenizer.json", "chat_template.jinja", "README.md", "adapter_config.json"})
    write_file(folder / (std::string("adapter/") + name), std::string("adapter's ") + name);
  exporters::ExportOptions options;
  options.tokenizer_folder = folder / "adapter";
  convert(graph, folder / "out", options);
  EXPECT_EQ(read_file(folder / "out/tokenizer.json"), "adapter's tokenizer.json");
  EXPECT_EQ(read_file(folder / "out/chat_template.jinja"), "adapter's chat_template.jinja");
  EXPECT_EQ(read_file(folder / "out/README.md"), "content of in/README.md");
  EXPECT_FALSE(fs::exists(folder / "out/adapter_config.json"));
}

TEST(ModelFolder, AnAdaptersTokenizerMayNotLinkElsewhere) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = full_folder(folder);
  write_file(folder / "secret", "not the adapter's");
  fs::create_directories(folder / "adapter");
  fs::create_symlink(folder / "secret", folder / "adapter/vocab.json");
  exporters::ExportOptions options;
  options.tokenizer_folder = folder / "adapter";
  EXPECT_THROW(convert(graph, folder / "out", options), Error);
  EXPECT_FALSE(fs::exists(folder / "out/vocab.json"));
  options.follow_links = true;
  convert(graph, folder / "out", options);
  EXPECT_EQ(read_file(folder / "out/vocab.json"), "not the adapter's");
}

TEST(ModelFolder, WhatDescribesPackedWeightsIsTakenOut) {
  const TemporaryFolder folder;
  const graph::MetaGraphPtr graph = full_folder(folder);
  for (const char* name : {"hf_quant_config.json", "quantize_config.json", "quant_config.json"})
    write_file(folder / (std::string("in/") + name), "{}");
  exporters::FolderFiles found = exporters::folder_files(*graph, false);
  const std::size_t before = found.files.size();
  EXPECT_EQ(exporters::remove_packing_files(found.files).size(), 3u);
  EXPECT_EQ(found.files.size(), before - 3);
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

// Of a sentence-transformers folder; 0: llama.cpp has no such pooling.
TEST(ModelFolder, PoolingIsOneWayThatLlamaCppHas) {
  const TemporaryFolder folder;
  const std::string modules = folder / "modules.json", config = folder / "pooling.json";
  write_file(modules, R"([{"path":"","type":"a.Transformer"},{"path":"1_Pooling","type":"a.Pooling"}])");
  const std::vector<exporters::FolderFile> files = {{"modules.json", modules},
                                                    {"1_Pooling/config.json", config}};
  const auto type = [&](std::string_view text) -> std::uint32_t {
    write_file(config, text);
    std::vector<std::string> files_read;
    try {
      return exporters::pooling_type(files, files_read).value();
    } catch (const Error&) {
      return 0;
    }
  };
  EXPECT_EQ(type(R"({"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false})"), 1u);
  EXPECT_EQ(type(R"({"pooling_mode":"cls"})"), 2u);
  EXPECT_EQ(type(R"({"pooling_mode_lasttoken":true})"), 3u);
  EXPECT_EQ(type(R"({"pooling_mode_max_tokens":true})"), 0u);
  EXPECT_EQ(type(R"({"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":true})"), 0u);
  EXPECT_EQ(type(R"({"pooling_mode":["mean","cls"]})"), 0u);
  EXPECT_EQ(exporters::further_modules(files).size(), 0u);
  EXPECT_EQ(type(R"({"pooling_mode":"mean","include_prompt":false})"), 1u);
  ASSERT_EQ(exporters::further_modules(files).size(), 1u);
  EXPECT_EQ(exporters::further_modules(files).front().name, "include_prompt");
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