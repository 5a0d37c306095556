// From paths to models.

#include "importers/resolve.h"

#include "core/base/error.h"
#include "core/forward/family/settings.h"
#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/file_names.h"
#include "core/io/atomic_file.h"
#include "core/io/unfinished.h"
#include "importers/importer.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/samples.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline::tests {

// --- From paths to models: folders, indexes, caches, containment.

namespace {

namespace fs = std::filesystem;
using testing::has_note;
using testing::TemporaryFolder;
using testing::write_file;

std::string one_tensor(std::string_view name) {
  return testing::safetensors_bytes(
      fmt::format(R"({{"{}":{{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}}})", name), 8);
}

constexpr const char* kShard1 = "model-00001-of-00002.safetensors";
constexpr const char* kShard2 = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string index_text(std::string_view shard_of_b = kShard2, std::string_view total = "16") {
  return fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":{{"a":"{}","b":"{}"}}}})", total,
                     kShard1, shard_of_b);
}

void write_model(const fs::path& folder) {
  write_file(folder / kShard1, one_tensor("a"));
  write_file(folder / kShard2, one_tensor("b"));
  write_file(folder / kIndex, index_text());
  write_file(folder / "config.json", R"({"model_type":"llama"})");
}

std::string error_of(const std::string& path, const importers::ResolveOptions& options = {}) {
  return testing::facts_of([&] { importers::open_model(path, options); });
}

TEST(Resolve, AFolderItsIndexAndEachShardAreOneModel) {
  const TemporaryFolder folder;
  write_model(folder.path());
  for (const char* path : {"", kIndex, kShard1, kShard2}) {
    const graph::MetaGraph graph = importers::open_model(folder / path, {});
    EXPECT_EQ(graph.tensors.size(), 2u) << path;
    EXPECT_EQ(graph.files.size(), 3u) << path;
    EXPECT_EQ(graph::storage_bytes(graph), 16u) << path;
    EXPECT_NE(graph::find_metadata(graph, graph::kConfigKey), nullptr) << path;
    EXPECT_NO_THROW(graph::require_sound(graph, "convert")) << path;
  }
  EXPECT_TRUE(has_note(importers::open_model(folder / kShard1, {}), graph::Severity::info,
                       "'model-00001-of-00002.safetensors' 'model.safetensors.index.json'"));
}

TEST(Resolve, AShardOutsideItsIndexStaysAlone) {
  const TemporaryFolder folder;
  write_model(folder.path());
  write_file(folder / "other-00001-of-00002.safetensors", one_tensor("z"));
  EXPECT_EQ(importers::open_model(folder / "other-00001-of-00002.safetensors", {}).tensors.size(), 1u);
}

TEST(Resolve, PrefersTheIndexAndNamesTheRest) {
  const TemporaryFolder folder;
  write_model(folder.path());
  write_file(folder / "model.safetensors", one_tensor("c"));
  write_file(folder / "adapter.safetensors", one_tensor("d"));
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_EQ(graph.tensors.size(), 2u);
  EXPECT_TRUE(has_note(graph, graph::Severity::warning,
                       "'model.safetensors.index.json' 'model.safetensors' 'adapter.safetensors'"));
}

std::string name_of(const TemporaryFolder& folder) { return folder.path().filename().string(); }

TEST(Resolve, FoldersWithoutAModelSaySo) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of(folder.path().string()), "unsupported " + name_of(folder));
  write_file(folder / "weights.xyz", "?");
  EXPECT_EQ(error_of(folder.path().string()),
            "unsupported " + name_of(folder) + " config.json 'weights.xyz'");
  EXPECT_EQ(error_of(folder / "absent"), "io absent");
  EXPECT_EQ(error_of("org/absent", {.hub_cache = folder.path().string(), .follow_links = false}),
            "io absent '" + name_of(folder) + "'");
}

std::string torch_tensor(std::string_view name) {
  using namespace testing::pickle;
  const std::string value = tensor(storage("0", "ByteStorage", 8), 0, {8}, {1});
  return testing::torch_zip(stream("}(" + text(name) + value + "u"), {{"data/0", testing::pattern(8)}});
}

// What opening a folder of these files chooses: the name of the first file.
std::string chosen(const std::vector<std::pair<std::string, std::string>>& files) {
  const TemporaryFolder folder;
  for (const auto& [name, content] : files) write_file(folder / name, content);
  const importers::Source source = importers::resolve(folder.path().string(), {});
  return fs::path(source.file->path()).filename().string();
}

TEST(Resolve, OneOrderForAllFormats) {
  const std::string index = R"({"weight_map":{}})";
  // best first: each is chosen over all that follow it
  std::vector<std::pair<std::string, std::string>> files = {{"model.safetensors.index.json", index},
                                                            {"a.safetensors.index.json", index},
                                                            {"model.safetensors", one_tensor("a")},
                                                            {"a.safetensors", one_tensor("a")},
                                                            {"a.gguf", "GGUF"},
                                                            {"pytorch_model.bin.index.json", index},
                                                            {"a.bin.index.json", index},
                                                            {"pytorch_model.bin", torch_tensor("a")},
                                                            {"b.bin", torch_tensor("a")},
                                                            {"c.pth", torch_tensor("a")},
                                                            {"a.onnx", "?"},
                                                            {"a.pte", "?"},
                                                            {"a.ptd", "?"},
                                                            {"a.tflite", "?"},
                                                            {"a.pt2", "?"},
                                                            {"a.npz", "?"},
                                                            {"a.npy", "?"},
                                                            {"config.json", "{}"},
                                                            {"optimizer.pt", torch_tensor("a")}};
  while (!files.empty()) {
    EXPECT_EQ(chosen(files), files.front().first);
    files.erase(files.begin());
  }
}

