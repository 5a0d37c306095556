// Jumps and distances of plans, by hand.
#include "core/load/answer/projection.h"
#include "core/plan/plan.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

// Two files: 10000 bytes at 100 and 500 behind 20 of padding; 800 at 0.
MetaGraph two_files() {
  MetaGraph graph;
  graph.files.resize(2);
  graph.storages = {plain_storage(FileId{0}, 100, 10'000), plain_storage(FileId{0}, 10'120, 500),
                    plain_storage(FileId{1}, 0, 800)};
  for (std::uint32_t i = 0; i < 3; ++i)
    graph.tensors.push_back(
        {"t" + std::to_string(i), DType::u8, {graph.storages[i].bytes}, {}, StorageId{i}, 0});
  return graph;
}

ReadPattern pattern_of(const MetaGraph& graph, const StorageOrder& order) {
  return read_pattern(make_plan(graph, find_method("per_tensor"), order, {}), graph);
}

TEST(ReadPattern, CountsJumpsAndDistances) {
  const MetaGraph graph = two_files();
  const StorageId a{0}, b{1}, c{2};
  EXPECT_EQ(pattern_of(graph, {a, b, c}), (ReadPattern{11'300, 3, 1, 20}));
  // back to the start of the first file: from 10,620 to 100
  EXPECT_EQ(pattern_of(graph, {b, a, c}), (ReadPattern{11'300, 3, 2, 10'520}));
  // another file between: going on where it ended is a jump all the same
  EXPECT_EQ(pattern_of(graph, {a, c, b}), (ReadPattern{11'300, 3, 2, 20}));
}

TEST(ReadPattern, AForwardSkipOfAPageIsAJump) {
  MetaGraph graph = two_files();
  graph.storages[1].offset = 10'100 + 4096;
  EXPECT_EQ(pattern_of(graph, {StorageId{0}, StorageId{1}, StorageId{2}}), (ReadPattern{11'300, 3, 2, 4096}));
}

TEST(ReadPattern, EncodedStoragesCountAsStored) {
  MetaGraph graph = two_files();
  graph.storages[0].encoding = Encoding::deflate;
  graph.storages[0].stored_bytes = 5000;
  graph.storages[1].offset = 5100;
  EXPECT_EQ(pattern_of(graph, {StorageId{0}, StorageId{1}, StorageId{2}}), (ReadPattern{6'300, 3, 1, 0}));
}

TEST(ReadPattern, WithoutFilesNothingJumps) {
  MetaGraph graph = two_files();
  graph.files.clear();
  for (Storage& storage : graph.storages) storage = shapes_only_storage(storage.bytes);
  EXPECT_EQ(pattern_of(graph, {StorageId{2}, StorageId{0}, StorageId{1}}), (ReadPattern{11'300, 3, 0, 0}));
}

TEST(ReadPattern, JumpsCostTimeInAProjection) {
  const MetaGraph graph = two_files();
  const LoadInputs options = {.costs = {.seek_seconds = 2.0}};
  const Projection sequential = project(graph, find_method("per_tensor"), find_order("file"), options);
  const Projection smallest = project(graph, find_method("per_tensor"), find_order("smallest"), options);
  EXPECT_EQ(sequential.reads.jumps, 1u);
  EXPECT_DOUBLE_EQ(sequential.seconds, sequential.timeline.seconds + 2.0);
  EXPECT_EQ(smallest.reads.jumps, 2u);
  EXPECT_DOUBLE_EQ(smallest.seconds, smallest.timeline.seconds + 4.0);
}

}  // namespace
}  // namespace loadline
