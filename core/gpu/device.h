// An open device: instance, logical device and the one queue that moves bytes.
#pragma once

#include "core/gpu/device_info.h"
#include "core/gpu/instance.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gpu {

struct DeviceOptions {
  std::string wanted = {};  // index or part of a name; empty = the best
  bool validation = false;  // load the validation layer and keep its messages
  bool shaders = false;     // the queue also runs the shaders that pack weights
  // Families of queues to consider, by QueueFamily::index; empty: all.
  std::vector<std::uint32_t> queues = {};
  QueueRates queue_rates = {};  // decides between them; used only for the device of that name
};

// Can be moved, not assigned. Each Device has its own Vulkan instance, so a lost device affects nothing else.
// Use it from one thread at a time. Throws Error{gpu} if no device can be used, and Error{usage} listing the
// devices if none matches `wanted`; Error{unsupported} if it cannot run the shaders that are asked for.
class Device {
 public:
  explicit Device(const DeviceOptions& options);
  Device(Device&&) noexcept = default;
  Device& operator=(Device&&) = delete;

  const DeviceInfo& info() const { return info_; }
  const std::vector<std::string>& reasons() const { return reasons_; }
  // The validation layer's messages. The log may be read after the device is destroyed.
  std::shared_ptr<const MessageLog> log() const { return instance_.log(); }

  VkDevice get() const { return device_.get(); }
  VkPhysicalDevice physical() const { return physical_; }
  VkQueue queue() const { return queue_; }
  bool shaders() const { return shaders_; }
  // What address and size of imported host memory must be multiples of; 0 if the device imports none.
  std::uint64_t import_alignment() const { return import_alignment_; }
  std::uint32_t queue_family() const { return queue_kind_.index; }
  const QueueFamily& queue_kind() const { return queue_kind_; }
  // Of that family, from DeviceOptions::queue_rates.
  std::optional<double> measured_link() const { return measured_link_; }
  const VkPhysicalDeviceMemoryProperties& memory() const { return memory_; }
  const VkPhysicalDeviceLimits& limits() const { return limits_; }

 private:
  void choose_queue(const DeviceOptions& options);
  void create_device();

  bool shaders_ = false;
  std::uint64_t import_alignment_ = 0;
  Instance instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  DeviceInfo info_;
  std::vector<std::string> reasons_;
  VkPhysicalDeviceMemoryProperties memory_ = {};
  VkPhysicalDeviceLimits limits_ = {};
  UniqueDevice device_;
  QueueFamily queue_kind_ = {};
  std::optional<double> measured_link_ = {};
  VkQueue queue_ = VK_NULL_HANDLE;
};

}  // namespace loadline::gpu