TEST(Resolve, WhatTrainingLeavesIsNoOtherModel) {
  const TemporaryFolder folder;
  write_file(folder / "pytorch_model.bin", torch_tensor("a"));
  for (const char* name :
       {"optimizer.pt", "scheduler.pt", "training_args.bin", "rng_state_0.pth", "scaler.pt"})
    write_file(folder / name, torch_tensor("b"));
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_EQ(graph.tensors.at(0).name, "a");
  EXPECT_TRUE(graph.notes.empty());
  write_file(folder / "other.pt", torch_tensor("c"));
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::warning,
                       "'pytorch_model.bin' 'other.pt'"));
}

TEST(Resolve, ABinOfAnotherProgramIsNoModel) {
  EXPECT_EQ(chosen({{"a.bin", "weights of something else"}, {"z.npy", "?"}}), "z.npy");
  const TemporaryFolder folder;
  write_file(folder / "a.bin", "weights of something else");
  EXPECT_EQ(error_of(folder.path().string()), "unsupported " + name_of(folder) + " config.json 'a.bin'");
}

// No file of a model may be one: a shard, the index, the configuration.
TEST(Resolve, APointerOfGitLfsIsNamedWhereverItStands) {
  constexpr std::string_view kPointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 77\n";
  for (const char* name : {kShard1, kShard2, kIndex, "config.json"}) {
    const TemporaryFolder folder;
    write_model(folder.path());
    write_file(folder / name, kPointer);
    EXPECT_EQ(error_of(folder.path().string()), fmt::format("unsupported {} 0 77", name));
  }
  for (const char* name : {"m.gguf", "pytorch_model.bin", "m.pt", "m.onnx"}) {
    const TemporaryFolder folder;
    write_file(folder / name, kPointer);
    EXPECT_EQ(error_of(folder.path().string()), fmt::format("unsupported {} 0 77", name));
  }
}

TEST(Resolve, AFolderOfAnOldFormatNamesIt) {
  const TemporaryFolder folder;
  write_file(folder / "ggml-tiny.bin", "lmgg....");
  const std::string error = testing::error_of([&] { importers::open_model(folder.path().string(), {}); });
  EXPECT_NE(error.find("ggml-tiny.bin"), std::string::npos) << error;
  EXPECT_NE(error.find("whisper.cpp"), std::string::npos) << error;
}

TEST(Index, TorchShardsAreOneModel) {
  const TemporaryFolder folder;
  const std::string first = "pytorch_model-00001-of-00002.bin", second = "pytorch_model-00002-of-00002.bin";
  write_file(folder / first, torch_tensor("a"));
  write_file(folder / second, torch_tensor("b"));
  write_file(
      folder / "pytorch_model.bin.index.json",
      fmt::format(R"({{"metadata":{{"total_size":16}},"weight_map":{{"a":"{}","b":"{}"}}}})", first, second));
  for (const std::string& path :
       {folder.path().string(), folder / "pytorch_model.bin.index.json", folder / second}) {
    const graph::MetaGraph graph = importers::open_model(path, {});
    EXPECT_EQ(graph.format, "torch") << path;
    EXPECT_EQ(graph.tensors.size(), 2u) << path;
    EXPECT_NO_THROW(graph::require_sound(graph, "convert")) << path;
  }
  // a shard is what its content says
  write_file(folder / second, one_tensor("b"));
  EXPECT_EQ(importers::open_model(folder.path().string(), {}).tensors.size(), 2u);
  // writers counted views in their own ways: a total that disagrees is no fault of the weights
  write_file(folder / "pytorch_model.bin.index.json",
             fmt::format(R"({{"metadata":{{"total_size":17}},"weight_map":{{"a":"{}"}}}})", first));
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::warning, "17 8"));
  fs::remove(folder / first);
  EXPECT_EQ(importers::open_model(folder.path().string(), {}).missing.size(), 1u);
}

TEST(Index, AMissingShardIsNamedWithItsTensors) {
  const TemporaryFolder folder;
  write_model(folder.path());
  fs::remove(folder / kShard2);
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_EQ(graph.tensors.size(), 1u);
  EXPECT_EQ(graph.missing, std::vector<std::string>{"b"});
  EXPECT_TRUE(has_note(graph, graph::Severity::error, "'model-00002-of-00002.safetensors' 1 'b'"));
  EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
  // a dangling link is a download that did not finish
  fs::create_symlink("nowhere", folder / kShard2);
  EXPECT_EQ(importers::open_model(folder.path().string(), {}).missing.size(), 1u);
}

TEST(Index, AllShardsWithoutTheirIndexAreOneModel) {
  const TemporaryFolder folder;
  write_model(folder.path());
  fs::remove(folder / kIndex);
  for (const std::string& path : {folder.path().string(), folder / kShard1, folder / kShard2}) {
    const graph::MetaGraph graph = importers::open_model(path, {});
    EXPECT_EQ(graph.tensors.size(), 2u) << path;
    ASSERT_EQ(graph.files.size(), 2u);
    EXPECT_EQ(graph.files[1].path, folder / kShard2);
    EXPECT_EQ(graph::model_name(graph), name_of(folder));
    EXPECT_NE(graph::find_metadata(graph, graph::kConfigKey), nullptr) << path;
    ASSERT_EQ(graph.notes.size(), 1u);
    EXPECT_EQ(graph.notes[0].severity, graph::Severity::warning);
    EXPECT_NO_THROW(graph::require_sound(graph, "convert"));
  }
  // before any file with another name, and before shards of an incomplete set
  write_file(folder / "consolidated.safetensors", one_tensor("z"));
  write_file(folder / "model-00001-of-00004.safetensors", one_tensor("z"));
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_EQ(graph.tensors.size(), 2u);
  EXPECT_TRUE(
      has_note(graph, graph::Severity::warning,
               fmt::format("'{}' 'consolidated.safetensors' 'model-00001-of-00004.safetensors'", kShard1)));
  // what two of them hold is in none for sure
  write_file(folder / kShard2, one_tensor("a"));
  EXPECT_EQ(error_of(folder.path().string()), fmt::format("malformed {} 'a' '{}'", kShard2, kShard1));
}

