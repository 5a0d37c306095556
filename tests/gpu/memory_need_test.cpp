// What a device must allow in one piece and at once, checked without one.
#include "core/gpu/memory_need.h"

#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

using ::testing::HasSubstr;

MetaGraph graph_of(const std::vector<std::uint64_t>& sizes) {
  MetaGraph graph;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    graph.storages.push_back(shapes_only_storage(sizes[i]));
    graph.tensors.push_back({Name(fmt::format("t{}", i)),
                             DType::i8,
                             {sizes[i]},
                             {},
                             StorageId{static_cast<std::uint32_t>(i)},
                             0});
  }
  return graph;
}

Plan plan_of(const MetaGraph& graph, std::string_view method) {
  return make_plan(graph, find_method(method), find_order("file").make(graph), {});
}

DeviceInfo small_device() {
  DeviceInfo device;
  device.name = "small";
  device.max_allocation = 1 << 30;
  device.max_buffer = 512 << 20;
  device.max_binding = 128 << 20;
  device.max_allocations = 4;
  return device;
}

std::string refusal(const MetaGraph& graph, const DeviceInfo& device) {
  try {
    const Plan plan = plan_of(graph, "direct");
    require_pieces(plan, graph, device, 256);
    require_allocations(plan, device, 256);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_fit);
    return error.what();
  }
}

TEST(Pieces, AreRefusedWithTheTensorAndBothNumbers) {
  const DeviceInfo device = small_device();
  EXPECT_EQ(refusal(graph_of({1, 512 << 20}), device), "");
  const std::string said = refusal(graph_of({1, (512 << 20) + 1}), device);
  EXPECT_THAT(said, HasSubstr("the tensor 't1'"));
  EXPECT_THAT(said, HasSubstr("536870913 bytes"));
  EXPECT_THAT(said, HasSubstr("536870912 bytes"));
  DeviceInfo other = device;  // the smaller of the two limits decides
  other.max_allocation = 100 << 20;
  EXPECT_THAT(refusal(graph_of({101 << 20}), other), HasSubstr("small allows 100.00 MiB"));
}

// A driver may give more in one piece than it promises, but no more than a heap or a buffer has.
TEST(Pieces, MayExceedWhatTheDriverPromises) {
  DeviceInfo device = small_device();
  device.max_buffer = 3ull << 30;
  EXPECT_EQ(largest_piece(device, 256), 1u << 30);
  device.heaps = {{.bytes = 2ull << 30, .device_local = true}};
  EXPECT_EQ(largest_piece(device, 256), 2ull << 30);
  device.heaps.front().bytes = 4ull << 30;
  EXPECT_EQ(largest_piece(device, 256), 3ull << 30);
  EXPECT_EQ(promised_piece(device, 256), 1u << 30);
  const MetaGraph graph = graph_of({1, 2ull << 30, 3});
  EXPECT_EQ(refusal(graph, device), "");
  const Plan plan = plan_of(graph, "direct");
  const auto large = largest_unpromised(plan, Space::device, device, 256);
  ASSERT_TRUE(large);
  EXPECT_EQ(plan.block(*large).storage, StorageId{1});
  EXPECT_EQ(largest_unpromised(plan_of(graph_of({1 << 30}), "direct"), Space::device, device, 256),
            std::nullopt);
  try {
    refuse_piece(plan.block(*large), graph, device, promised_piece(device, 256), "the driver refused");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_fit);
    EXPECT_THAT(error.what(), HasSubstr("the tensor 't1' needs 2.00 GiB"));
    EXPECT_THAT(error.what(), HasSubstr("small allows 1.00 GiB (1073741824 bytes): the driver refused"));
  }
}

TEST(Pieces, AreCountedAtOnce) {
  const DeviceInfo device = small_device();
  EXPECT_EQ(refusal(graph_of(std::vector<std::uint64_t>(4, 300 << 20)), device), "");
  EXPECT_THAT(refusal(graph_of(std::vector<std::uint64_t>(5, 300 << 20)), device),
              HasSubstr("needs 5 allocations at once, small allows 4"));
  // small ones share
  EXPECT_EQ(refusal(graph_of(std::vector<std::uint64_t>(1000, 1 << 20)), device), "");
  // and a load that gives them back needs few
  Plan turns;
  for (std::uint32_t i = 0; i < 9; ++i) {
    turns.blocks.push_back({.space = Space::device, .bytes = 300 << 20});
    turns.steps.push_back({.verb = Verb::alloc, .block = BlockId{i}});
    turns.steps.push_back({.verb = Verb::free, .block = BlockId{i}});
  }
  EXPECT_NO_THROW(require_allocations(turns, device, 256));
}

TEST(Pieces, ThatAShaderCannotSeeAreNamed) {
  const MetaGraph graph = graph_of({128 << 20, 129 << 20, 200 << 20, 1});
  const Unbindable found = unbindable_tensors(graph, {}, small_device());
  EXPECT_EQ(found.count, 2u);
  EXPECT_EQ(found.largest, TensorId{2});
  EXPECT_EQ(found.most, 200u << 20);
  EXPECT_EQ(unbindable_tensors(graph_of({5}), {}, small_device()).count, 0u);
  // one of them is packed to half its size
  Plan packed;
  packed.blocks.push_back({.space = Space::device,
                           .bytes = 100 << 20,
                           .use = BlockUse::storage,
                           .storage = StorageId{2},
                           .prepack = Prepack{.from = DType::f32, .to = DType::f16}});
  EXPECT_EQ(unbindable_tensors(graph, packed, small_device()).largest, TensorId{1});
}

}  // namespace
}  // namespace loadline::gpu
