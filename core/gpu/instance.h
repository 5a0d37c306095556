// A Vulkan instance with an optional validation layer, and what it says about its devices.
#pragma once

#include "core/gpu/device_info.h"
#include "core/gpu/vulkan_handle.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace loadline::gpu {

// Warnings and errors of the validation layer, in order; filled from whatever thread it calls on.
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
  // Warnings and errors of the validation layer. Outlives the instance: what was not destroyed before it
  // is reported last.
  std::shared_ptr<const MessageLog> log() const { return log_; }

 private:
  using UniqueMessenger = std::unique_ptr<std::remove_pointer_t<VkDebugUtilsMessengerEXT>, DestroyMessenger>;
  void listen();

  std::shared_ptr<MessageLog> log_ = std::make_shared<MessageLog>();  // its address is the layer's
  UniqueInstance instance_;
  UniqueMessenger messenger_;
};

DeviceInfo describe_device(VkPhysicalDevice device, std::size_t index);

// Per heap what this process may use and what it uses. Only on a device with VK_EXT_memory_budget.
struct HeapUse {
  std::uint64_t budget = 0;
  std::uint64_t used = 0;
};
std::vector<HeapUse> heap_use(VkPhysicalDevice device);

}  // namespace loadline::gpu
