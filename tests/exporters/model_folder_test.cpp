// A converted folder stays a model: its other files, and a config.json that says what the weights became.
#include "exporters/model_folder.h"

#include "core/base/error.h"
#include "exporters/preflight.h"
#include "tests/exporters/export_support.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;
using export_tests::convert;
using export_tests::plain_model;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

// A model folder with everything that people leave in one.
MetaGraphPtr full_folder(const TemporaryFolder& folder) {
  for (const char* name :
       {"in/tokenizer.json", "in/README.md", "in/modeling_x.py", "in/1_Pooling/config.json"})
    write_file(folder / name, std::string("content of ") + name);
  for (const char* name : {"in/pytorch_model.bin", "in/onnx/model.onnx", "in/.gitattributes",
                           "in/.cache/x.json", "in/__pycache__/x.pyc", "in/optimizer.pt"})
    write_file(folder / name, "x");
  return plain_model(folder);
}

std::vector<std::string> names(const std::vector<FolderFile>& files) {
  std::vector<std::string> result;
  for (const FolderFile& file : files) result.push_back(file.name);
  return result;
}

TEST(ModelFolder, FilesBesideTheWeightsAreCopied) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = full_folder(folder);
  const FolderFiles found = folder_files(*graph, false);
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
  const MetaGraphPtr graph = full_folder(folder);
  ExportOptions links;
  links.link_files = true;
  convert(graph, folder / "out", links);
  EXPECT_TRUE(fs::equivalent(folder / "in/README.md", folder / "out/README.md"));
  EXPECT_FALSE(fs::equivalent(folder / "in/config.json", folder / "out/config.json"));
  // replacing them changes the names only
  convert(graph, folder / "out", {}, {.overwrite = true});
  EXPECT_FALSE(fs::equivalent(folder / "in/README.md", folder / "out/README.md"));
  EXPECT_EQ(read_file(folder / "in/README.md"), "content of in/README.md");
  EXPECT_THROW(preflight(*graph, find_exporter("gguf"), links, folder / "o.gguf"), Error);
}

TEST(ModelFolder, WhatASingleFileLosesIsTold) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = full_folder(folder);
  ExportOptions keep;
  keep.keep_names = true;
  const auto losses = preflight(*graph, find_exporter("gguf"), keep, folder / "o.gguf").left_out;
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(
      losses[0],
      "4 files of the model's folder are not copied, the output is no model folder: '1_Pooling/config.json', "
      "'README.md', 'modeling_x.py' and 1 more");
  EXPECT_EQ(
      losses[1],
      "3 files of the model's folder are not copied: 'onnx/model.onnx', 'optimizer.pt', 'pytorch_model.bin'");
  ExportOptions strict = keep;
  strict.strict = true;
  EXPECT_THROW(preflight(*graph, find_exporter("gguf"), strict, folder / "o.gguf"), Error);
}

TEST(ModelFolder, LinksOutOfItAreLeftOut) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = plain_model(folder);
  write_file(folder / "secret", "s");
  fs::create_symlink("../secret", folder / "in/vocab.txt");
  fs::create_symlink(".", folder / "in/circle");
  fs::create_symlink("model.safetensors", folder / "in/inside.txt");
  const FolderFiles found = folder_files(*graph, false);
  EXPECT_EQ(found.left_out, (std::vector<std::string>{"circle/", "vocab.txt"}));
  EXPECT_EQ(names(found.files), std::vector<std::string>{"inside.txt"});
}

TEST(ModelFolder, AFileThatChangesIsNotCut) {
  const TemporaryFolder folder;
  const MetaGraphPtr graph = full_folder(folder);
  const Layout layout = preflight(*graph, find_exporter("safetensors"), {}, folder / "out").layout;
  write_file(folder / "in/README.md", "shorter");
  Progress progress;
  const ReadTensor nothing = [](TensorId, std::uint64_t, std::span<std::byte>) {};
  EXPECT_THROW(write_layout(layout, *graph, nothing, {}, progress), Error);
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(CastConfig, FollowsTheCast) {
  EXPECT_EQ(cast_config(R"({"b":1,"torch_dtype":"float32","a":1e-05})", DType::bf16, false),
            "{\n  \"b\": 1,\n  \"torch_dtype\": \"bfloat16\",\n  \"a\": 1e-05\n}\n");
  EXPECT_EQ(cast_config(R"({"quantization_config":{"bits":4},"x":1})", DType::f16, true),
            "{\n  \"x\": 1,\n  \"torch_dtype\": \"float16\"\n}\n");
  EXPECT_EQ(cast_config(R"({"quantization_config":{"bits":4},"dtype":null})", DType::f16, false),
            "{\n  \"quantization_config\": {\n    \"bits\": 4\n  },\n  \"dtype\": \"float16\"\n}\n");
  EXPECT_EQ(cast_config(R"({"text_config":{"dtype":"bfloat16","quantization_config":{}}})", DType::f32, true),
            "{\n  \"text_config\": {\n    \"dtype\": \"float32\"\n  }\n}\n");
}

TEST(CastConfig, LeavesWhatItDoesNotUnderstand) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  for (const std::string& text :
       {std::string("[]"), std::string("{"), std::string(), deep,
        std::string(R"({"a":)") + std::string(100, '[') + std::string(100, ']') + "}"})
    EXPECT_EQ(cast_config(text, DType::f16, true), text);
}

}  // namespace
}  // namespace loadline
