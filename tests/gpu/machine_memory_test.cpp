// What the machine takes from Vulkan, gives back, and refuses.
#include "core/base/error.h"
#include "core/gpu/vulkan_machine.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

using ::testing::HasSubstr;

class Memory : public DeviceTest {};

BlockId make(Plan& plan, Space space, std::uint64_t bytes, std::string label = {}) {
  return alloc(plan, {.space = space, .bytes = bytes, .use = {}, .storage = {}, .label = std::move(label)});
}

TEST_F(Memory, OnePoolBlockHoldsASmallPlan) {
  const ModelFile model({1});
  Plan plan;
  for (int i = 0; i < 100; ++i) make(plan, Space::device, 1000);
  const StorageReader reader(model.graph());
  VulkanMachine machine(device(), reader, plan);
  const Timeline measured = run(plan, machine);
  EXPECT_EQ((*measured.reserved_peak)[index(Space::device)], 100u * 1024);
  EXPECT_EQ((*measured.reserved_peak)[index(Space::staging)], 0u);
}

TEST_F(Memory, PoolsReturnAllButOneEmptyBlock) {
  if (device().info().type != DeviceType::cpu) GTEST_SKIP() << "other drivers round allocations up";
  MemoryPool pool(device(), MemoryUse::device, {1 << 20, {}});
  const Allocation a = pool.allocate(1 << 20), b = pool.allocate(1 << 20), c = pool.allocate(3 << 20);
  EXPECT_EQ(pool.reserved(), 5u << 20);
  pool.free(c);
  EXPECT_EQ(pool.reserved(), 5u << 20);  // kept, in case it is needed again
  pool.free(a);
  EXPECT_EQ(pool.reserved(), 2u << 20);  // one empty block is enough
  const Allocation d = pool.allocate(2 << 20);
  EXPECT_EQ(pool.reserved(), 3u << 20);  // and one too small goes first
  pool.free(b);
  pool.free(d);
  EXPECT_LE(pool.reserved(), 2u << 20);
}

TEST_F(Memory, PoolsRefuseMoreThanOneAllocationMayHold) {
  MemoryPool pool(device(), MemoryUse::device, {1 << 20, {}});
  try {
    pool.allocate(device().info().max_allocation + 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::gpu);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(device().info().max_allocation + 1)));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(largest_piece(device().info(), pool.alignment()))));
  }
  EXPECT_EQ(pool.reserved(), 0u);
}

TEST_F(Memory, APlanThatDoesNotFitIsRefusedBeforeAnythingIsTaken) {
  const ModelFile model({1});
  Plan plan;
  for (int i = 0; i < 1024; ++i) make(plan, Space::device, 1ull << 40);
  const StorageReader reader(model.graph());
  try {
    const VulkanMachine machine(device(), reader, plan);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_fit);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(1ull << 50)));
  }
}

// Asks to stop after some copies.
class StopAfter final : public Machine {
 public:
  StopAfter(Machine& machine, std::stop_source& stop, int copies)
      : machine_(machine), stop_(stop), left_(copies) {}
  void alloc(BlockId id, const Block& block) override { machine_.alloc(id, block); }
  void copy(const Step& step, const Block& to) override {
    machine_.copy(step, to);
    if (--left_ == 0) stop_.request_stop();
  }
  void free(BlockId id, const Block& block) override { machine_.free(id, block); }
  double now() const override { return machine_.now(); }
  void drain() override { machine_.drain(); }

 private:
  Machine& machine_;
  std::stop_source& stop_;
  int left_;
};

// The layer names every object that still exists when its device is destroyed.
TEST_F(Memory, CancelledAnywhereNothingIsLeft) {
  const ModelFile model(std::vector<std::uint64_t>(12, 100'000));
  const LoadInputs options{.request = {.staging_bytes = 4 * 8192, .slots = 4, .activation_bytes = 4096}};
  for (const Method& method : methods()) {
    const Plan plan = make_plan(*model.graph(), method, find_order("file").make(*model.graph()), options);
    for (const int copies : {1, 7, 12}) {
      std::shared_ptr<const MessageLog> log;
      {
        const Device own({.wanted = {}, .validation = validation()});
        log = own.log();
        const StorageReader reader(model.graph());
        VulkanMachine machine(own, reader, plan);
        std::stop_source stop;
        StopAfter stopping(machine, stop, copies);
        Progress progress(stop.get_token());
        EXPECT_THROW(run(plan, stopping, progress), Error) << method.id;
      }
      EXPECT_THAT(log->messages(), ::testing::IsEmpty()) << method.id;
    }
  }
}

// A file that shrinks under a mapping gives an Error, not a signal.
TEST_F(Memory, AFileThatShrinksIsAnError) {
  const ModelFile model({1 << 20});
  Plan plan;
  const BlockId mapped = alloc(
      plan, {.space = Space::page_cache, .bytes = 1 << 20, .use = {}, .storage = StorageId{0}, .label = {}});
  copy(plan, mapped, 0, StorageId{0}, 0, 1 << 20);
  const BlockId block = make(plan, Space::device, 1 << 20);
  const StorageReader reader(model.graph());
  VulkanMachine machine(device(), reader, plan);
  run(plan, machine);
  ASSERT_EQ(::truncate(model.path().c_str(), 4096), 0);
  const Step step = {
      .verb = Verb::copy, .block = block, .from = mapped, .offset = 0, .from_offset = 0, .bytes = 1 << 20};
  EXPECT_THROW(machine.copy(step, plan.block(block)), Error);
}

}  // namespace
}  // namespace loadline::gpu
