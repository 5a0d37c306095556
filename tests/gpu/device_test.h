// The device that the tests share, and how a program runs them.
#pragma once

#include "core/gpu/device.h"

#include <cstddef>
#include <string>

#include <gtest/gtest.h>

namespace loadline::gpu {

// --- The device that the tests share.

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

// --- Runs the GPU tests of the program that this is linked into.

// The manifest of Mesa's software driver; "" where it is not installed.
std::string software_driver();

// Flags are GoogleTest's. Without a driver chosen by VK_ICD_FILENAMES the tests run on the software driver if
// it is installed; with LOADLINE_TEST_ANY_GPU in the environment, on the machine's best device. With
// LOADLINE_TEST_WITHOUT_LAYER they also run where the validation layer is not installed; tests of the layer
// itself are skipped then. Returns the exit code.
int run_tests(int argc, char** argv);

}  // namespace loadline::gpu
