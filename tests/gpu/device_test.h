// The device that the tests share.
#pragma once

#include "core/gpu/device.h"

#include <cstddef>
#include <string>

#include <gtest/gtest.h>

namespace loadline::gpu {

// Gives each test a device with validation, and fails it on any message. Skips where no driver is.
// The device is opened once for all tests: that takes longer than most of them.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  const Device& device() const { return *shared(); }

 private:
  static const Device* shared();
  std::size_t messages_before_ = 0;
};

// Whether devices are opened with the validation layer: run_tests() says when they are not.
bool validation();

// Why no Vulkan driver can be used; "" when one can.
std::string missing_driver();

}  // namespace loadline::gpu
