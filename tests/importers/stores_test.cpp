// The models on a disk: hub cache, Ollama, LM Studio, folders.

#include "importers/stores.h"

#include "tests/support/builders.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::importers {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;
using testing::write_file;

class Stores : public ::testing::Test {
 protected:
  void put(const std::string& name, std::string_view bytes = "12345678") {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    write_file(path.string(), bytes);
  }
  void link(const std::string& name, const std::string& to) {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    fs::create_symlink(to, path);
  }
  // "store name bytes incomplete", a line each.
  static std::vector<std::string> lines(const StorePlaces& places) {
    std::vector<std::string> all;
    for (const StoredModel& model : stored_models(places, Progress()).models)
      all.push_back(fmt::format("{} {} {}{} {}", store_id(model.store), model.name, model.bytes,
                                model.unfinished ? " unfinished" : "", model.incomplete));
    return all;
  }
  std::string at(const std::string& name) const { return folder_ / name; }

  TemporaryFolder folder_;
};

using Lines = std::vector<std::string>;

TEST_F(Stores, OfTheHubKnowDownloadsThatDidNotEnd) {
  put("hub/models--org--whole/refs/main", "abc\n");
  put("hub/models--org--whole/blobs/1");
  link("hub/models--org--whole/snapshots/abc/model.safetensors", "../../blobs/1");
  put("hub/models--org--whole/snapshots/old/model.safetensors", "much more than that");
  put("hub/models--org--part/refs/main", "abc");
  put("hub/models--org--part/blobs/1.incomplete");
  put("hub/models--org--part/snapshots/abc/config.json");
  put("hub/models--cut--off/blobs/2");
  link("hub/models--cut--off/snapshots/abc/a.safetensors", "../../blobs/2");
  link("hub/models--cut--off/snapshots/abc/unet/b.safetensors", "../../../blobs/3");
  put("hub/models--none--here/refs/main", "abc");
  put("hub/models--odd--reference/refs/main", "..");
  put("hub/models--odd--reference/snapshots/1f/model.safetensors");
  put("hub/datasets--org--texts/snapshots/abc/data.parquet");
  EXPECT_EQ(lines({.hub_cache = at("hub")}),
            (Lines{"hub cut/off 8 'b.safetensors' is not in the cache",
                   "hub none/here 0 the cache holds no snapshot of it", "hub odd/reference 8 ",
                   "hub org/part 8 unfinished ", "hub org/whole 8 "}));
}

TEST_F(Stores, OfTheHubHaveARowForEachGgufFile) {
  put("hub/models--org--quants/snapshots/abc/model-Q8_0.gguf");
  put("hub/models--org--quants/snapshots/abc/model-Q2_K.gguf", "1234");
  put("hub/models--org--quants/snapshots/abc/mmproj-model-f16.gguf");
  put("hub/models--org--quants/snapshots/abc/config.json");
  EXPECT_EQ(lines({.hub_cache = at("hub")}),
            (Lines{"hub org/quants/model-Q2_K.gguf 4 ", "hub org/quants/model-Q8_0.gguf 8 "}));
}

std::string manifest(std::string_view digest, std::string_view type = "application/vnd.ollama.image.model") {
  return fmt::format(R"({{"schemaVersion":2,"config":{{"digest":"sha256:00","size":5}},"layers":[
    {{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:ff","size":7}},
    {{"mediaType":"{}","digest":"{}","size":8}}]}})",
                     type, digest);
}

TEST_F(Stores, OfOllamaNameModelsAsOllamaDoes) {
  put("ollama/blobs/sha256-aa");
  put("ollama/manifests/registry.ollama.ai/library/llama3.2/3b", manifest("sha256:aa"));
  put("ollama/manifests/registry.ollama.ai/someone/tuned/latest", manifest("sha256:bb"));
  put("ollama/manifests/hf.co/org/model/Q4_K_M", manifest("sha256:aa"));
  put("ollama/manifests/registry.ollama.ai/library/adapter/x",
      manifest("sha256:aa", "application/vnd.ollama.image.adapter"));
  put("ollama/manifests/registry.ollama.ai/library/escape/x", manifest("sha256:../../../etc/passwd"));
  put("ollama/manifests/registry.ollama.ai/library/broken/x", "{\"layers\": [");
  const Lines found = lines({.ollama = {at("ollama")}});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(found[0].starts_with("ollama broken:x 0 ")) << found[0];
  EXPECT_NE(found[0], "ollama broken:x 0 ") << "it says why";
  EXPECT_EQ(found[1], "ollama hf.co/org/model:Q4_K_M 8 ");
  EXPECT_EQ(found[2], "ollama llama3.2:3b 8 ");
  EXPECT_EQ(found[3], "ollama someone/tuned:latest 0 its weights are not in the store");
}

