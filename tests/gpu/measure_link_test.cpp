// Rates of a device, measured under validation.
#include "core/gpu/measure_link.h"

#include "core/base/error.h"
#include "tests/gpu/device_test.h"

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

TEST_F(MeasureLink, ComparesTheQueuesOfADeviceWithSeveral) {
  MeasuredRates rates;
  Progress progress;
  measure_device({}, 3 << 20, rates, progress);
  const Device chosen{DeviceOptions{}};
  const std::size_t families = chosen.info().queues.size();
  ASSERT_GT(families, 0u);
  EXPECT_EQ(rates.queues.size(), families == 1 ? 0 : families);
  EXPECT_EQ(queue_rates(rates).device, chosen.info().name);
  EXPECT_EQ(queue_rates(rates).rates, rates.queues);
  EXPECT_TRUE(queue_rates({}).rates.empty());
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
