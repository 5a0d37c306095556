// From paths to models, indexes, and the table of all importers.

#include "importers/resolve.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/file_names.h"
#include "core/io/atomic_file.h"
#include "core/io/unfinished.h"
#include "importers/huggingface/index.h"
#include "importers/importer.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/samples.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include <fmt/core.h>
#include <gmock/gmock.h>
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
  EXPECT_TRUE(has_note(importers::open_model(folder / kShard1, {}), graph::Severity::info, "is one shard"));
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
  EXPECT_TRUE(has_note(graph, graph::Severity::warning, "'model.safetensors', 'adapter.safetensors'"));
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
  EXPECT_TRUE(
      has_note(importers::open_model(folder.path().string(), {}), graph::Severity::warning, "'other.pt'"));
}

TEST(Resolve, ABinOfAnotherProgramIsNoModel) {
  EXPECT_EQ(chosen({{"a.bin", "weights of something else"}, {"z.npy", "?"}}), "z.npy");
  const TemporaryFolder folder;
  write_file(folder / "a.bin", "weights of something else");
  EXPECT_EQ(error_of(folder.path().string()), "unsupported " + name_of(folder) + " config.json 'a.bin'");
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
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::warning,
                       "says 17 bytes in total"));
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
  EXPECT_TRUE(has_note(graph, graph::Severity::error, "it held 1 tensor: 'b'"));
  EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
  // a dangling link is a download that did not finish
  fs::create_symlink("nowhere", folder / kShard2);
  EXPECT_EQ(importers::open_model(folder.path().string(), {}).missing.size(), 1u);
}

TEST(Index, ShardsWithoutTheirIndexAreNoModel) {
  const TemporaryFolder folder;
  write_model(folder.path());
  fs::remove(folder / kIndex);
  const graph::MetaGraph graph = importers::open_model(folder.path().string(), {});
  EXPECT_TRUE(has_note(graph, graph::Severity::error, "whose index is missing"));
  EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
}

// --- What an interrupted run has left is never taken for a model.

bool is_refused(const std::string& path, std::string_view words) {
  try {
    importers::open_model(path, {});
    return false;
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find(words), std::string_view::npos) << error.what();
    return true;
  }
}

TEST(Unfinished, FilesThatAreBeingPutInPlaceAreRefused) {
  const TemporaryFolder folder;
  write_model(folder.path());
  write_file(folder / "other.safetensors", one_tensor("c"));
  const std::string work = io::work_folder_path(folder.path().string(), {}), words = "put its files in place";
  fs::create_directory(work);
  io::put_mark(work + "/publish", {.by = work, .files = {kIndex, kShard1}});
  for (const std::string& path : {folder.path().string(), folder / kIndex, folder / kShard1})
    EXPECT_TRUE(is_refused(path, words)) << path;
  EXPECT_FALSE(is_refused(folder / "other.safetensors", words));
  // one file replaces another in one step
  io::put_mark(work + "/publish", {.by = work, .files = {}});
  EXPECT_FALSE(is_refused(folder.path().string(), words));
  // damaged ones may be about any file
  for (const std::string& damaged :
       {std::string(), std::string("LOADLINE MARK 1"), std::string("x\0y\0", 4)}) {
    write_file(work + "/publish", damaged);
    EXPECT_TRUE(is_refused(folder.path().string(), words));
    EXPECT_TRUE(is_refused(folder / "other.safetensors", words));
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
    EXPECT_TRUE(is_refused(path, ".loadline-0' only")) << path;
    EXPECT_NO_THROW(importers::open_consumed(path, {}));
  }
  fs::create_symlink(folder / kShard2, folder / "link.safetensors");
  EXPECT_TRUE(is_refused(folder / "link.safetensors", ".loadline-0' only"));
  EXPECT_FALSE(is_refused(folder / "other.safetensors", ""));
  // nobody has the rest any more; once the files are gone there is nothing to refuse
  fs::remove_all(work);
  EXPECT_TRUE(is_refused(folder.path().string(), "is not there any more"));
  for (const char* name : {kIndex, kShard1, kShard2, "link.safetensors"}) fs::remove(folder / name);
  EXPECT_FALSE(is_refused(folder.path().string(), ""));
  // a mark that cannot be read may be about any file
  write_file(folder / io::kConsumedMark, "x");
  EXPECT_TRUE(is_refused(folder / "other.safetensors", "cannot be read"));
}