TEST(Index, SomeShardsWithoutTheirIndexAreNoModel) {
  const TemporaryFolder folder;
  write_file(folder / "model-00002-of-00003.safetensors", one_tensor("b"));
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_TRUE(has_note(graph, graph::Severity::error,
                       "'model-00002-of-00003.safetensors' 3 'model-00001-of-00003.safetensors' "
                       "'model-00003-of-00003.safetensors'"));
  EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
  // a number that no folder can hold
  fs::rename(folder / "model-00002-of-00003.safetensors", folder / "model-000002-of-999999.safetensors");
  EXPECT_THROW(graph::require_sound(importers::open_model(folder.path().string(), {}), "convert"), Error);
}

TEST(Index, TorchShardsWithoutTheirIndexAreOneModel) {
  const TemporaryFolder folder;
  write_file(folder / "pytorch_model-00001-of-00002.bin", torch_tensor("a"));
  write_file(folder / "pytorch_model-00002-of-00002.bin", torch_tensor("b"));
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_EQ(graph.format, "torch");
  EXPECT_EQ(graph.tensors.size(), 2u);
  EXPECT_NO_THROW(graph::require_sound(graph, "convert"));
}

std::string tensors(const std::vector<std::string>& names) {
  std::string header;
  for (std::size_t i = 0; i < names.size(); ++i)
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[8],"data_offsets":[{},{}]}})", i == 0 ? "{" : ",",
                          names[i], 8 * i, 8 * i + 8);
  return testing::safetensors_bytes(header + "}", 8 * names.size());
}

// The tensors of the folder's model by name, and the severities of its notes.
std::string opened(const std::vector<std::pair<std::string, std::string>>& files) {
  const TemporaryFolder folder;
  for (const auto& [name, content] : files) write_file(folder / name, content);
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  std::string text;
  for (const graph::Tensor& tensor : graph.tensors) text += tensor.name.str() + " ";
  for (const graph::Note& note : graph.notes) text += std::string(graph::severity_name(note.severity)) + " ";
  return text;
}

TEST(Folder, FilesWhoseTensorsAreDisjointAreOneModel) {
  EXPECT_EQ(
      opened({{"out-00001.safetensors", tensors({"a", "b"})}, {"out-mtp-00000.safetensors", tensors({"c"})}}),
      "a b c warning ");
  EXPECT_EQ(opened({{"x.bin", torch_tensor("a")}, {"y.bin", torch_tensor("b")}}), "a b warning ");
  // another version of the same tensors, a model that shares some, an adapter: one is opened
  EXPECT_EQ(opened({{"x.fp16.safetensors", tensors({"a", "b"})}, {"x.safetensors", tensors({"a", "b"})}}),
            "a b warning ");
  EXPECT_EQ(opened({{"x.safetensors", tensors({"a", "b"})}, {"y.safetensors", tensors({"b", "c"})}}),
            "a b warning ");
  EXPECT_EQ(opened({{"base.safetensors", tensors({"a"})}, {"lora.safetensors", tensors({"a.lora_A"})}}),
            "a warning ");
  EXPECT_EQ(opened({{"consolidated.safetensors", tensors({"a"})}, {"m.safetensors", tensors({"b"})}}),
            "a warning ");
  // a version of one part beside both parts
  EXPECT_EQ(opened({{"vae.safetensors", tensors({"b"})},
                    {"unet.fp16.safetensors", tensors({"a"})},
                    {"unet.safetensors", tensors({"a"})}}),
            "a b warning warning ");
  // the name says which is the whole model
  EXPECT_EQ(opened({{"model.safetensors", tensors({"a"})}, {"mtp.safetensors", tensors({"b"})}}),
            "a warning ");
  EXPECT_EQ(opened({{"a.safetensors", tensors({"a"})}, {"optimizer.safetensors", tensors({"b"})}}), "a ");
}

TEST(Folder, AFileThatCannotBeReadMayBeAPart) {
  const TemporaryFolder folder;
  write_file(folder / "a.safetensors", one_tensor("a"));
  write_file(folder / "b.safetensors", one_tensor("b").substr(0, 20));
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_EQ(graph.tensors.size(), 1u);
  EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
  EXPECT_NO_THROW(graph::require_sound(importers::open_model(folder / "a.safetensors", {}), "convert"));
}

