// Random valid plans: the device ends with what a plain simulation says, whatever the order of copies.
#include "tests/gpu/device_test.h"
#include "tests/gpu/machine_check.h"
#include "tests/gpu/model_file.h"
#include "tests/support/random_plans.h"

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

class RandomPlans : public DeviceTest, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(RandomPlans, EndAsTheSimulationSays) {
  const std::uint32_t seed = GetParam();
  const ModelFile model({1, 4096, 70'000, 123'457, 5'000'000}, seed);
  const Plan plan = testing::random_plan(*model.graph(), seed, 300);
  expect_as_simulated(device(), plan, model);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, ::testing::Range(1u, 41u));

}  // namespace
}  // namespace loadline::gpu
