// Which device is chosen, and what is said about each.
#include "core/base/error.h"
#include "core/gpu/device.h"
#include "core/gpu/device_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceInfo make(std::size_t index, std::string name, DeviceType type, std::uint64_t gib) {
  DeviceInfo device;
  device.index = index;
  device.name = std::move(name);
  device.type = type;
  device.api_version = {1, 3, 0};
  device.heaps = {{.bytes = gib << 30, .device_local = true}};
  device.timeline_semaphore = true;
  return device;
}

const std::vector<DeviceInfo>& four() {
  static const std::vector<DeviceInfo> devices = {
      make(0, "llvmpipe (LLVM 15.0.6, 256 bits)", DeviceType::cpu, 2),
      make(1, "Intel(R) UHD Graphics", DeviceType::integrated, 30),
      make(2, "Radeon RX 7600", DeviceType::discrete, 8),
      make(3, "Radeon RX 7900 XTX", DeviceType::discrete, 24),
  };
  return devices;
}

TEST(DeviceChoice, PrefersTheKindThenTheLargerMemory) {
  const DeviceChoice choice = choose_device(four());
  ASSERT_EQ(choice.chosen, 3u);
  EXPECT_THAT(choice.reasons[0], ElementsAre("a CPU that plays a GPU comes after a discrete GPU"));
  EXPECT_THAT(choice.reasons[1], ElementsAre("an integrated GPU comes after a discrete GPU"));
  EXPECT_THAT(choice.reasons[2], ElementsAre("its memory of 8.00 GiB is less than 24.00 GiB"));
  EXPECT_THAT(choice.reasons[3], ElementsAre("a discrete GPU with 24.00 GiB of memory"));
}

TEST(DeviceChoice, EqualDevicesGoByTheirOrder) {
  const std::vector<DeviceInfo> twins = {make(0, "A", DeviceType::discrete, 8),
                                         make(1, "B", DeviceType::discrete, 8)};
  const DeviceChoice choice = choose_device(twins);
  EXPECT_EQ(choice.chosen, 0u);
  EXPECT_THAT(choice.reasons[1], ElementsAre("as good as device 0, which is listed before it"));
}

TEST(DeviceChoice, AnIndexIsNotAPartOfAName) {
  EXPECT_EQ(choose_device(four(), "1").chosen, 1u);
  EXPECT_EQ(choose_device(four(), "0").chosen, 0u);
  EXPECT_EQ(choose_device(four(), "7").chosen, std::nullopt);  // although "RX 7600" has a 7
}

TEST(DeviceChoice, ANamePartInAnyCaseTakesTheBestThatHasIt) {
  EXPECT_EQ(choose_device(four(), "radeon").chosen, 3u);
  EXPECT_EQ(choose_device(four(), "rx 7600").chosen, 2u);
  const DeviceChoice choice = choose_device(four(), "LLVMpipe");
  EXPECT_EQ(choice.chosen, 0u);
  EXPECT_THAT(choice.reasons[0], ElementsAre("asked for"));
  EXPECT_THAT(choice.reasons[3], ElementsAre("not the one asked for"));
}

TEST(DeviceChoice, NamesWhatADeviceLacks) {
  std::vector<DeviceInfo> devices = four();
  devices[3].timeline_semaphore = false;
  devices[2].api_version = {1, 1, 126};
  devices[1].heaps.clear();
  const DeviceChoice choice = choose_device(devices);
  EXPECT_EQ(choice.chosen, 0u);
  EXPECT_THAT(choice.reasons[0], ElementsAre("the only device that can be used"));
  EXPECT_THAT(choice.reasons[1], ElementsAre("has no device memory"));
  EXPECT_THAT(choice.reasons[2], ElementsAre("offers Vulkan 1.1.126, 1.2 is needed"));
  EXPECT_THAT(choice.reasons[3], ElementsAre("has no timeline semaphores"));
}

TEST(DeviceChoice, AnUnusableDeviceIsNotChosenEvenWhenAskedFor) {
  std::vector<DeviceInfo> devices = four();
  devices[3].timeline_semaphore = false;
  EXPECT_EQ(choose_device(devices, "3").chosen, std::nullopt);
  EXPECT_THAT(choose_device(devices, "3").reasons[3], ElementsAre("has no timeline semaphores"));
}

TEST(DeviceChoice, NoDevices) { EXPECT_EQ(choose_device({}).chosen, std::nullopt); }

TEST(DeviceChoice, ASoftwareDeviceSaysWhoseMemoryItHas) {
  std::vector<DeviceInfo> devices = {four()[0]};
  devices[0].heaps[0].budget = 20ull << 30;
  EXPECT_THAT(
      choose_device(devices).reasons[0],
      ElementsAre("the only device that can be used", "its memory is the system's: 20.00 GiB available"));
}

TEST(DeviceChoice, TheLargestLocalHeapIsTheDevices) {
  DeviceInfo device = make(0, "A", DeviceType::discrete, 8);
  device.heaps = {{.bytes = 64ull << 30},
                  {.bytes = 1 << 28, .device_local = true},
                  {.bytes = 8ull << 30, .device_local = true}};
  EXPECT_EQ(device_heap(device)->bytes, 8ull << 30);
  device.heaps.resize(1);
  EXPECT_EQ(device_heap(device), nullptr);
}

VkQueueFamilyProperties family(VkQueueFlags flags, std::uint32_t count = 1) {
  VkQueueFamilyProperties properties = {};
  properties.queueFlags = flags;
  properties.queueCount = count;
  return properties;
}

TEST(QueueChoice, CopyEngineThenComputeThenAny) {
  const auto all = family(VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT);
  const auto compute = family(VK_QUEUE_COMPUTE_BIT);
  const auto copies = family(VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT);
  const auto video = family(VK_QUEUE_TRANSFER_BIT | 0x20);
  EXPECT_EQ(choose_queue_family(std::vector{all, compute, copies, video}), 2u);
  EXPECT_EQ(choose_queue_family(std::vector{all, compute}), 1u);
  EXPECT_EQ(choose_queue_family(std::vector{all, video}), 1u);
  EXPECT_EQ(choose_queue_family(std::vector{all}), 0u);
  EXPECT_EQ(choose_queue_family(std::vector{family(VK_QUEUE_TRANSFER_BIT, 0), all}), 1u);
  EXPECT_THROW(choose_queue_family(std::vector{family(VK_QUEUE_SPARSE_BINDING_BIT)}), Error);
}

}  // namespace
}  // namespace loadline::gpu