TEST(Index, AnIndexOfOtherFilesNamesThoseThatHoldItsTensors) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const std::string stale = R"({"weight_map":{"a":"model-00001-of-00004.safetensors",)"
                            R"("b":"model-00003-of-00004.safetensors"}})";
  write_file(folder / kIndex, stale);
  for (const std::string& path : {folder.path().string(), folder / kIndex}) {
    const graph::MetaGraph graph = importers::open_model(path, {});
    ASSERT_FALSE(graph.notes.empty());
    EXPECT_EQ(testing::facts(graph.notes[0].text), fmt::format("'{0}' '{1}' '{0}'", kShard1, kShard2))
        << path;
    EXPECT_EQ(graph.notes[0].severity, graph::Severity::error);
  }
  // what it says to open
  EXPECT_NO_THROW(graph::require_sound(importers::open_model(folder / kShard1, {}), "convert"));
  EXPECT_EQ(importers::open_model(folder / kShard1, {}).tensors.size(), 2u);
  // a shard that was renamed
  write_file(folder / kIndex, index_text());
  fs::rename(folder / kShard2, folder / "model-quant-00002.safetensors");
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::error,
                       "'model-quant-00002.safetensors'"));
  // some of them are nowhere
  write_file(folder / "model-quant-00002.safetensors", one_tensor("c"));
  const graph::MetaGraph lost = importers::open_model(folder.path().string(), {});
  EXPECT_FALSE(has_note(lost, graph::Severity::error, "'model-quant-00002.safetensors'"));
  EXPECT_EQ(lost.missing, std::vector<std::string>{"b"});
}

// --- What an interrupted run has left is never taken for a model.

bool is_refused(const std::string& path) {
  const std::string facts = testing::facts_of([&] { importers::open_model(path, {}); });
  EXPECT_TRUE(facts.empty() || facts.starts_with("io ")) << facts;
  return !facts.empty();
}

TEST(Unfinished, FilesThatAreBeingPutInPlaceAreRefused) {
  const TemporaryFolder folder;
  write_model(folder.path());
  write_file(folder / "other.safetensors", one_tensor("c"));
  const std::string work = io::work_folder_path(folder.path().string(), {});
  fs::create_directory(work);
  io::put_mark(work + "/publish", {.by = work, .files = {kIndex, kShard1}});
  for (const std::string& path : {folder.path().string(), folder / kIndex, folder / kShard1})
    EXPECT_TRUE(is_refused(path)) << path;
  EXPECT_FALSE(is_refused(folder / "other.safetensors"));
  // one file replaces another in one step
  io::put_mark(work + "/publish", {.by = work, .files = {}});
  EXPECT_FALSE(is_refused(folder.path().string()));
  // damaged ones may be about any file
  for (const std::string& damaged :
       {std::string(), std::string("LOADLINE MARK 1"), std::string("x\0y\0", 4)}) {
    write_file(work + "/publish", damaged);
    EXPECT_TRUE(is_refused(folder.path().string()));
    EXPECT_TRUE(is_refused(folder / "other.safetensors"));
  }
}

TEST(Unfinished, AllPartsOfAnOutputHaveOneWorkFolder) {
  const auto of = [](std::string_view name) { return io::work_folder_path("folder", name); };
  EXPECT_EQ(of("m-00002-of-00003.gguf"), of("m-00001-of-00003.gguf"));
  EXPECT_EQ(of("m.onnx.data"), of("m.onnx"));
  for (const char* name :
       {"n-00001-of-00003.gguf", "m.safetensors", "m-00001-of-0003.gguf", ".gguf", "m.onnx", ""})
    EXPECT_NE(of(name), of("m-00001-of-00003.gguf")) << name;
}

TEST(Unfinished, AConsumedModelIsRefusedUntilThatGoesOn) {
  const TemporaryFolder folder;
  write_model(folder.path());
  write_file(folder / "other.safetensors", one_tensor("c"));
  const std::string work = folder / "out/.loadline-0";
  fs::create_directories(work);
  io::put_mark(folder / io::kConsumedMark, {.by = work, .files = {kIndex, kShard1, kShard2}});
  for (const std::string& path : {folder.path().string(), folder / kIndex, folder / kShard2}) {
    EXPECT_TRUE(is_refused(path)) << path;
    EXPECT_NO_THROW(importers::open_consumed(path, {}));
  }
  fs::create_symlink(folder / kShard2, folder / "link.safetensors");
  EXPECT_TRUE(is_refused(folder / "link.safetensors"));
  EXPECT_FALSE(is_refused(folder / "other.safetensors"));
  // nobody has the rest any more; once the files are gone there is nothing to refuse
  fs::remove_all(work);
  EXPECT_TRUE(is_refused(folder.path().string()));
  for (const char* name : {kIndex, kShard1, kShard2, "link.safetensors"}) fs::remove(folder / name);
  EXPECT_FALSE(is_refused(folder.path().string()));
  // a mark that cannot be read may be about any file
  write_file(folder / io::kConsumedMark, "x");
  EXPECT_TRUE(is_refused(folder / "other.safetensors"));
}

TEST(Unfinished, AnInterruptedEditIsSaidAndNoWeightsAreRead) {
  const TemporaryFolder folder;
  write_model(folder.path());
  io::save_edit_backup(folder / kShard2, {}, {});
  for (const std::string& path :
       {folder.path().string(), folder / kIndex, folder / kShard1, folder / kShard2}) {
    const graph::MetaGraph graph = importers::open_model(path, {});
    EXPECT_TRUE(has_note(graph, graph::Severity::error, "model-00002-of-00002.safetensors")) << path;
    EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
  }
  // half a header
  write_file(folder / "m.safetensors", "half");
  io::save_edit_backup(folder / "m.safetensors", {}, {});
  EXPECT_EQ(testing::facts_of([&] { importers::open_model(folder / "m.safetensors", {}); }),
            "malformed m.safetensors 0 8 4 m.safetensors");
}