TEST_F(Stores, OfFoldersTakeSetsAsOneModel) {
  put("models/org/one/model-Q8_0.gguf");
  put("models/org/one/mmproj-model-f16.gguf");
  put("models/org/split/m-00001-of-00002.gguf");
  put("models/org/split/m-00002-of-00002.gguf");
  put("models/sharded/model-00001-of-00002.safetensors");
  put("models/sharded/model-00002-of-00002.safetensors");
  put("models/sharded/model.safetensors.index.json");
  put("models/net.onnx");
  put("models/notes.txt");
  put("models/.hidden/model.safetensors");
  put("models/1/2/3/4/5/deep/model.gguf");
  put("models/org/split/m-00002-of-00003.gguf");  // of another set
  put("models/org/split/m-b-00002-of-00002.gguf");
  EXPECT_EQ(lines({.lm_studio = {at("models")}}),
            (Lines{"lm_studio net.onnx 8 ", "lm_studio org/one/model-Q8_0.gguf 8 ",
                   "lm_studio org/split/m-00001-of-00002.gguf 16 ", "lm_studio sharded 16 "}));
  // a folder that is named twice, or by another path, is one
  EXPECT_EQ(lines({.folders = {at("models/org"), at("models/org/"), at("models/org/../org/one")}}).size(),
            2u);
  // a file is a model, and a folder that is one is called by its name
  EXPECT_EQ(lines({.folders = {at("models/net.onnx")}}), Lines{"folder net.onnx 8 "});
  EXPECT_EQ(lines({.folders = {at("models/sharded/.")}}), Lines{"folder sharded 16 "});
}

TEST_F(Stores, ThatAreNotThereHoldNothing) {
  EXPECT_EQ(lines({}), Lines());
  EXPECT_EQ(
      lines({.hub_cache = at("no"), .ollama = {at("no")}, .lm_studio = {at("no")}, .folders = {at("no")}}),
      Lines());
  put("loop/a/model.gguf");
  link("loop/a/again", "..");
  EXPECT_EQ(lines({.folders = {at("loop")}}), Lines{"folder a/model.gguf 8 "});
}

TEST_F(Stores, OfTooManyEntriesAreCutEachForItself) {
  for (std::size_t i = 0; i <= kMostEntries; ++i) put(fmt::format("many/{}.txt", i), "");
  put("few/model.gguf");
  const StoredModels found = stored_models({.lm_studio = {at("many")}, .folders = {at("few")}}, Progress());
  EXPECT_TRUE(found.cut);
  ASSERT_EQ(found.models.size(), 1u);
  EXPECT_EQ(found.models.front().name, "model.gguf");
  EXPECT_FALSE(stored_models({.folders = {at("few")}}, Progress()).cut);
}

TEST_F(Stores, AreFoundByTheirVariables) {
  const auto places = usual_stores(
      "/hub", [](const std::string& name) -> std::string { return name == "HOME" ? "/home/a" : ""; });
  EXPECT_EQ(places.hub_cache, "/hub");
  EXPECT_EQ(places.ollama, (Lines{"/home/a/.ollama/models", "/usr/share/ollama/.ollama/models"}));
  EXPECT_EQ(places.lm_studio, (Lines{"/home/a/.lmstudio/models", "/home/a/.cache/lm-studio/models"}));
  const auto own = usual_stores("", [](const std::string& name) -> std::string {
    return name == "OLLAMA_MODELS" ? "/big/ollama" : "";
  });
  EXPECT_EQ(own.ollama, Lines{"/big/ollama"});
}

}  // namespace
}  // namespace loadline::importers
