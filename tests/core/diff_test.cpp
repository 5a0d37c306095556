// Differences of metadata, types and ties.
#include "core/base/error.h"
#include "core/inspect/model_differences.h"
#include "tests/support/builders.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::TemporaryFolder;

MetaGraph with_config(const std::string& text) {
  MetaGraph graph;
  graph.metadata.push_back({std::string(kConfigKey), text});
  return graph;
}

std::vector<MetadataDifference> diff(const MetaGraph& a, const MetaGraph& b) {
  Progress progress;
  return diff_metadata(a, b, progress);
}

// "key: a | b", with "-" for what a model has not.
std::vector<std::string> lines(const std::vector<MetadataDifference>& differences) {
  std::vector<std::string> result;
  for (const MetadataDifference& found : differences)
    result.push_back(found.key + ": " + found.a.value_or("-") + " | " + found.b.value_or("-"));
  return result;
}

using Lines = std::vector<std::string>;

TEST(DiffMetadata, SettingsOfConfigJson) {
  const MetaGraph a = with_config(R"({"a": 1, "rope": {"factor": 2.5, "type": "x"}, "gone": null, "e": {}})");
  const MetaGraph b =
      with_config(R"({"rope": {"type": "y", "factor": 2.5}, "a": 1.0, "new": [1, 2], "e": {}})");
  EXPECT_EQ(lines(diff(a, b)), (Lines{"config.json: rope.type: \"x\" | \"y\"", "config.json: gone: null | -",
                                      "config.json: new: - | [1,2]"}));
}

TEST(DiffMetadata, LongListsNameTheFirstOtherElement) {
  std::string list = "[0";
  for (int i = 1; i < 100; ++i) list += "," + std::to_string(i);
  const MetaGraph a = with_config("{\"x\": " + list + "]}"), b = with_config("{\"x\": " + list + ",7]}");
  EXPECT_EQ(lines(diff(a, b)), (Lines{"config.json: x: 100 elements | 101 elements, number 100 is 7"}));
}

TEST(DiffMetadata, WhatIsNoPlainJsonIsComparedAsText) {
  const std::string deep = "{\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_TRUE(diff(with_config(deep), with_config(deep)).empty());
  EXPECT_EQ(diff(with_config(deep), with_config("{}")).size(), 1u);
  EXPECT_EQ(diff(with_config("{\"a\":"), with_config("{}")).size(), 1u);
  EXPECT_TRUE(diff(with_config("[\"}\"]"), with_config("[\"}\"]")).empty());
  // brackets in strings have no depth
  const std::string text = "{\"x\":\"" + std::string(1000, '{') + "\\\"{\"}";
  EXPECT_EQ(lines(diff(with_config(text), with_config("{\"x\":1}")))[0].substr(0, 16), "config.json: x: ");
}

TEST(DiffMetadata, TypesOfEqualNumbers) {
  MetaGraph a, b;
  a.metadata = {{"n", std::uint32_t{8}}, {"same", std::string("x")}, {"f", 0.5F}};
  b.metadata = {{"f", 0.5F}, {"n", std::int32_t{8}}, {"same", std::string("x")}, {"more", true}};
  EXPECT_EQ(lines(diff(a, b)), (Lines{"n: 8 (u32) | 8 (i32)", "more: - | true"}));
}

TEST(DiffMetadata, ArraysInFiles) {
  const TemporaryFolder folder;
  const auto graph = [&](const char* name, const std::vector<std::string>& words) {
    std::string bytes;
    for (const std::string& word : words) {
      bytes += std::string({static_cast<char>(word.size()), 0, 0, 0, 0, 0, 0, 0}) + word;
    }
    testing::write_file(folder / name, bytes);
    MetaGraph made;
    made.files.push_back({folder / name, bytes.size()});
    made.metadata.push_back(
        {"words", MetaArray{MetaType::string, false, FileId{0}, words.size(), 0, bytes.size()}});
    return made;
  };
  const MetaGraph a = graph("a", {"x", "y", "z"});
  EXPECT_TRUE(diff(a, graph("b", {"x", "y", "z"})).empty());
  EXPECT_EQ(lines(diff(a, graph("c", {"x", "Y", "z"}))),
            (Lines{"words: 3 strings, number 1 is \"y\" | 3 strings, number 1 is \"Y\""}));
  EXPECT_EQ(lines(diff(a, graph("d", {"x"}))), (Lines{"words: 3 strings | 1 string"}));
  testing::write_file(folder / "c", "short");
  const MetaGraph cut = graph("e", {"x", "y", "z"});
  testing::write_file(folder / "e", "cut");
  EXPECT_THROW((void)diff(a, cut), Error);
}

MetaGraph weights(const std::vector<std::pair<std::string, DType>>& list) {
  MetaGraph graph;
  for (const auto& [name, dtype] : list) {
    const std::uint64_t bytes = byte_size(dtype, 256).value();
    graph.tensors.push_back({name, dtype, {1, 256}, {}, graph.add_storage(shapes_only_storage(bytes)), 0});
  }
  return graph;
}

TEST(DiffTypes, GroupsByPatternAndTypes) {
  const MetaGraph a = weights({{"blk.0.v.weight", DType::q4_k},
                               {"blk.1.v.weight", DType::q4_k},
                               {"blk.2.v.weight", DType::q6_k},
                               {"blk.10.v.weight", DType::q4_k},
                               {"norm", DType::f32}});
  const MetaGraph b = weights({{"blk.0.v.weight", DType::q5_k},
                               {"blk.1.v.weight", DType::q5_k},
                               {"blk.2.v.weight", DType::q6_k},
                               {"blk.10.v.weight", DType::q5_k},
                               {"norm", DType::f32}});
  const auto groups = type_groups(a, b, match_weights(a, b));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].pattern, "blk.N.v.weight");
  EXPECT_EQ(groups[0].a + " " + groups[0].b, "Q4_K Q5_K");
  EXPECT_EQ(groups[0].count, 3u);
  EXPECT_EQ(groups[0].bytes_b, 3u * 176);
  EXPECT_EQ(ranges_text(groups[0].layers), "0-1, 10");
  EXPECT_FALSE(groups[0].all_layers);
  EXPECT_TRUE(groups[2].all_layers);
  EXPECT_EQ(groups[2].pattern, "norm");
}

TEST(DiffTypes, Ties) {
  MetaGraph a = weights({{"embed", DType::f32}, {"other", DType::f32}});
  a.tensors.push_back(a.tensors[0]);
  a.tensors[2].name = "head";
  MetaGraph b = weights({{"embed", DType::f32}, {"other", DType::f32}});
  EXPECT_EQ(ties_missing(a, b), (std::vector<std::vector<std::string>>{{"embed", "head"}}));
  EXPECT_TRUE(ties_missing(b, a).empty());
  EXPECT_TRUE(ties_missing(a, a).empty());
}

}  // namespace
}  // namespace loadline