// A download, or a long copy: no other file takes the place of the one that is written to.
TEST(Unfinished, AFileThatIsBeingWrittenToIsSaidAsItIs) {
  const TemporaryFolder folder;
  write_file(folder / "whole.safetensors", one_tensor("a"));
  write_file(folder / "part.safetensors", one_tensor("a").substr(0, 65));
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (std::int64_t i = 0; !done; ++i)
      for (const char* name : {"whole.safetensors", "part.safetensors"}) {
        const std::array<timespec, 2> times = {timespec{i, 0}, timespec{i, 0}};
        (void)::utimensat(AT_FDCWD, (folder / name).c_str(), times.data(), 0);
      }
  });
  for (int i = 0; i < 300; ++i) {
    EXPECT_NO_THROW(importers::open_model(folder / "whole.safetensors", {}));
    EXPECT_TRUE(testing::facts_of([&] {
                  importers::open_model(folder / "part.safetensors", {});
                }).starts_with("malformed part.safetensors"));
  }
  done = true;
}

TEST(Index, ASmallTensorOpensNoShardAgain) {
  constexpr std::size_t kModules = 12;
  std::array<std::string, 2> shards;
  std::string map;
  for (std::size_t i = 0; i < kModules; ++i) {  // neighbors lie in different shards
    const std::size_t at = i / 2 * 48;
    shards[i % 2] +=
        fmt::format(R"({}"{:02}.weight_packed":{{"dtype":"I32","shape":[2,2],"data_offsets":[{},{}]}},)"
                    R"("{:02}.weight_scale":{{"dtype":"F32","shape":[2,2],"data_offsets":[{},{}]}},)"
                    R"("{:02}.weight_shape":{{"dtype":"I64","shape":[2],"data_offsets":[{},{}]}})",
                    i < 2 ? "" : ",", i, at, at + 16, i, at + 16, at + 32, i, at + 32, at + 48);
    for (const char* part : {"weight_packed", "weight_scale", "weight_shape"})
      map += fmt::format(R"({}"{:02}.{}":"{}")", map.empty() ? "" : ",", i, part,
                         i % 2 == 0 ? kShard1 : kShard2);
  }
  const std::string shape("\2\0\0\0\0\0\0\0\20\0\0\0\0\0\0\0", 16);
  const auto shard = [&](const std::string& header) {
    std::string bytes = testing::safetensors_bytes("{" + header + "}", 0);
    for (std::size_t i = 0; i < kModules / 2; ++i) bytes += std::string(32, '\1') + shape;
    return bytes;
  };
  importers::Source source = testing::memory_source(
      kIndex, R"({"weight_map":{)" + map + "}}",
      {{kShard1, shard(shards[0])},
       {kShard2, shard(shards[1])},
       {"config.json",
        R"({"quantization_config":{"quant_method":"compressed-tensors","format":"pack-quantized",)"
        R"("config_groups":{"group_0":{"weights":{"num_bits":4,"group_size":8}}}}})"}});
  std::map<std::string, int> opened;
  source.open_sibling = [&opened, open = source.open_sibling](const std::string& name) {
    ++opened[name];
    return open(name);
  };
  const graph::MetaGraph graph = importers::import_source(source);
  EXPECT_EQ(graph.logical.size(), kModules);
  EXPECT_LE(opened[kShard1], 2);  // for its header, and for small tensors
  EXPECT_LE(opened[kShard2], 2);
}

TEST(Index, AOnlyShardNeedsNoIndex) {
  const TemporaryFolder folder;
  write_file(folder / "model-00001-of-00001.safetensors", one_tensor("a"));
  EXPECT_NO_THROW(graph::require_sound(importers::open_model(folder.path().string(), {}), "convert"));
}

TEST(Index, UsableButWrongOpensWithAnErrorNote) {
  const TemporaryFolder folder;
  write_model(folder.path());
  write_file(folder / kIndex, index_text(kShard2, "17"));
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::error, "17 16"));
  write_file(folder / kIndex, index_text(kShard2, "16.0"));
  EXPECT_TRUE(
      has_note(importers::open_model(folder.path().string(), {}), graph::Severity::warning, "total_size"));
  write_file(folder / kIndex, fmt::format(R"({{"weight_map":{{"a":"{}","x":"{}"}}}})", kShard1, kShard2));
  const graph::MetaGraph outside = importers::open_model(folder.path().string(), {});
  EXPECT_TRUE(has_note(outside, graph::Severity::error, "'model-00002-of-00002.safetensors'"));
  EXPECT_TRUE(has_note(outside, graph::Severity::error, "'model-00002-of-00002.safetensors'"));
  EXPECT_EQ(outside.missing, std::vector<std::string>{"x"});
  write_file(folder / kIndex, index_text(kShard1));  // b lies elsewhere than the index says
  write_file(folder / kIndex,
             fmt::format(R"({{"weight_map":{{"a":"{0}","b":"{0}","c":"{1}"}}}})", kShard1, kShard2));
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::error,
                       "'model-00002-of-00002.safetensors' 'model-00001-of-00002.safetensors'"));
}

TEST(Index, ContradictionsAreErrors) {
  const TemporaryFolder folder;
  write_model(folder.path());
  write_file(folder / kShard2, "garbage that is long enough");
  EXPECT_EQ(error_of(folder.path().string()),
            "limit model-00002-of-00002.safetensors 0 2334385649822622055 100000000");
  for (
      const char* text :
      {"{}", "[]", "", "{", R"({"weight_map":{},"weight_map":{}})", R"({"weight_map":[]})",
       R"({"weight_map":{"a":5}})", R"({"weight_map":null})",
       R"({"weight_map":{"a":"model-00001-of-00002.safetensors","a":"model-00001-of-00002.safetensors"}})"}) {
    write_file(folder / kIndex, text);
    EXPECT_NE(error_of(folder / kIndex), "") << text;
  }
}

