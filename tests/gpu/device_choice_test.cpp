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

constexpr QueueFamily kAll{.index = 0, .computes = true, .draws = true};
constexpr QueueFamily kCompute{.index = 1, .computes = true};
constexpr QueueFamily kCopies{.index = 2, .only_copies = true};
constexpr QueueFamily kVideo{.index = 3};

TEST(QueueChoice, CopyEngineThenComputeThenAny) {
  EXPECT_EQ(choose_queue_family(std::vector{kAll, kCompute, kCopies, kVideo}, false), 2u);
  EXPECT_EQ(choose_queue_family(std::vector{kAll, kCompute}, false), 1u);
  EXPECT_EQ(choose_queue_family(std::vector{kAll, kVideo}, false), 1u);
  EXPECT_EQ(choose_queue_family(std::vector{kAll}, false), 0u);
  EXPECT_EQ(choose_queue_family({}, false), std::nullopt);
}

TEST(QueueChoice, ShadersNeedAFamilyThatComputes) {
  EXPECT_EQ(choose_queue_family(std::vector{kCopies, kAll, kCompute}, true), 2u);
  EXPECT_EQ(choose_queue_family(std::vector{kCopies, kVideo}, true), std::nullopt);
  EXPECT_EQ(choose_queue_family(std::vector{kAll, kCompute, kCopies}, true, {{0, 3e9}, {1, 2e9}, {2, 9e9}}),
            0u);
}

TEST(QueueChoice, AMeasurementDecidesWhereItIsClear) {
  const std::vector families{kAll, kCompute, kCopies};
  EXPECT_EQ(choose_queue_family(families, false, {{0, 24e9}, {1, 20e9}, {2, 12e9}}), 0u);
  EXPECT_EQ(choose_queue_family(families, false, {{0, 24e9}, {1, 20e9}, {2, 23.5e9}}), 2u);  // within 5 %
  EXPECT_EQ(choose_queue_family(families, false, {{0, 24e9}, {1, 20e9}, {2, 25e9}}), 2u);
  // not comparable: the family that its kind recommends was not measured
  EXPECT_EQ(choose_queue_family(families, false, {{0, 24e9}}), 2u);
  EXPECT_EQ(choose_queue_family(families, false, {{7, 24e9}, {2, 1e9}}), 2u);
}

}  // namespace
}  // namespace loadline::gpu