TEST(Unfinished, AnInterruptedEditIsSaidAndNoWeightsAreRead) {
  const TemporaryFolder folder;
  write_model(folder.path());
  io::save_edit_backup(folder / kShard2, {}, {});
  for (const std::string& path :
       {folder.path().string(), folder / kIndex, folder / kShard1, folder / kShard2}) {
    const graph::MetaGraph graph = importers::open_model(path, {});
    EXPECT_TRUE(has_note(graph, graph::Severity::error, "an edit of this file was interrupted")) << path;
    EXPECT_THROW(graph::require_sound(graph, "convert"), Error);
  }
  // half a header
  write_file(folder / "m.safetensors", "half");
  io::save_edit_backup(folder / "m.safetensors", {}, {});
  EXPECT_TRUE(is_refused(folder / "m.safetensors", "an edit of this file was interrupted"));
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
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::error,
                       "says 17 bytes in total, the shards hold 16"));
  write_file(folder / kIndex, index_text(kShard2, "16.0"));
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::warning,
                       "not a whole number"));
  write_file(folder / kIndex, fmt::format(R"({{"weight_map":{{"a":"{}","x":"{}"}}}})", kShard1, kShard2));
  const graph::MetaGraph outside = importers::open_model(folder.path().string(), {});
  EXPECT_TRUE(has_note(outside, graph::Severity::error, "not in the index"));
  EXPECT_TRUE(has_note(outside, graph::Severity::error, "which does not hold it"));
  EXPECT_EQ(outside.missing, std::vector<std::string>{"x"});
  write_file(folder / kIndex, index_text(kShard1));  // b lies elsewhere than the index says
  write_file(folder / kIndex,
             fmt::format(R"({{"weight_map":{{"a":"{0}","b":"{0}","c":"{1}"}}}})", kShard1, kShard2));
  EXPECT_TRUE(has_note(importers::open_model(folder.path().string(), {}), graph::Severity::error,
                       "the index puts it in"));
}

TEST(Index, ContradictionsAreErrors) {
  const TemporaryFolder folder;
  write_model(folder.path());
  write_file(folder / kShard2, one_tensor("a"));
  EXPECT_EQ(error_of(folder.path().string()),
            "malformed model-00002-of-00002.safetensors 'a' 'model-00001-of-00002.safetensors'");
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
  EXPECT_TRUE(testing::has_note(graph, graph::Severity::warning, "its weight_map is empty"));
}

TEST(Resolve, PicklesOfNewerProtocolsAreNamed) {
  const TemporaryFolder folder;
  for (const std::string_view protocol : {"3", "4", "5"}) {
    const char byte = static_cast<char>(protocol[0] - '0');
    write_file(folder / "m.pt", std::string("\x80") + byte + "}.");
    EXPECT_EQ(error_of(folder / "m.pt"), fmt::format("unsupported m.pt 1 {} 2 torch.save", protocol));
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
    EXPECT_TRUE(has_note(graph, graph::Severity::warning, "the newest of 1"));
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
  EXPECT_TRUE(
      has_note(graph, graph::Severity::info, "'a-model.gguf' is opened together with 'MMPROJ-a.gguf'"));
  EXPECT_EQ(importers::open_model(folder / "a-model.gguf", {}).files.size(), 1u);
  write_file(folder / "MMPROJ-a.gguf", "GGUF");
  EXPECT_THROW(importers::open_model(folder.path().string(), {}), Error);
}

}  // namespace

// --- Sharded models: the index in pieces and whole, in any order, and against its shards.

namespace {

using testing::memory_source;
using testing::safetensors_bytes;

using Entry = std::pair<std::string, std::string>;  // tensor, shard

// As huggingface_hub writes it, or without any white space.
std::string index_text(const std::vector<Entry>& entries, std::string_view total, bool lines = true) {
  const char* const end = lines ? "\n" : "";
  std::string text = fmt::format(R"({{{}"metadata":{{"total_size":{}}},{}"weight_map":{{)", end, total, end);
  for (std::size_t i = 0; i < entries.size(); ++i)
    text += fmt::format(R"({}{}    "{}": "{}")", i == 0 ? "" : ",", end, entries[i].first, entries[i].second);
  return text + fmt::format("{}  }}{}}}{}", end, end, end);
}

io::SourceFile file_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return io::SourceFile::from_memory("m.index.json", {bytes.begin(), bytes.end()});
}

