// The filter grammar.
#include "core/base/error.h"
#include "core/graph/names/tensor_names.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

MetaGraph sample() {
  MetaGraph graph;
  graph.files = {{"m.index.json", 10}, {"a.safetensors", 1 << 20}, {"b.safetensors", 1 << 20}};
  const auto add = [&](const char* name, DType dtype, Shape shape, std::uint32_t file) {
    const std::uint64_t bytes = byte_size(dtype, element_count(shape).value()).value();
    graph.storages.push_back(plain_storage(FileId{file}, 0, bytes));
    graph.tensors.push_back({name,
                             dtype,
                             std::move(shape),
                             {},
                             StorageId{static_cast<std::uint32_t>(graph.storages.size() - 1)},
                             0});
  };
  add("embed.weight", DType::bf16, {100, 64}, 1);                     // 0: 12800 bytes
  add("layers.0.self_attn.q_proj.weight", DType::bf16, {64, 64}, 1);  // 1: 8192
  add("layers.7.self_attn.k_proj.weight", DType::f32, {64, 64}, 1);   // 2: 16384
  add("layers.12.mlp.up_proj.weight", DType::q4_k, {4, 256}, 2);      // 3: 576
  add("two words", DType::i64, {}, 2);                                // 4: 8
  return graph;
}

std::vector<int> select(std::string_view text) {
  std::vector<int> positions;
  for (const TensorId id : TensorFilter(text).select(sample())) positions.push_back(static_cast<int>(id));
  return positions;
}

using Positions = std::vector<int>;

TEST(Filter, SelectsByEveryKey) {
  EXPECT_EQ(select(""), (Positions{0, 1, 2, 3, 4}));
  EXPECT_EQ(select("  "), (Positions{0, 1, 2, 3, 4}));
  EXPECT_EQ(select("dtype:bf16"), (Positions{0, 1}));
  EXPECT_EQ(select("dtype:BF16,q4_*"), (Positions{0, 1, 3}));
  EXPECT_EQ(select("shape:*x64"), (Positions{0, 1, 2}));
  EXPECT_EQ(select("shape:64x64"), (Positions{1, 2}));
  EXPECT_EQ(select("size:>12.5KiB"), (Positions{2}));
  EXPECT_EQ(select("size:>=12800"), (Positions{0, 2}));
  EXPECT_EQ(select("size:<8KiB"), (Positions{3, 4}));
  EXPECT_EQ(select("size:576-8KiB"), (Positions{1, 3}));
  EXPECT_EQ(select("rank:0"), (Positions{4}));
  EXPECT_EQ(select("layer:0-7"), (Positions{1, 2}));
  EXPECT_EQ(select("layer:12,0"), (Positions{1, 3}));
  EXPECT_EQ(select("layer:>7"), (Positions{3}));
  EXPECT_EQ(select("shard:2"), (Positions{3, 4}));  // the index is no shard
  EXPECT_EQ(select("file:a.*"), (Positions{0, 1, 2}));
  EXPECT_EQ(select("name:*_proj*"), (Positions{1, 2, 3}));
  EXPECT_EQ(select("name:embed"), Positions{});  // the whole name
  EXPECT_EQ(select("proj"), (Positions{1, 2, 3}));
  EXPECT_EQ(select("name:\"two words\""), (Positions{4}));
  EXPECT_EQ(select("dtype:bf16 layer:0"), (Positions{1}));
  EXPECT_EQ(select("proj -attn"), (Positions{3}));
  EXPECT_EQ(select("-dtype:bf16 -rank:0"), (Positions{2, 3}));
}

TEST(Filter, SaysWhatIsWrong) {
  const auto error = [](std::string_view text) -> std::string {
    try {
      TensorFilter filter(text);
      return "";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
      return e.what();
    }
  };
  EXPECT_NE(error("colour:red").find("there is no 'colour'"), std::string::npos);
  EXPECT_NE(error("layer:x").find("'x' is no number"), std::string::npos);
  EXPECT_NE(error("layer:3-").find("'' is no number"), std::string::npos);
  EXPECT_NE(error("size:>5G").find("size:>5G"), std::string::npos);
  EXPECT_NE(error("name:").find("has no value"), std::string::npos);
  EXPECT_NE(error("name:\"open").find("quote is not closed"), std::string::npos);
  EXPECT_EQ(error("layer:>18446744073709551615 rank:<0"), "");
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("a*b*c", "axxbyyc"));
  EXPECT_FALSE(glob_matches("a*b*c", "axxbyy"));
  EXPECT_TRUE(glob_matches("a?c", "abc"));
  EXPECT_FALSE(glob_matches("a?c", "ac"));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_FALSE(glob_matches(std::string(30, '*') + "b", std::string(100'000, 'a')));
}

}  // namespace
}  // namespace loadline
