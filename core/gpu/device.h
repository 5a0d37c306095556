// Owning handles of Vulkan objects, the instance with its validation layer, an open device with its queue.
#pragma once

#include "core/gpu/device_info.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vulkan/vulkan.h>

namespace loadline::gpu {

// --- Owning handles of Vulkan objects; Vulkan result codes as errors.

// The name in the specification: "VK_ERROR_DEVICE_LOST".
std::string_view result_name(VkResult result);

// Throws Error{gpu} unless `result` is a success. The message names the result and the action, `what`.
void check(VkResult result, std::string_view what);

// A Vulkan structure with sType and pNext set and zeros everywhere else.
template <typename T>
T vulkan_struct(VkStructureType type, void* next = nullptr) {
  T made = {};
  made.sType = type;
  made.pNext = next;
  return made;
}

// All items that a Vulkan enumeration `list(&count, items)` gives. `what` names the action in errors.
template <typename T, typename List>
std::vector<T> list_all(std::string_view what, List list) {
  std::uint32_t count = 0;
  check(list(&count, nullptr), what);
  std::vector<T> items(count);
  check(list(&count, items.data()), what);
  items.resize(count);
  return items;
}

struct DestroyInstance {
  void operator()(VkInstance instance) const { vkDestroyInstance(instance, nullptr); }
};
struct DestroyDevice {
  void operator()(VkDevice device) const { vkDestroyDevice(device, nullptr); }
};
using UniqueInstance = std::unique_ptr<std::remove_pointer_t<VkInstance>, DestroyInstance>;
using UniqueDevice = std::unique_ptr<std::remove_pointer_t<VkDevice>, DestroyDevice>;

// An object that belongs to a VkDevice. The device must outlive it.
template <typename T, auto Destroy>
class DeviceObject {
 public:
  DeviceObject() = default;
  DeviceObject(VkDevice device, T object) : device_(device), object_(object) {}
  // Throws as check() does if `create` fails.
  template <typename Create, typename Info>
  DeviceObject(VkDevice device, Create create, const Info& info, std::string_view what) : device_(device) {
    check(create(device, &info, nullptr, &object_), what);
  }
  DeviceObject(DeviceObject&& other) noexcept
      : device_(other.device_), object_(std::exchange(other.object_, T{VK_NULL_HANDLE})) {}
  DeviceObject& operator=(DeviceObject&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~DeviceObject() {
    if (object_ != T{VK_NULL_HANDLE}) Destroy(device_, object_, nullptr);
  }

  T get() const { return object_; }

 private:
  VkDevice device_ = VK_NULL_HANDLE;
  T object_ = VK_NULL_HANDLE;
};

using UniqueBuffer = DeviceObject<VkBuffer, &vkDestroyBuffer>;
using UniqueMemory = DeviceObject<VkDeviceMemory, &vkFreeMemory>;
using UniqueSemaphore = DeviceObject<VkSemaphore, &vkDestroySemaphore>;
using UniqueCommandPool = DeviceObject<VkCommandPool, &vkDestroyCommandPool>;

using UniqueShaderModule = DeviceObject<VkShaderModule, &vkDestroyShaderModule>;
using UniquePipelineLayout = DeviceObject<VkPipelineLayout, &vkDestroyPipelineLayout>;
using UniquePipeline = DeviceObject<VkPipeline, &vkDestroyPipeline>;

// --- A Vulkan instance with an optional validation layer, and queries about its physical devices.

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

// --- An open device: instance, logical device and the one queue that moves bytes.

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