std::string shard_name(std::size_t number, std::size_t of) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", number + 1, of);
}

// One byte for each name.
std::string shard_bytes(const std::vector<std::string>& names) {
  std::string header = "{";
  for (std::size_t i = 0; i < names.size(); ++i)
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i == 0 ? "" : ",",
                          names[i], i, i + 1);
  return safetensors_bytes(header + "}", names.size());
}

struct Model {
  std::vector<Entry> entries;  // of the index
  std::vector<Entry> files;    // name, bytes
};

Model model_of(std::size_t shards, std::size_t each) {
  Model model;
  for (std::size_t s = 0; s < shards; ++s) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < each; ++i) {
      names.push_back(fmt::format("model.layers.{}.some.rather.long.name.{}", s, i));
      model.entries.emplace_back(names.back(), shard_name(s, shards));
    }
    model.files.emplace_back(shard_name(s, shards), shard_bytes(names));
  }
  return model;
}

graph::MetaGraph open(const Model& model, std::string_view total, bool lines = true) {
  return importers::import_source(
      memory_source("m.index.json", index_text(model.entries, total, lines), model.files));
}

std::string error_of(const Model& model) {
  return testing::facts_of([&] { open(model, "0"); });
}

// Every way of reading an index gives the same entries.
TEST(HfWeightMap, PiecesGiveTheSameAsTheWhole) {
  for (const std::size_t count : {1U, 2U, 1000U, 5000U, 12'345U}) {
    const Model model = model_of(1, count);
    for (const bool lines : {true, false}) {
      const io::SourceFile file = file_of(index_text(model.entries, "77", lines));
      importers::HfWeightMap map(file);
      std::vector<std::vector<Entry>> pieces(map.pieces());
      const bool plain = map.scan(4, [&](std::size_t piece, std::string_view tensor, std::string_view shard) {
        pieces[piece].emplace_back(tensor, shard);
      });
      EXPECT_EQ(plain, lines || map.pieces() == 1) << count;
      if (plain) {
        std::vector<Entry> all;
        for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
        EXPECT_EQ(all, model.entries);
        EXPECT_EQ(map.total_size(), 77u);
      }
      std::vector<Entry> whole;
      map.parse([&](std::size_t, std::string_view tensor, std::string_view shard) {
        whole.emplace_back(tensor, shard);
      });
      EXPECT_EQ(whole, model.entries);
      EXPECT_EQ(map.total_size(), 77u);
    }
  }
}

// Where pieces can be read one by one, both ways give the same.
TEST(HfWeightMap, WhateverStandsAtBordersPiecesAgreeWithTheWhole) {
  std::mt19937 random(5);
  const std::string original =
      index_text(model_of(1, 6000).entries, "1");  // with pieces that are all entries
  constexpr std::string_view kAlphabet = "{}:,\"\n 0x\\\x01";
  std::size_t understood = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text = original;
    // anywhere, or near a border, where pieces are cut
    const std::size_t at = round % 2 == 0 ? random() % text.size() : (112 << 10) - 100 + random() % 200;
    text[at] = kAlphabet[random() % kAlphabet.size()];
    const io::SourceFile file = file_of(text);
    importers::HfWeightMap map(file);
    std::vector<std::vector<Entry>> pieces(map.pieces());
    if (!map.scan(2, [&](std::size_t piece, std::string_view tensor, std::string_view shard) {
          pieces[piece].emplace_back(tensor, shard);
        }))
      continue;
    ++understood;
    std::vector<Entry> fast, whole;
    for (const auto& piece : pieces) fast.insert(fast.end(), piece.begin(), piece.end());
    ASSERT_NO_THROW(map.parse([&](std::size_t, std::string_view tensor, std::string_view shard) {
      whole.emplace_back(tensor, shard);
    })) << round;
    ASSERT_EQ(fast, whole) << round;
  }
  EXPECT_GT(understood, 30u);
}

TEST(HfWeightMap, MetadataMayStandBehindTheMap) {
  const io::SourceFile file = file_of(R"({"weight_map":{"a":"s"},"metadata":{"total_size":5}})");
  importers::HfWeightMap map(file);
  std::size_t entries = 0;
  EXPECT_TRUE(map.scan(1, [&](std::size_t, std::string_view, std::string_view) { ++entries; }));
  EXPECT_EQ(entries, 1u);
  EXPECT_EQ(map.total_size(), 5u);
}

