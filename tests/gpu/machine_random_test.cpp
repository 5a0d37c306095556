// Random valid plans: the device ends with what a plain simulation says, whatever the order of copies.
#include "core/gpu/vulkan_machine.h"
#include "core/plan/dry_machine.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/model_file.h"
#include "tests/support/random_plans.h"
#include "tests/support/simulation.h"

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

class RandomPlans : public DeviceTest, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(RandomPlans, EndAsTheSimulationSays) {
  const std::uint32_t seed = GetParam();
  const ModelFile model({1, 4096, 70'000, 123'457, 5'000'000}, seed);
  const Plan plan = testing::random_plan(*model.graph(), seed, 300);
  ASSERT_EQ(check_plan(plan, *model.graph()), std::nullopt);

  const StorageReader reader(model.graph());
  VulkanMachine machine(device(), reader, plan);
  const Timeline measured = run(plan, machine);
  const testing::Simulation expected(plan, reader);
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
