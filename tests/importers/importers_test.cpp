// The table of all importers.

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "importers/importer.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

// --- Every importer against small files of all formats, cut at every byte: the seeds of the fuzzers.

namespace {

namespace fs = std::filesystem;
using testing::memory_source;

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

// --- Files that are known not to be models.

std::string pointer(std::string_view size) {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '4') + "\n" +
         std::string(size);
}

TEST(Known, APointerOfGitLfsIsOneWhateverItsName) {
  for (const char* name : {"m.safetensors", "m.gguf", "m.bin", "m.pt", "m.onnx", "config.json", "m.npy", "m"})
    EXPECT_EQ(testing::facts_of([&] { testing::import_bytes(name, pointer("size 976797816\n")); }),
              std::string("unsupported ") + name + " 0 976797816")
        << name;
  const auto says = [](const std::string& text) {
    return testing::import_error("m.gguf", text).find("Git LFS") != std::string::npos;
  };
  EXPECT_TRUE(says(pointer("")));
  EXPECT_TRUE(says(pointer("size many\n")));
  EXPECT_TRUE(says("version https://hawser.github.com/spec/v1\nsize 5\n"));
  EXPECT_FALSE(says(pointer("size 5\n") + std::string(1024, '\n')));
  EXPECT_FALSE(says("version 2\nsize 5\n"));
}

TEST(Known, FilesFromBeforeGgufAreNamed) {
  const auto error = [](std::string_view bytes) { return testing::import_error("ggml-tiny.bin", bytes); };
  EXPECT_NE(error("lmgg\x99\xca").find("whisper.cpp"), std::string::npos);
  EXPECT_NE(error("tjgg\x03").find("(ggjt)"), std::string::npos);
  EXPECT_NE(error("fmgg\x01").find("(ggmf)"), std::string::npos);
  EXPECT_NE(error("algg\x01").find("adapter"), std::string::npos);
  EXPECT_NE(error("<!DOCTYPE html><html>").find("web page"), std::string::npos);
  EXPECT_EQ(error("lmg").find("whisper.cpp"), std::string::npos);
}

// --- The table of file names.

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
