// Opens the device once and compares the layer's messages before and after each test.
#include "tests/gpu/device_test.h"

#include "core/base/error.h"

#include <cstdlib>

namespace loadline::gpu {

std::string missing_driver() {
  static const std::string missing = [] {
    try {
      list_devices();
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  }();
  return missing;
}

bool validation() {
  static const bool on = [] {
    if (std::getenv("LOADLINE_TEST_WITHOUT_LAYER") == nullptr) return true;
    try {
      const Instance instance(true);
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  return on;
}

const Device* DeviceTest::shared() {
  static const Device device({.wanted = {}, .validation = validation()});
  return &device;
}

void DeviceTest::SetUp() {
  if (!missing_driver().empty()) GTEST_SKIP() << missing_driver();
  messages_before_ = device().log()->messages().size();
}

void DeviceTest::TearDown() {
  if (!missing_driver().empty()) return;
  const std::vector<std::string> messages = device().log()->messages();
  for (std::size_t i = messages_before_; i < messages.size(); ++i) ADD_FAILURE() << messages[i];
}

}  // namespace loadline::gpu