TEST(Index, OneThatMapsNothingSaysSo) {
  const TemporaryFolder folder;
  write_file(folder / "model.safetensors.index.json", R"({"weight_map":{}})");
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_TRUE(graph.tensors.empty());
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "weight_map"));
}

TEST(Resolve, PicklesOfNewerProtocolsAreNamed) {
  const TemporaryFolder folder;
  for (const std::string_view protocol : {"4", "5"}) {
    const char byte = static_cast<char>(protocol[0] - '0');
    write_file(folder / "m.pt", std::string("\x80") + byte + "}.");
    EXPECT_EQ(error_of(folder / "m.pt"),
              fmt::format("unsupported m.pt 1 {} torch.load weights_only 2", protocol));
  }
  write_file(folder / "m.pt", "\x80\x02}." + std::string(40, ' '));
  EXPECT_EQ(error_of(folder / "m.pt"), "malformed m.pt 0 torch.save 1.6");
  EXPECT_EQ(error_of(""), "usage");
}

TEST(Containment, NamesMustBeCleanAndRelative) {
  for (const char* good : {"a", "a.safetensors", "sub/a", "a b", "...", "a..b"})
    EXPECT_TRUE(importers::is_clean_relative(good)) << good;
  for (const char* bad :
       {"", "/etc/passwd", "..", "../x", "a/../../b", "a/..", "./a", "a//b", "a/", "C:\\x", "C:x", "a\\b"})
    EXPECT_FALSE(importers::is_clean_relative(bad)) << bad;
  EXPECT_FALSE(importers::is_clean_relative(std::string_view("a\0b", 3)));
  EXPECT_FALSE(importers::is_clean_relative(std::string(5000, 'a')));
}

TEST(Containment, AnIndexCannotReachOutside) {
  const TemporaryFolder folder;
  write_model(folder.path() / "model");
  write_file(folder / "secret.safetensors", one_tensor("b"));
  for (const std::string& name : {std::string("../secret.safetensors"), folder / "secret.safetensors",
                                  std::string("x/../../secret.safetensors")}) {
    write_file(folder / "model/model.safetensors.index.json", index_text(name));
    EXPECT_EQ(error_of(folder / "model"), "malformed model.safetensors.index.json 'secret.safetensors'")
        << name;
  }
}

TEST(Containment, LinksOutsideNeedPermission) {
  const TemporaryFolder folder;
  write_model(folder.path() / "model");
  write_file(folder / "elsewhere/b.safetensors", one_tensor("b"));
  fs::remove(folder / "model/model-00002-of-00002.safetensors");
  fs::create_symlink(folder / "elsewhere/b.safetensors", folder / "model/model-00002-of-00002.safetensors");
  EXPECT_EQ(error_of(folder / "model"),
            "unsupported model-00002-of-00002.safetensors 'model.safetensors.index.json' 'b.safetensors' "
            ">follow_links=on");
  EXPECT_EQ(importers::open_model(folder / "model", {.hub_cache = "", .follow_links = true}).tensors.size(),
            2u);
  // through a linked folder
  fs::create_directory_symlink(folder / "elsewhere", folder / "model/sub");
  write_file(folder / "model/model.safetensors.index.json", index_text("sub/b.safetensors"));
  EXPECT_EQ(error_of(folder / "model"),
            "unsupported b.safetensors 'model.safetensors.index.json' 'b.safetensors' >follow_links=on");
  // into a folder whose name only begins like the model's
  write_file(folder / "model-2/b.safetensors", one_tensor("b"));
  fs::create_symlink(folder / "model-2/b.safetensors", folder / "model/c.safetensors");
  write_file(folder / "model/model.safetensors.index.json", index_text("c.safetensors"));
  EXPECT_EQ(error_of(folder / "model"),
            "unsupported c.safetensors 'model.safetensors.index.json' 'b.safetensors' >follow_links=on");
  fs::remove(folder / "model/c.safetensors");
  // a link that stays inside is fine, and so is opening through a link to the folder
  fs::remove(folder / "model/sub");
  write_file(folder / "model/sub/b.safetensors", one_tensor("b"));
  fs::remove(folder / "model/model-00002-of-00002.safetensors");
  fs::create_symlink("sub/b.safetensors", folder / "model/model-00002-of-00002.safetensors");
  write_file(folder / "model/model.safetensors.index.json", index_text());
  fs::create_directory_symlink(folder / "model", folder / "alias");
  EXPECT_EQ(importers::open_model(folder / "alias", {}).tensors.size(), 2u);
}

TEST(Containment, PipesAndDevicesAreRefused) {
  const TemporaryFolder folder;
  write_model(folder.path());
  fs::remove(folder / kShard2);
  ASSERT_EQ(::mkfifo((folder / kShard2).c_str(), 0600), 0);
  EXPECT_EQ(error_of(folder.path().string()), "unsupported model-00002-of-00002.safetensors");
}

// models--org--name/{blobs,refs,snapshots/COMMIT}, every file a link into blobs/.
void write_cache(const fs::path& hub, const std::string& commit, bool shared_blobs) {
  const fs::path repository = hub / "models--org--name";
  write_model(hub / "plain");
  fs::create_directories(repository / "snapshots" / commit);
  for (const char* name : {kShard1, kShard2, kIndex, "config.json"}) {
    const std::string blob = std::string("blob-") + name;
    write_file(repository / "blobs" / blob, testing::read_file(hub / "plain" / name));
    if (shared_blobs) {  // the newer cache: a blob is itself a link into the hub's own blobs/
      fs::create_directories(hub / "blobs/ab");
      fs::rename(repository / "blobs" / blob, hub / "blobs/ab" / blob);
      fs::create_symlink(fs::path("../../blobs/ab") / blob, repository / "blobs" / blob);
    }
    fs::create_symlink(fs::path("../../blobs") / blob, repository / "snapshots" / commit / name);
  }
  fs::remove_all(hub / "plain");
}

