// Rates of a device, measured under validation.
#include "core/gpu/measure_link.h"

#include "core/base/error.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/injected.h"

#include <cmath>
#include <stop_token>

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

class MeasureLink : public DeviceTest {};

TEST_F(MeasureLink, GivesEveryRateOfTheDevice) {
  MeasuredRates rates;
  Progress progress;
  measure_link(device(), 3 << 20, rates, progress);
  EXPECT_EQ(rates.device, device().info().name);
  for (const RateRow& row : rate_rows()) {
    ASSERT_EQ(rates.values.contains(row.key), row.of_device) << row.key;
    if (!row.of_device) continue;
    const double value = rates.values.find(row.key)->second;
    EXPECT_TRUE(std::isfinite(value) && value > row.least && value < row.most) << row.key << " " << value;
  }
}

TEST_F(MeasureLink, EndsWhenAskedAndWhereThereIsNoRoom) {
  MeasuredRates rates;
  std::stop_source source;
  source.request_stop();
  Progress stopped(source.get_token()), progress;
  const auto code = [&](std::uint64_t bytes, Progress& with) {
    try {
      measure_link(device(), bytes, rates, with);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::usage;
  };
  EXPECT_EQ(code(1 << 20, stopped), ErrorCode::cancelled);
  EXPECT_EQ(code(std::uint64_t{1} << 50, progress), ErrorCode::no_fit);
}

TEST_F(MeasureLink, OfADeviceWithOneFamilyOfQueuesComparesNone) {
  if (device().info().queues.size() > 1) GTEST_SKIP() << "the device has several";
  MeasuredRates rates;
  Progress progress;
  measure_device({}, 3 << 20, rates, progress);
  EXPECT_TRUE(rates.queues.empty());
  EXPECT_EQ(queue_rates(rates).device, device().info().name);
  EXPECT_TRUE(queue_rates({}).rates.empty());
}

// The second and third family are the first by other names.
TEST_F(MeasureLink, ComparesTheQueuesOfADeviceWithSeveral) {
  if (device().info().queues.size() > 1) GTEST_SKIP() << "the device has several of its own";
  inject_queue_families({VK_QUEUE_TRANSFER_BIT, VK_QUEUE_TRANSFER_BIT | 0x20});
  MeasuredRates rates;
  Progress progress;
  measure_device({}, 3 << 20, rates, progress);
  const std::string first = queue_family_key(Device(DeviceOptions{}).info().queues.front());
  ASSERT_EQ(rates.queues.size(), 2u) << "none for the family of decoders";
  EXPECT_GT(rates.queues.at("1 only copies"), 0);
  EXPECT_GT(rates.queues.at(first), 0);
  for (const auto& [fast, family] : {std::pair(std::string("1 only copies"), 1u), std::pair(first, 0u)}) {
    DeviceOptions options;
    options.queue_rates = queue_rates(rates);
    for (auto& [key, rate] : options.queue_rates.rates) rate = key == fast ? 9e9 : 1e9;
    const Device chosen(options);
    EXPECT_EQ(chosen.queue_family(), family);
    EXPECT_EQ(chosen.measured_link(), 9e9);
    options.queue_rates.device = "another";
    const Device unmeasured(options);
    EXPECT_EQ(unmeasured.queue_family(), 1u);
    EXPECT_EQ(unmeasured.measured_link(), std::nullopt);
  }
  // a family that fails is left out, and the rates of the others stay
  inject_queue_families({VK_QUEUE_TRANSFER_BIT}, 1);
  rates = {};
  EXPECT_THROW(measure_device({}, 3 << 20, rates, progress), Error);  // the load itself would take it
  EXPECT_TRUE(rates.values.empty());
  DeviceOptions shaders;
  shaders.shaders = true;
  measure_device(shaders, 3 << 20, rates, progress);
  EXPECT_EQ(rates.queues.size(), 1u);
  EXPECT_TRUE(rates.values.contains("link"));
  inject_queue_families({});
}

TEST_F(MeasureLink, ADeviceOpensOnAnyOfItsQueues) {
  const DeviceInfo info = device().info();
  for (const QueueFamily& family : info.queues) {
    const Device opened(
        {.wanted = "", .validation = false, .shaders = false, .queues = {family.index}, .queue_rates = {}});
    EXPECT_EQ(opened.queue_family(), family.index);
  }
  try {
    const Device none(
        {.wanted = "", .validation = false, .shaders = false, .queues = {999}, .queue_rates = {}});
    FAIL() << "there is no family 999";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::gpu);
  }
}

}  // namespace
}  // namespace loadline::gpu
