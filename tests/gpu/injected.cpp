// The loader's functions, found behind this program's own.
#include "tests/gpu/injected.h"

#include <array>
#include <atomic>
#include <limits>

#include <dlfcn.h>
#include <vulkan/vulkan.h>

namespace loadline::gpu {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
std::atomic<std::uint64_t> allocations_left = kNever, buffers_left = kNever, submissions_left = kNever;
std::atomic<bool> lost = false;
std::atomic<std::int64_t> memory_alive = 0, buffers_alive = 0, semaphores_alive = 0, pools_alive = 0,
                          devices_alive = 0;

template <typename Function>
Function* behind(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Whether this call is the one that fails, or comes after it.
bool fails(std::atomic<std::uint64_t>& left) {
  std::uint64_t now = left.load();
  while (now != 0 && now != kNever && !left.compare_exchange_weak(now, now - 1)) {
  }
  return now == 1 || now == 0;
}

template <typename Function, typename... Arguments>
VkResult make(std::atomic<std::int64_t>& alive, Function* next, Arguments... arguments) {
  const VkResult result = next(arguments...);
  if (result == VK_SUCCESS) ++alive;
  return result;
}

template <typename Function, typename Handle>
void destroy(std::atomic<std::int64_t>& alive, Function* next, VkDevice device, Handle handle,
             const VkAllocationCallbacks* callbacks) {
  if (handle != VK_NULL_HANDLE) --alive;
  next(device, handle, callbacks);
}

}  // namespace

void inject(const Injected& failures) {
  const auto from = [](std::uint64_t call) { return call == 0 ? kNever : call; };
  allocations_left = from(failures.allocation);
  buffers_left = from(failures.buffer);
  submissions_left = from(failures.submission);
  lost = false;
}

Alive alive() { return {memory_alive, buffers_alive, semaphores_alive, pools_alive, devices_alive}; }

}  // namespace loadline::gpu

using namespace loadline::gpu;

extern "C" {

VkResult vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                          const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  if (fails(allocations_left)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  static auto* const next = behind<decltype(vkAllocateMemory)>("vkAllocateMemory");
  return make(memory_alive, next, device, info, callbacks, memory);
}

void vkFreeMemory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  static auto* const next = behind<decltype(vkFreeMemory)>("vkFreeMemory");
  destroy(memory_alive, next, device, memory, callbacks);
}

VkResult vkCreateBuffer(VkDevice device, const VkBufferCreateInfo* info,
                        const VkAllocationCallbacks* callbacks, VkBuffer* buffer) {
  if (fails(buffers_left)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  static auto* const next = behind<decltype(vkCreateBuffer)>("vkCreateBuffer");
  return make(buffers_alive, next, device, info, callbacks, buffer);
}

void vkDestroyBuffer(VkDevice device, VkBuffer buffer, const VkAllocationCallbacks* callbacks) {
  static auto* const next = behind<decltype(vkDestroyBuffer)>("vkDestroyBuffer");
  destroy(buffers_alive, next, device, buffer, callbacks);
}

VkResult vkCreateSemaphore(VkDevice device, const VkSemaphoreCreateInfo* info,
                           const VkAllocationCallbacks* callbacks, VkSemaphore* semaphore) {
  static auto* const next = behind<decltype(vkCreateSemaphore)>("vkCreateSemaphore");
  return make(semaphores_alive, next, device, info, callbacks, semaphore);
}

void vkDestroySemaphore(VkDevice device, VkSemaphore semaphore, const VkAllocationCallbacks* callbacks) {
  static auto* const next = behind<decltype(vkDestroySemaphore)>("vkDestroySemaphore");
  destroy(semaphores_alive, next, device, semaphore, callbacks);
}

VkResult vkCreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo* info,
                             const VkAllocationCallbacks* callbacks, VkCommandPool* pool) {
  static auto* const next = behind<decltype(vkCreateCommandPool)>("vkCreateCommandPool");
  return make(pools_alive, next, device, info, callbacks, pool);
}

void vkDestroyCommandPool(VkDevice device, VkCommandPool pool, const VkAllocationCallbacks* callbacks) {
  static auto* const next = behind<decltype(vkDestroyCommandPool)>("vkDestroyCommandPool");
  destroy(pools_alive, next, device, pool, callbacks);
}

VkResult vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                        const VkAllocationCallbacks* callbacks, VkDevice* device) {
  static auto* const next = behind<decltype(vkCreateDevice)>("vkCreateDevice");
  return make(devices_alive, next, physical, info, callbacks, device);
}

void vkDestroyDevice(VkDevice device, const VkAllocationCallbacks* callbacks) {
  static auto* const next = behind<decltype(vkDestroyDevice)>("vkDestroyDevice");
  if (device != VK_NULL_HANDLE) --devices_alive;
  next(device, callbacks);
}

VkResult vkQueueSubmit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
  if (fails(submissions_left)) {
    lost = true;
    return VK_ERROR_DEVICE_LOST;
  }
  static auto* const next = behind<decltype(vkQueueSubmit)>("vkQueueSubmit");
  return next(queue, count, submits, fence);
}

VkResult vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo* info, std::uint64_t timeout) {
  static auto* const next = behind<decltype(vkWaitSemaphores)>("vkWaitSemaphores");
  const VkResult result = next(device, info, timeout);
  return lost ? VK_ERROR_DEVICE_LOST : result;
}

}  // extern "C"
