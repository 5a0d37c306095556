// An open device: instance, logical device and the one queue that moves bytes.
#pragma once

#include "core/gpu/device_info.h"
#include "core/gpu/instance.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace loadline::gpu {

struct DeviceOptions {
  std::string wanted = {};  // index or part of a name; empty = the best
  bool validation = false;  // load the validation layer and keep what it says
};

// Can be moved, not assigned. Has an instance of its own, so that losing it takes nothing else down. Used
// from one thread at a time. Throws Error{gpu} when no device can be used, Error{usage} that lists the
// devices when none is the one asked for.
class Device {
 public:
  explicit Device(const DeviceOptions& options);
  Device(Device&&) noexcept = default;
  Device& operator=(Device&&) = delete;

  const DeviceInfo& info() const { return info_; }
  const std::vector<std::string>& reasons() const { return reasons_; }
  // What the validation layer says; may be kept and read after the device is gone.
  std::shared_ptr<const MessageLog> log() const { return instance_.log(); }

  VkDevice get() const { return device_.get(); }
  VkPhysicalDevice physical() const { return physical_; }
  VkQueue queue() const { return queue_; }
  std::uint32_t queue_family() const { return queue_family_; }
  const VkPhysicalDeviceMemoryProperties& memory() const { return memory_; }
  const VkPhysicalDeviceLimits& limits() const { return limits_; }

 private:
  void create_device();

  Instance instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  DeviceInfo info_;
  std::vector<std::string> reasons_;
  VkPhysicalDeviceMemoryProperties memory_ = {};
  VkPhysicalDeviceLimits limits_ = {};
  UniqueDevice device_;
  std::uint32_t queue_family_ = 0;
  VkQueue queue_ = VK_NULL_HANDLE;
};

// The family for copies: one that does nothing else (a copy engine of its own), else one without
// graphics, else any. Throws Error{gpu} when no family can copy.
std::uint32_t choose_queue_family(std::span<const VkQueueFamilyProperties> families);

}  // namespace loadline::gpu