TEST(HubCache, OpensSnapshotsThroughTheirLinks) {
  for (const bool shared : {false, true}) {
    const TemporaryFolder hub;
    const std::string commit(40, 'c');
    write_cache(hub.path(), commit, shared);
    write_file(hub / "models--org--name/refs/main", commit + "\r\n");
    const importers::ResolveOptions options = {.hub_cache = hub.path().string(), .follow_links = false};
    for (const std::string& path :
         {hub / "models--org--name", hub / ("models--org--name/snapshots/" + commit), std::string("org/name"),
          hub / ("models--org--name/snapshots/" + commit + "/" + kShard1)}) {
      const graph::MetaGraph graph = importers::open_model(path, options);
      EXPECT_EQ(graph.tensors.size(), 2u) << path;
      EXPECT_EQ(graph::model_name(graph), "org/name");
      EXPECT_EQ(graph.files[1].path.find("blobs"), std::string::npos) << "names come from the snapshot";
    }
  }
}

TEST(HubCache, TellsTheFolderOfAModel) {
  const TemporaryFolder hub;
  fs::create_directories(hub / "models--org--name");
  const std::string cache = hub.path().string();
  EXPECT_EQ(importers::cached_model("org/name", cache), hub / "models--org--name");
  for (const char* absent : {"org/other", "name", "./org/name", "org/name/x", ""})
    EXPECT_EQ(importers::cached_model(absent, cache), std::nullopt) << absent;
  EXPECT_EQ(importers::cached_model("org/name", ""), std::nullopt);
}

TEST(HubCache, LinksIntoAnotherRepositoryAreRefused) {
  const TemporaryFolder hub;
  const std::string commit(40, 'c');
  write_cache(hub.path(), commit, false);
  write_file(hub / "models--evil--name/blobs/b", one_tensor("b"));
  const fs::path shard = hub.path() / "models--org--name/snapshots" / commit / kShard2;
  fs::remove(shard);
  fs::create_symlink(hub / "models--evil--name/blobs/b", shard);
  EXPECT_EQ(
      error_of(hub / "models--org--name"),
      "unsupported model-00002-of-00002.safetensors 'model.safetensors.index.json' 'b' >follow_links=on");
}

TEST(HubCache, SnapshotsAndReferencesCannotLeadOutside) {
  const TemporaryFolder hub;
  const std::string commit(40, 'c');
  write_cache(hub.path(), commit, false);
  write_model(hub.path() / "private");
  const fs::path repository = hub.path() / "models--org--name";
  fs::remove_all(repository / "snapshots" / commit);
  fs::create_directory_symlink(hub.path() / "private", repository / "snapshots" / commit);
  write_file((repository / "refs/main").string(), commit);
  EXPECT_EQ(error_of(repository.string()), "io models--org--name");
  fs::remove(repository / "refs/main");
  ASSERT_EQ(::mkfifo((repository / "refs/main").c_str(), 0600), 0);
  EXPECT_EQ(error_of(repository.string()), "io models--org--name");  // does not wait for a writer
}

TEST(HubCache, WithoutARefTheNewestSnapshotIsTaken) {
  const TemporaryFolder hub;
  write_cache(hub.path(), std::string(40, 'd'), false);
  EXPECT_EQ(importers::open_model(hub / "models--org--name", {}).tensors.size(), 2u);
  // an empty snapshot and a reference that is no commit change nothing
  fs::create_directories(hub.path() / "models--org--name/snapshots/zzz");
  for (const std::string& ref : {std::string("../../.."), std::string(5 << 20, '\0'), std::string("feed")}) {
    write_file(hub / "models--org--name/refs/main", ref);
    const graph::MetaGraph graph = importers::open_model(hub / "models--org--name", {});
    EXPECT_EQ(graph.tensors.size(), 2u);
    EXPECT_TRUE(has_note(graph, graph::Severity::warning, "'dddddddddddddddddddddddddddddddddddddddd' 1"));
  }
  fs::remove_all(hub.path() / "models--org--name/snapshots");
  fs::create_directories(hub.path() / "models--org--name/snapshots");
  EXPECT_EQ(error_of(hub / "models--org--name"), "io models--org--name");
}

TEST(Config, AloneGivesShapesWithoutFiles) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", forward::find_preset("llama-3-8b")->config_json);
  for (const std::string& path : {folder.path().string(), folder / "config.json"}) {
    const graph::MetaGraph graph = importers::open_model(path, {});
    EXPECT_EQ(graph::parameter_count(graph), 8'030'261'248u);
    EXPECT_EQ(graph.tensors.size(), 291u);
    EXPECT_EQ(graph.storages[0].file, graph::kNoFile);
  }
}

TEST(Config, PresetsHaveTheirPublishedSizes) {
  const auto expect = [](std::string_view id, std::uint64_t parameters, std::uint64_t bytes,
                         std::size_t tensors) {
    const graph::MetaGraph graph =
        forward::config_graph(forward::find_preset(id)->config_json, std::string(id));
    EXPECT_EQ(graph::parameter_count(graph), parameters) << id;
    EXPECT_EQ(graph::storage_bytes(graph), bytes) << id;
    EXPECT_EQ(graph.tensors.size(), tensors) << id;
  };
  expect("llama-3.2-1b", 1'235'814'400, 2'471'628'800, 146);
  expect("llama-3-8b", 8'030'261'248, 16'060'522'496, 291);
  expect("llama-3.1-70b", 70'553'706'496, 141'107'412'992, 723);
  expect("gpt2-xl", 1'557'611'200, 6'230'444'800, 580);
  // separate q, k, v, an untied head, and 48 masks of 1024 x 1024 F32
  expect("gpt2-xl-notebook", 1'688'354'048, 6'753'416'192, 821);
}

