// Every kind of copy, small and larger than the machine's own ring, under validation.
#include "core/gpu/vulkan_machine.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/machine_check.h"
#include "tests/gpu/model_file.h"

#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

BlockId make(Plan& plan, Space space, std::uint64_t bytes, std::optional<StorageId> storage = {}) {
  return alloc(plan,
               {.space = space, .bytes = bytes, .use = BlockUse::storage, .storage = storage, .label = {}});
}

class Machines : public DeviceTest {
 protected:
  void run_and_compare(const Plan& plan, const ModelFile& model) {
    expect_as_simulated(device(), plan, model);
  }
};

// From a storage, or from a block of a space; nothing = the storage itself.
using Ends = std::tuple<std::optional<Space>, Space, std::uint64_t>;

class CopyPair : public Machines, public ::testing::WithParamInterface<Ends> {};

TEST_P(CopyPair, BytesArriveWhereTheyShould) {
  const auto [from, to, bytes] = GetParam();
  const ModelFile model({100, bytes + 7, 300});
  const StorageId storage{1};
  Plan plan;
  CopySource source = storage;
  if (from) {
    const BlockId block = make(plan, *from, bytes + 7, storage);
    copy(plan, block, 0, storage, 0, bytes + 7);
    source = block;
  }
  // an odd offset on both sides, except where a mapping demands equal ones
  const std::uint64_t from_at = 3, to_at = to == Space::page_cache ? 3 : 5;
  const BlockId target = make(plan, to, bytes + 7, storage);
  copy(plan, target, to_at, source, from_at, bytes);
  const BlockId seen = make(plan, Space::device, bytes);
  copy(plan, seen, 0, target, to_at, bytes);
  run_and_compare(plan, model);
}

std::vector<Ends> all_ends() {
  std::vector<Ends> ends;
  for (const std::uint64_t bytes : {1ull, 70'001ull, (21ull << 20) + 13})
    for (const Space to : {Space::host, Space::page_cache, Space::staging, Space::device}) {
      ends.emplace_back(std::nullopt, to, bytes);
      if (to == Space::page_cache) continue;
      for (const Space from : {Space::host, Space::page_cache, Space::staging, Space::device})
        ends.emplace_back(from, to, bytes);
    }
  return ends;
}

std::string ends_name(const ::testing::TestParamInfo<Ends>& info) {
  const auto from = std::get<0>(info.param);
  return std::string(from ? space_name(*from) : "file") + "_to_" +
         std::string(space_name(std::get<1>(info.param))) + "_" + std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, CopyPair, ::testing::ValuesIn(all_ends()), ends_name);

// A chain of dependent copies on the device: each must see what the one before wrote.
TEST_F(Machines, ReadAfterWriteAndWriteAfterReadOnTheDevice) {
  const ModelFile model({4096, 4096});
  Plan plan;
  const BlockId a = make(plan, Space::device, 4096), b = make(plan, Space::device, 4096);
  const BlockId c = make(plan, Space::device, 4096);
  copy(plan, a, 0, StorageId{0}, 0, 4096);
  copy(plan, b, 0, a, 0, 4096);             // reads what was just written
  copy(plan, a, 0, StorageId{1}, 0, 4096);  // overwrites what was just read
  copy(plan, a, 100, b, 0, 1000);           // overwrites a part of what was just written
  copy(plan, c, 0, a, 0, 4096);
  copy(plan, a, 0, c, 2000, 50);
  run_and_compare(plan, model);
}

TEST_F(Machines, ASlotIsNotOverwrittenWhileItIsRead) {
  const ModelFile model(std::vector<std::uint64_t>(64, 300'000));
  Plan plan;
  const BlockId slot = make(plan, Space::staging, 300'000);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const BlockId block = make(plan, Space::device, 300'000, StorageId{i});
    copy(plan, slot, 0, StorageId{i}, 0, 300'000);
    copy(plan, block, 0, slot, 0, 300'000);
  }
  run_and_compare(plan, model);
}

TEST_F(Machines, SlotsMuchSmallerThanTheTensors) {
  const ModelFile model({1'000'003, 77});
  Plan plan;
  const BlockId slots[] = {make(plan, Space::staging, 4096), make(plan, Space::staging, 4096)};
  const BlockId block = make(plan, Space::device, 1'000'003, StorageId{0});
  std::size_t turn = 0;
  for (std::uint64_t done = 0; done < 1'000'003; ++turn) {
    const std::uint64_t piece = std::min<std::uint64_t>(4096, 1'000'003 - done);
    copy(plan, slots[turn % 2], 0, StorageId{0}, done, piece);
    copy(plan, block, done, slots[turn % 2], 0, piece);
    done += piece;
  }
  run_and_compare(plan, model);
}

TEST_F(Machines, ManySmallTensorsShareASlotAndASubmission) {
  const ModelFile model(std::vector<std::uint64_t>(800, 13));
  Plan plan;
  const BlockId slot = make(plan, Space::staging, 800 * 13);
  std::vector<BlockId> blocks;
  for (std::uint32_t i = 0; i < 800; ++i) blocks.push_back(make(plan, Space::device, 13, StorageId{i}));
  for (std::uint32_t i = 0; i < 800; ++i) {
    copy(plan, slot, 13 * i, StorageId{i}, 0, 13);
    copy(plan, blocks[i], 0, slot, 13 * i, 13);
  }
  free(plan, slot);
  run_and_compare(plan, model);
  const StorageReader reader(model.graph());
  VulkanMachine machine(device(), reader, plan);
  run(plan, machine);
  EXPECT_LE(machine.submissions(), 2u);
}

TEST_F(Machines, EmptyBlocksAndCopiesOfNothing) {
  const ModelFile model({0, 10});
  Plan plan;
  const BlockId device_block = make(plan, Space::device, 0, StorageId{0});
  const BlockId staging = make(plan, Space::staging, 0), host = make(plan, Space::host, 0);
  const BlockId mapped = make(plan, Space::page_cache, 0, StorageId{0});
  for (const BlockId block : {staging, host, mapped}) copy(plan, block, 0, StorageId{0}, 0, 0);
  for (const BlockId block : {staging, host, mapped}) copy(plan, device_block, 0, block, 0, 0);
  for (const BlockId block : {staging, host, mapped}) free(plan, block);
  run_and_compare(plan, model);
}

}  // namespace
}  // namespace loadline::gpu