TEST(HfIndex, OpensWhateverTheOrderOfItsEntries) {
  Model model = model_of(9, 600);
  const graph::MetaGraph in_order = open(model, "5400");
  EXPECT_EQ(in_order.tensors.size(), 5400u);
  EXPECT_TRUE(in_order.notes.empty());
  std::mt19937 random(3);
  for (int round = 0; round < 4; ++round) {
    std::shuffle(model.entries.begin(), model.entries.end(), random);
    const graph::MetaGraph graph = open(model, "5400", round % 2 == 0);
    EXPECT_EQ(graph.tensors, in_order.tensors);
    EXPECT_EQ(graph.storages, in_order.storages);
    EXPECT_TRUE(graph.notes.empty());
  }
  std::sort(model.entries.begin(), model.entries.end());
  EXPECT_TRUE(open(model, "5400").notes.empty());
}

TEST(HfIndex, ShardsThatDoNotCountOpenToo) {
  Model model = model_of(3, 4);
  for (Entry& entry : model.entries)
    if (entry.second == shard_name(1, 3)) entry.second = "extra.safetensors";
  model.files[1].first = "extra.safetensors";
  const graph::MetaGraph graph = open(model, "12");
  EXPECT_EQ(graph.tensors.size(), 12u);
  ASSERT_EQ(graph.files.size(), 4u);
  EXPECT_EQ(graph.files[1].path, "extra.safetensors");  // natural order: before "model-..."
  EXPECT_TRUE(graph.notes.empty());
}

// A shard is found to be cut short only when its names are known already.
TEST(HfIndex, AnyShardThatIsCutShortIsRefused) {
  for (const std::size_t shards : {2U, 3U, 9U})
    for (std::size_t cut = 0; cut < shards; ++cut)
      for (const bool sorted : {false, true}) {
        Model model = model_of(shards, 50);
        if (sorted) std::ranges::sort(model.entries, std::ranges::greater{});
        model.files[cut].second.pop_back();
        EXPECT_THAT(error_of(model), ::testing::StartsWith("malformed " + shard_name(cut, shards) + " "))
            << cut;
      }
}

TEST(HfIndex, ANameTwiceInTheIndexIsTheFirstOfThem) {
  Model model = model_of(8, 1000);
  model.entries.insert(model.entries.begin() + 7000, model.entries[10]);
  model.entries.insert(model.entries.begin() + 3000, model.entries[5]);
  EXPECT_EQ(error_of(model), fmt::format("malformed m.index.json '{}' weight_map", model.entries[5].first));
  Model absent = model_of(2, 2);
  absent.entries.emplace_back("nowhere", shard_name(0, 2));
  absent.entries.emplace_back("nowhere", shard_name(1, 2));
  EXPECT_EQ(error_of(absent), "malformed m.index.json 'nowhere' weight_map");
}

TEST(HfIndex, ATensorInTwoShardsIsRefusedWhicheverTheIndexNames) {
  for (const std::size_t named : {0U, 1U}) {
    Model model = model_of(2, 3);
    model.files[0].second = shard_bytes({"a", "b", "shared"});
    model.files[1].second = shard_bytes({"shared", "c"});
    model.entries = {{"a", shard_name(0, 2)},
                     {"b", shard_name(0, 2)},
                     {"shared", shard_name(named, 2)},
                     {"c", shard_name(1, 2)}};
    EXPECT_EQ(error_of(model), fmt::format("malformed {} 'shared' '{}'", shard_name(1, 2), shard_name(0, 2)));
  }
}

TEST(HfIndex, SaysWhatTheIndexPutsElsewhere) {
  Model model = model_of(2, 2);
  std::swap(model.entries[0].second, model.entries[3].second);
  model.entries.emplace_back("gone", shard_name(1, 2));
  const graph::MetaGraph graph = open(model, "4");
  EXPECT_EQ(graph.missing, std::vector<std::string>{"gone"});
  ASSERT_EQ(graph.notes.size(), 3u);
  EXPECT_EQ(graph.notes[0].text,
            fmt::format("in shard '{}', the index puts it in '{}'", shard_name(0, 2), shard_name(1, 2)));
  EXPECT_EQ(graph.notes[1].text,
            fmt::format("in shard '{}', the index puts it in '{}'", shard_name(1, 2), shard_name(0, 2)));
  EXPECT_EQ(graph.notes[2].text,
            fmt::format("the index puts it in '{}', which does not hold it", shard_name(1, 2)));
}

