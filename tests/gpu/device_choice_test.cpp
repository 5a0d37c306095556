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
const auto kAll = family(VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT);
const auto kCompute = family(VK_QUEUE_COMPUTE_BIT);
const auto kCopies = family(VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT);
const auto kVideo = family(VK_QUEUE_TRANSFER_BIT | 0x20);

// The index of the family; absent if none can be used.
std::optional<std::uint32_t> chosen(const std::vector<VkQueueFamilyProperties>& families,
                                    bool computes = false, const LinkRates& rates = {}) {
  const std::vector<QueueFamily> queues = queue_families(families);
  const auto at = choose_queue_family(queues, computes, rates);
  return at ? std::optional(queues[*at].index) : std::nullopt;
}

TEST(QueueChoice, CopyEngineThenComputeThenAny) {
  EXPECT_EQ(chosen({kAll, kCompute, kCopies, kVideo}), 2u);
  EXPECT_EQ(chosen({kAll, kCompute}), 1u);
  EXPECT_EQ(chosen({kAll, kVideo}), 0u);
  EXPECT_EQ(chosen({kVideo}), 0u);
  EXPECT_EQ(chosen({family(VK_QUEUE_TRANSFER_BIT, 0), kAll}), 1u);
  EXPECT_EQ(chosen({family(VK_QUEUE_SPARSE_BINDING_BIT)}), std::nullopt);
}

TEST(QueueChoice, ShadersNeedAFamilyThatComputes) {
  EXPECT_EQ(chosen({kCopies, kAll, kCompute}, true), 2u);
  EXPECT_EQ(chosen({kCopies, kVideo}, true), std::nullopt);
  EXPECT_EQ(chosen({kAll, kCompute, kCopies}, true,
                   {{"0 draws and computes", 3e9}, {"1 computes", 2e9}, {"2 only copies", 9e9}}),
            0u);
}

TEST(QueueChoice, AMeasurementDecidesWhereItIsClear) {
  const auto with = [](double all, double copies) {
    return chosen({kAll, kCompute, kCopies}, false,
                  {{"0 draws and computes", all}, {"1 computes", 20e9}, {"2 only copies", copies}});
  };
  EXPECT_EQ(with(24e9, 12e9), 0u);
  EXPECT_EQ(with(24e9, 23.5e9), 2u);  // within 5 %
  EXPECT_EQ(with(24e9, 25e9), 2u);
  // not comparable: the family that its kind recommends was not measured
  EXPECT_EQ(chosen({kAll, kCopies}, false, {{"0 draws and computes", 24e9}}), 1u);
  // another driver numbers them in another way
  EXPECT_EQ(chosen({kAll, kCopies}, false, {{"0 only copies", 24e9}, {"1 only copies", 1e9}}), 1u);
}

}  // namespace
}  // namespace loadline::gpu
