// The layer is really on: it must complain when a barrier is left out, or the other tests prove nothing.
#include "core/gpu/device_memory.h"
#include "tests/gpu/device_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

class Validation : public DeviceTest {
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && !validation()) GTEST_SKIP() << "the Vulkan validation layer is not installed";
  }
};
using Devices = DeviceTest;

// Two command buffers on a device of their own, without any barrier.
class Recorder {
 public:
  Recorder()
      : device_({.wanted = {}, .validation = true}), memory_(device_, MemoryUse::device, {1 << 16, {}}) {
    VkCommandPoolCreateInfo pool = {};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.queueFamilyIndex = device_.queue_family();
    VkCommandPool made = VK_NULL_HANDLE;
    check(vkCreateCommandPool(device_.get(), &pool, nullptr, &made), "create a command pool");
    pool_ = UniqueCommandPool(device_.get(), made);
    a_ = memory_.allocate(4096);
    b_ = memory_.allocate(4096);
  }
  ~Recorder() { vkDeviceWaitIdle(device_.get()); }

  VkCommandBuffer begin() {
    VkCommandBufferAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_.get();
    info.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    check(vkAllocateCommandBuffers(device_.get(), &info, &commands), "allocate a command buffer");
    VkCommandBufferBeginInfo start = {};
    start.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    check(vkBeginCommandBuffer(commands, &start), "begin a command buffer");
    return commands;
  }
  void copy(VkCommandBuffer commands, const Allocation& from, const Allocation& to) {
    const VkBufferCopy region = {from.range.offset, to.range.offset, 4096};
    vkCmdCopyBuffer(commands, from.range.buffer, to.range.buffer, 1, &region);
  }
  void submit(VkCommandBuffer commands) {
    check(vkEndCommandBuffer(commands), "end a command buffer");
    VkSubmitInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    check(vkQueueSubmit(device_.queue(), 1, &info, VK_NULL_HANDLE), "submit");
  }
  const Allocation& a() const { return a_; }
  const Allocation& b() const { return b_; }
  std::vector<std::string> messages() const { return device_.log()->messages(); }

 private:
  Device device_;
  MemoryPool memory_;
  UniqueCommandPool pool_;
  Allocation a_, b_;
};

TEST_F(Validation, SeesAHazardInsideACommandBuffer) {
  Recorder recorder;
  const VkCommandBuffer commands = recorder.begin();
  recorder.copy(commands, recorder.a(), recorder.b());
  recorder.copy(commands, recorder.b(), recorder.a());
  EXPECT_THAT(recorder.messages(), ::testing::Contains(::testing::HasSubstr("SYNC-HAZARD")));
}

TEST_F(Validation, SeesAHazardBetweenSubmissions) {
  Recorder recorder;
  const VkCommandBuffer first = recorder.begin();
  recorder.copy(first, recorder.a(), recorder.b());
  recorder.submit(first);
  const VkCommandBuffer second = recorder.begin();
  recorder.copy(second, recorder.b(), recorder.a());
  EXPECT_THAT(recorder.messages(), ::testing::IsEmpty());
  recorder.submit(second);
  EXPECT_THAT(recorder.messages(), ::testing::Contains(::testing::HasSubstr("SYNC-HAZARD")));
}

TEST_F(Validation, SeesWhatIsNotDestroyed) {
  std::shared_ptr<const MessageLog> log;
  {
    const Device own({.wanted = {}, .validation = true});
    log = own.log();
    VkFenceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    VkFence forgotten = VK_NULL_HANDLE;
    check(vkCreateFence(own.get(), &info, nullptr, &forgotten), "create a fence");
  }
  EXPECT_THAT(log->messages(), ::testing::Contains(::testing::HasSubstr("VkFence")));
}

TEST_F(Devices, AreDescribed) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  for (const DeviceInfo& info : devices) {
    EXPECT_FALSE(info.name.empty());
    EXPECT_FALSE(info.heaps.empty());
    EXPECT_TRUE(info.type != DeviceType::cpu || info.heaps[0].budget.has_value());
  }
}

}  // namespace
}  // namespace loadline::gpu
