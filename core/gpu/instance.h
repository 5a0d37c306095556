// A Vulkan instance with an optional validation layer, and queries about its physical devices.
#pragma once

#include "core/gpu/device_info.h"
#include "core/gpu/vulkan_handle.h"

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace loadline::gpu {

// Warnings and errors of the validation layer, in order. The layer may call from any thread.
class MessageLog {
 public:
  void add(std::string message);
  std::vector<std::string> messages() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

struct DestroyMessenger {
  VkInstance instance = VK_NULL_HANDLE;
  void operator()(VkDebugUtilsMessengerEXT messenger) const;
};

// Can be moved, not assigned.
class Instance {
 public:
  // With `validation`: core and synchronization checks of VK_LAYER_KHRONOS_validation. Throws
  // Error{gpu} naming the Debian package when the layer, or every driver, is missing.
  explicit Instance(bool validation);
  Instance(Instance&&) noexcept = default;
  Instance& operator=(Instance&&) = delete;  // would destroy an instance before its messenger

  VkInstance get() const { return instance_.get(); }
  std::vector<VkPhysicalDevice> physical_devices() const;
  // Warnings and errors of the validation layer. The log outlives the instance: the last messages name
  // objects that were not destroyed before the instance.
  std::shared_ptr<const MessageLog> log() const { return log_; }

 private:
  using UniqueMessenger = std::unique_ptr<std::remove_pointer_t<VkDebugUtilsMessengerEXT>, DestroyMessenger>;
  void listen();

  std::shared_ptr<MessageLog> log_ = std::make_shared<MessageLog>();  // the layer holds its address
  UniqueInstance instance_;
  UniqueMessenger messenger_;
};

DeviceInfo describe_device(VkPhysicalDevice device, std::size_t index);
// Those that can copy.
std::vector<QueueFamily> queue_families(std::span<const VkQueueFamilyProperties> families);

// Bytes of a heap that this process may use, and that it uses. Only for devices with VK_EXT_memory_budget.
struct HeapUse {
  std::uint64_t budget = 0;
  std::uint64_t used = 0;
};
std::vector<HeapUse> heap_use(VkPhysicalDevice device);

}  // namespace loadline::gpu
