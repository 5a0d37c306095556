// Random valid plans: the device ends with what a plain simulation says, whatever the order of copies.
#include "core/gpu/vulkan_machine.h"
#include "core/plan/dry_machine.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/model_file.h"
#include "tests/gpu/simulation.h"

#include <random>

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

class PlanMaker {
 public:
  PlanMaker(const MetaGraph& graph, std::uint32_t seed) : graph_(graph), random_(seed) {}

  Plan make(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::uint64_t what = below(10);
      if (alive_.size() < 3 || what < 2)
        add_block();
      else if (what == 2)
        drop_block();
      else
        add_copy();
    }
    return plan_;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : random_() % end; }
  StorageId any_storage() { return StorageId{static_cast<std::uint32_t>(below(graph_.storages.size()))}; }
  BlockId any_block() { return alive_[below(alive_.size())]; }

  void add_block() {
    const Space space = static_cast<Space>(below(kSpaceCount));
    const StorageId storage = any_storage();
    const std::uint64_t bytes = space == Space::page_cache ? graph_.storage(storage).bytes
                                                           : below(below(20) == 0 ? 6'000'000 : 60'000);
    alive_.push_back(
        alloc(plan_, {.space = space, .bytes = bytes, .use = {}, .storage = storage, .label = {}}));
  }

  void drop_block() {
    const std::size_t at = below(alive_.size());
    free(plan_, alive_[at]);
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void add_copy() {
    const BlockId to = any_block();
    const Block& target = plan_.block(to);
    if (target.space == Space::page_cache) {
      const std::uint64_t at = below(target.bytes);
      return copy(plan_, to, at, *target.storage, at, below(target.bytes - at + 1));
    }
    CopySource from = any_storage();
    std::uint64_t size = graph_.storage(std::get<StorageId>(from)).bytes;
    if (const BlockId block = any_block(); below(3) != 0 && block != to) {
      from = block;
      size = plan_.block(block).bytes;
    }
    const std::uint64_t from_at = below(size), to_at = below(target.bytes);
    copy(plan_, to, to_at, from, from_at, below(std::min(size - from_at, target.bytes - to_at) + 1));
  }

  const MetaGraph& graph_;
  std::mt19937_64 random_;
  Plan plan_;
  std::vector<BlockId> alive_;
};

class RandomPlans : public DeviceTest, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(RandomPlans, EndAsTheSimulationSays) {
  const std::uint32_t seed = GetParam();
  const ModelFile model({1, 4096, 70'000, 123'457, 5'000'000}, seed);
  const Plan plan = PlanMaker(*model.graph(), seed).make(300);
  ASSERT_EQ(check_plan(plan, *model.graph()), std::nullopt);

  const StorageReader reader(model.graph());
  VulkanMachine machine(device(), reader, plan);
  const Timeline measured = run(plan, machine);
  const Simulation expected(plan, model);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const BlockId id{static_cast<std::uint32_t>(i)};
    if (plan.blocks[i].space != Space::device || !expected.content(id).alive) continue;
    std::vector<std::byte> bytes;
    machine.read_back(id, [&](std::uint64_t, std::span<const std::byte> chunk) {
      bytes.insert(bytes.end(), chunk.begin(), chunk.end());
    });
    ASSERT_EQ(expected.differences(id, bytes), 0u) << "block " << i;
  }
  DryMachine dry;
  const Timeline projected = run(plan, dry);
  for (std::size_t space = 0; space < kSpaceCount; ++space) {
    EXPECT_EQ(measured.peaks[space].bytes, projected.peaks[space].bytes);
    EXPECT_EQ(measured.peaks[space].step, projected.peaks[space].step);
    EXPECT_EQ(measured.final_bytes[space], projected.final_bytes[space]);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, ::testing::Range(1u, 41u));

}  // namespace
}  // namespace loadline::gpu
