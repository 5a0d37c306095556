// What is told of a cast: how many tensors, how many bytes, and why the others stay.
#include "core/load/request/casts.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

struct Row {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes;
  std::uint32_t storage;
};

MetaGraph graph_of(const std::vector<Row>& rows) {
  MetaGraph graph;
  for (const Row& row : rows) {
    if (row.storage == graph.storages.size()) graph.storages.push_back(shapes_only_storage(row.bytes));
    graph.tensors.push_back({Name(row.name), row.dtype, row.shape, {}, StorageId{row.storage}, 0});
  }
  return graph;
}

TEST(CastSummary, CountsTiesOnceInBytesAndSaysWhyTheRestStays) {
  const MetaGraph graph = graph_of({{"w", DType::f32, {4, 64}, 1024, 0},
                                    {"tied", DType::f32, {4, 64}, 1024, 0},
                                    {"half", DType::f16, {4, 64}, 512, 1},
                                    {"ids", DType::i64, {8}, 64, 2},
                                    {"mask", DType::u8, {8}, 8, 3},
                                    {"norm", DType::f32, {64}, 256, 4}});
  const CastSummary half = cast_summary(graph, DType::f16);
  EXPECT_EQ(half.tensors, 3u);
  EXPECT_EQ(half.bytes_before, 1280u);
  EXPECT_EQ(half.bytes_after, 640u);
  EXPECT_EQ(half.kept, 3u);
  EXPECT_EQ(cast_text(half, DType::f16),
            "Cast to F16: 3 tensors, 1.25 KiB become 640 B; 3 tensors stay as stored: 2 do not hold floating "
            "point numbers, 1 is F16 already.");
  const CastSummary blocks = cast_summary(graph, DType::q8_0);
  EXPECT_EQ(blocks.tensors, 3u);
  EXPECT_EQ(
      cast_text(blocks, DType::q8_0),
      "Cast to Q8_0: 3 tensors, 1.50 KiB become 544 B; 3 tensors stay as stored: 2 do not hold floating "
      "point numbers, 1 is no matrix of rows of whole blocks.");
}

TEST(CastSummary, SaysWhatCastsNothing) {
  const MetaGraph one = graph_of({{"w", DType::bf16, {8}, 16, 0}});
  EXPECT_EQ(cast_text(cast_summary(one, DType::bf16), DType::bf16),
            "The cast to BF16 changes nothing: 1 tensor stays as stored: 1 is BF16 already.");
  EXPECT_EQ(cast_text(cast_summary(one, DType::f32), DType::f32), "Cast to F32: 1 tensor, 16 B become 32 B.");
  EXPECT_EQ(cast_text(cast_summary(MetaGraph(), DType::f32), DType::f32), "The cast to F32 changes nothing.");
  // a view of another type on the same bytes keeps both
  const MetaGraph shared = graph_of({{"w", DType::f32, {8}, 32, 0}, {"bits", DType::i32, {8}, 32, 0}});
  EXPECT_EQ(
      cast_text(cast_summary(shared, DType::f16), DType::f16),
      "The cast to F16 changes nothing: 2 tensors stay as stored: 1 does not hold floating point numbers, "
      "1 shares its bytes with one that is kept or of another type.");
  MetaGraph uneven = graph_of({{"w", DType::f32, {7}, 32, 0}});
  uneven.tensors[0].offset = 2;
  EXPECT_EQ(
      cast_text(cast_summary(uneven, DType::f16), DType::f16),
      "The cast to F16 changes nothing: 1 tensor stays as stored: 1 has bytes that are no whole numbers.");
  const std::uint64_t most = std::uint64_t{1} << 63;
  const MetaGraph large = graph_of({{"w", DType::f8_e4m3, {most}, most, 0}});
  EXPECT_EQ(cast_text(cast_summary(large, DType::f32), DType::f32),
            "The cast to F32 changes nothing: 1 tensor stays as stored: 1 would be too large.");
  const MetaGraph blocks = graph_of({{"w", DType::q8_0, {32}, 34, 0}});
  EXPECT_EQ(cast_text(cast_summary(blocks, DType::f16), DType::f16),
            "The cast to F16 changes nothing: 1 tensor stays as stored: 1 is quantised already.");
}

}  // namespace
}  // namespace loadline