TEST(Config, AbsurdValuesAreRefused) {
  const auto error_in = [](std::string_view json) -> std::string {
    try {
      forward::config_graph(json, "config.json");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const auto llama = [](std::string_view change) {
    return fmt::format(
        R"({{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100{}}})",
        change);
  };
  EXPECT_EQ(error_in(llama("")), "");
  for (const char* change :
       {R"(,"num_hidden_layers":-1)", R"(,"vocab_size":0)", R"(,"vocab_size":1.5)", R"(,"hidden_size":"64")",
        R"(,"num_attention_heads":5)", R"(,"torch_dtype":"float7")", R"(,"torch_dtype":5)",
        R"(,"num_hidden_layers":2000000000)", R"(,"hidden_size":2147483648,"intermediate_size":2147483648)"})
    EXPECT_NE(error_in(llama(change)), "") << change;
  for (const char* text : {"", "[]", "{}", "null", R"({"model_type":"no_such"})", R"({"model_type":5})",
                           R"({"model_type":"llama"})"})
    EXPECT_NE(error_in(text), "") << text;
  EXPECT_NE(error_in("{\"a\":" + std::string(100'000, '[')), "");
}

// Parts of one split set are no other models, and hidden files are none at all.
TEST(Config, SettingsOfGenerateThatChangeAPassAreNoted) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const auto noted = [&](const char* path) {
    std::vector<std::string> settings;
    for (const graph::Note& note : importers::open_model(folder / path, {}).notes)
      if (const auto setting = forward::setting_of_note(note.text))
        settings.push_back(setting->name + '=' + setting->shown);
    return settings;
  };
  EXPECT_TRUE(noted("").empty());
  write_file(folder / "generation_config.json", R"({"use_cache":false,"max_length":20,"top_k":5})");
  EXPECT_EQ(noted(""), std::vector<std::string>{"generation_config.use_cache=false"});
  EXPECT_EQ(noted(kShard1), std::vector<std::string>{"generation_config.use_cache=false"});
  write_file(folder / "generation_config.json", "[]");
  EXPECT_TRUE(noted("").empty());
}

TEST(Folder, WhatBelongsTogetherIsNotNamedAsLeftOut) {
  const TemporaryFolder folder;
  for (std::uint16_t i = 0; i < 2; ++i) {
    testing::GgufBuilder part;
    part.key("split.no", part.u16, part.number(i))
        .key("split.count", part.u16, part.number(std::uint16_t{2}));
    part.tensor(fmt::format("t{}", i), {1}, 0, 4);
    write_file(folder / fmt::format("m-{:05}-of-00002.gguf", i + 1), part.bytes());
  }
  write_file(folder / "._m-00001-of-00002.gguf", "resource fork");
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_EQ(graph.tensors.size(), 2u);
  EXPECT_TRUE(graph.notes.empty());
}

std::string small_gguf(std::string_view tensor) {
  testing::GgufBuilder file;
  file.key("general.architecture", "llama");
  file.tensor(tensor, {8}, 0, 32);
  return file.bytes();
}

// The names of the tensors of a folder with these GGUF files.
std::vector<std::string> tensors_of(const std::vector<std::string>& files) {
  const TemporaryFolder folder;
  for (const std::string& name : files) write_file(folder / name, small_gguf("token_embd.weight"));
  std::vector<std::string> names;
  for (const graph::Tensor& tensor : importers::open_model(folder.path().string(), {}).tensors)
    names.push_back(tensor.name.str());
  return names;
}

TEST(Folder, AModelOpensWithItsProjectorAndItsDraft) {
  using Names = std::vector<std::string>;
  const Names set = {"token_embd.weight", "draft.token_embd.weight", "mmproj.token_embd.weight"};
  EXPECT_EQ(tensors_of({"model.gguf", "mmproj-model-f16.gguf", "model-draft.gguf"}), set);
  const Names alone = {"token_embd.weight"};
  // several quantizations of a model, or of its projector, are alternatives
  EXPECT_EQ(tensors_of({"model-Q4_0.gguf", "model-Q8_0.gguf", "mmproj.gguf"}), alone);
  EXPECT_EQ(tensors_of({"model.gguf", "mmproj-F16.gguf", "mmproj-F32.gguf"}), alone);
  EXPECT_EQ(tensors_of({"mmproj-F16.gguf"}), alone);
  EXPECT_EQ(tensors_of({"model.gguf", "rough-drafts.gguf"}), alone);

  const TemporaryFolder folder;
  write_file(folder / "a-model.gguf", small_gguf("a"));
  write_file(folder / "MMPROJ-a.gguf", small_gguf("b"));
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  ASSERT_EQ(graph.files.size(), 2u);
  EXPECT_EQ(graph::set_role(graph, graph::FileId{1}), "mmproj");
  EXPECT_EQ(graph::set_role(graph, graph::FileId{0}), "");
  EXPECT_TRUE(has_note(graph, graph::Severity::info, "'a-model.gguf' 'MMPROJ-a.gguf'"));
  EXPECT_EQ(importers::open_model(folder / "a-model.gguf", {}).files.size(), 1u);
  write_file(folder / "MMPROJ-a.gguf", "GGUF");
  EXPECT_THROW(importers::open_model(folder.path().string(), {}), Error);
}

}  // namespace

}  // namespace loadline::tests
