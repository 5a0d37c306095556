// The check that all tests of the machine share.
#include "tests/gpu/machine_check.h"

#include "core/gpu/vulkan_machine.h"
#include "core/plan/dry_machine.h"
#include "tests/support/simulation.h"

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

std::vector<std::byte> read_all(VulkanMachine& machine, BlockId id) {
  std::vector<std::byte> bytes;
  machine.read_back(id, [&](std::uint64_t offset, std::span<const std::byte> chunk) {
    EXPECT_EQ(offset, bytes.size());
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  });
  return bytes;
}

}  // namespace

void expect_as_simulated(const Device& device, const Plan& plan, const ModelFile& model) {
  ASSERT_EQ(check_plan(plan, *model.graph()), std::nullopt);
  const StorageReader reader(model.graph());
  VulkanMachine machine(device, reader, plan);
  const Timeline measured = run(plan, machine);
  const testing::Simulation expected(plan, reader);
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const BlockId id{static_cast<std::uint32_t>(i)};
    if (plan.blocks[i].space != Space::device || !expected.content(id).alive) continue;
    ASSERT_EQ(expected.differences(id, read_all(machine, id)), 0u) << "block " << i;
  }
  DryMachine dry;
  const Timeline projected = run(plan, dry);
  for (std::size_t space = 0; space < kSpaceCount; ++space) {
    EXPECT_EQ(measured.peaks[space].bytes, projected.peaks[space].bytes);
    EXPECT_EQ(measured.peaks[space].step, projected.peaks[space].step);
    EXPECT_EQ(measured.final_bytes[space], projected.final_bytes[space]);
  }
  for (const Space space : {Space::host, Space::page_cache, Space::device})
    EXPECT_GE((*measured.reserved_peak)[index(space)], measured.peaks[index(space)].bytes);
}

}  // namespace loadline::gpu