// What a JSON parser refuses must not open in pieces either.
TEST(HfIndex, JunkBeforeATextIsRefused) {
  for (const char* junk : {"00\"x\"", "12345678901234567890\"x\"", "01"}) {
    const std::string index =
        fmt::format(R"({{"metadata":{{"k":{}}},"weight_map":{{"w":"model.safetensors"}}}})", junk);
    EXPECT_THROW(importers::import_source(
                     memory_source("m.index.json", index, {{"model.safetensors", shard_bytes({"w"})}})),
                 Error)
        << junk;
  }
}

TEST(HfIndex, ManyMissingShardsStayLinear) {
  std::string index = R"({"weight_map":{)";
  for (int i = 0; i < 60'000; ++i) index += fmt::format(R"({}"t{}":"s{}")", i == 0 ? "" : ",", i, i);
  const graph::MetaGraph graph = importers::import_source(memory_source("m.index.json", index + "}}"));
  EXPECT_EQ(graph.missing.size(), 60'000u);
}

}  // namespace

// --- Every importer against small files of all formats, cut at every byte: the seeds of the fuzzers.

namespace {

// Of an importer; long ones are cut.
std::vector<std::string> seeds(std::string_view importer) {
  constexpr std::size_t kMost = 2400;
  std::vector<std::string> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(fs::path(LOADLINE_FUZZ_CORPUS) / importer, missing))
    files.push_back(testing::read_file(entry.path().string()).substr(0, kMost));
  return files;
}

// Whether the importer reads the bytes; anything but a graph or an Error fails the test.
bool reads(const importers::Importer& importer, std::string_view bytes) {
  try {
    graph::validate(importer.read(memory_source("x", bytes)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Table, SmokeEveryImporterReadsEveryPrefixOfEverySeed) {
  for (const importers::Importer& format : importers::importers()) {
    int whole = 0;
    for (const std::string& seed : seeds(format.id)) {
      whole += reads(format, seed) ? 1 : 0;
      for (const importers::Importer& importer : importers::importers())
        for (std::size_t length = 0; length < seed.size(); ++length)
          reads(importer, std::string_view(seed).substr(0, length));
    }
    EXPECT_GT(whole, 0) << "tests/fuzz/corpus/" << format.id << " has no file that " << format.id << " reads";
  }
}

TEST(Table, EveryImporterHasFileNamesThatAFolderOpens) {
  for (const importers::Importer& importer : importers::importers()) {
    const std::string endings = graph::file_endings(importer.id);
    EXPECT_NE(endings, "") << importer.id;
    for (const std::string_view ending : split(endings, ' ')) {
      const std::string name = ending.starts_with('.') ? "m" + std::string(ending) : std::string(ending);
      EXPECT_TRUE(graph::model_file_rank(name)) << name;
      EXPECT_TRUE(graph::has_ending_of("folder/" + name, importer.id)) << name;
      EXPECT_EQ(graph::is_weight_file(name), importer.id != "config") << name;
    }
  }
}

TEST(Table, RanksTheFilesOfAFolder) {
  const std::vector<std::string> ranked = {
      "model.safetensors.index.json",
      "a.safetensors.index.json",
      "model.safetensors",
      "a.safetensors",
      "a.gguf",
      "mmproj-a.gguf",
      "pytorch_model.bin.index.json",
      "a.bin.index.json",
      "pytorch_model.bin",
      "a.bin",
      "a.onnx",
      "config.json",
  };
  for (std::size_t i = 1; i < ranked.size(); ++i)
    EXPECT_LT(graph::model_file_rank(ranked[i - 1]), graph::model_file_rank(ranked[i])) << ranked[i];
  EXPECT_EQ(graph::model_file_rank("a.bin"), graph::model_file_rank("a.pth"));
  for (const char* const other : {"a.h5", "a.index.json", "a.json", "my_config.json", "safetensors"})
    EXPECT_FALSE(graph::model_file_rank(other)) << other;
  EXPECT_TRUE(graph::is_weight_file("a.h5"));
  EXPECT_TRUE(graph::is_weight_file("sub/a.safetensors"));
  EXPECT_FALSE(graph::is_weight_file("1_Pooling/config.json"));
  EXPECT_FALSE(graph::is_weight_file("tokenizer.json"));
}

}  // namespace

}  // namespace loadline::tests
