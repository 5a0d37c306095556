// Owning handles of Vulkan objects; Vulkan result codes as errors.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vulkan/vulkan.h>

namespace loadline::gpu {

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

}  // namespace loadline::gpu
