// The loader's functions, found behind this program's own.
#include "tests/gpu/injected.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <vulkan/vulkan.h>

namespace loadline::gpu {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
std::atomic<std::uint64_t> allocations_left = kNever, buffers_left = kNever, submissions_left = kNever,
                           maps_left = kNever;
std::atomic<bool> lost = false, lost_alone = false;
std::vector<std::string> extra;            // set while no other thread runs
std::vector<std::uint32_t> more_families;  // likewise
std::uint32_t broken_family = UINT32_MAX, own_families = 0;
std::atomic<double> budget_seconds = 0;
std::atomic<std::uint64_t> queries = 0, bytes_alive = 0;
std::thread::id injecting;
std::mutex sizes_mutex;
std::map<VkDeviceMemory, std::uint64_t> sizes;  // of the allocations alive
std::map<float, std::uint64_t> priorities;      // bytes by priority
std::atomic<std::int64_t> memory_alive = 0, buffers_alive = 0, semaphores_alive = 0, pools_alive = 0,
                          devices_alive = 0;

template <typename Function>
Function* behind(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_extra(std::string_view name) { return std::ranges::find(extra, name) != extra.end(); }

// The family that the driver knows.
std::uint32_t own_family(std::uint32_t family) {
  return !more_families.empty() && family >= own_families ? 0 : family;
}

// The struct of this type in a chain; null if there is none.
template <typename Struct>
Struct* in_chain(const void* chain, VkStructureType type) {
  auto* at = static_cast<VkBaseOutStructure*>(const_cast<void*>(chain));
  while (at != nullptr && at->sType != type) at = at->pNext;
  return reinterpret_cast<Struct*>(at);
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
  maps_left = from(failures.map);
  lost = false;
  lost_alone = failures.device_alone;
}

void inject_extensions(std::vector<std::string> names, double seconds) {
  injecting = std::this_thread::get_id();
  extra = std::move(names);
  budget_seconds = seconds;
  queries = 0;
  const std::lock_guard lock(sizes_mutex);
  priorities.clear();
}

void inject_queue_families(std::vector<std::uint32_t> flags, std::uint32_t broken) {
  more_families = std::move(flags);
  broken_family = broken;
}

std::map<float, std::uint64_t> bytes_by_priority() {
  const std::lock_guard lock(sizes_mutex);
  return priorities;
}

std::uint64_t budget_queries() { return queries; }

Alive alive() { return {memory_alive, buffers_alive, semaphores_alive, pools_alive, devices_alive}; }

}  // namespace loadline::gpu

using namespace loadline::gpu;

extern "C" {

VkResult vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                          const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  if (fails(allocations_left)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  static auto* const next = behind<decltype(vkAllocateMemory)>("vkAllocateMemory");
  const VkResult result = make(memory_alive, next, device, info, callbacks, memory);
  if (result == VK_SUCCESS) {
    const std::lock_guard lock(sizes_mutex);
    sizes[*memory] = info->allocationSize;
    bytes_alive += info->allocationSize;
    if (const auto* const asked = in_chain<VkMemoryPriorityAllocateInfoEXT>(
            info->pNext, VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT))
      priorities[asked->priority] += info->allocationSize;
  }
  return result;
}

void vkFreeMemory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  {
    const std::lock_guard lock(sizes_mutex);
    if (const auto found = sizes.find(memory); found != sizes.end()) {
      bytes_alive -= found->second;
      sizes.erase(found);
    }
  }
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

VkResult vkMapMemory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,
                     VkMemoryMapFlags flags, void** data) {
  if (fails(maps_left)) {
    maps_left = kNever;
    return VK_ERROR_MEMORY_MAP_FAILED;
  }
  static auto* const next = behind<decltype(vkMapMemory)>("vkMapMemory");
  return next(device, memory, offset, size, flags, data);
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
  VkCommandPoolCreateInfo known = *info;
  known.queueFamilyIndex = own_family(info->queueFamilyIndex);
  return make(pools_alive, next, device, &known, callbacks, pool);
}

void vkDestroyCommandPool(VkDevice device, VkCommandPool pool, const VkAllocationCallbacks* callbacks) {
  static auto* const next = behind<decltype(vkDestroyCommandPool)>("vkDestroyCommandPool");
  destroy(pools_alive, next, device, pool, callbacks);
}

VkResult vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                        const VkAllocationCallbacks* callbacks, VkDevice* device) {
  static auto* const next = behind<decltype(vkCreateDevice)>("vkCreateDevice");
  // the driver does not know the extra ones
  VkDeviceCreateInfo known = *info;
  VkDeviceQueueCreateInfo queue = *info->pQueueCreateInfos;
  if (queue.queueFamilyIndex == broken_family) return VK_ERROR_INITIALIZATION_FAILED;
  queue.queueFamilyIndex = own_family(queue.queueFamilyIndex);
  known.pQueueCreateInfos = &queue;
  std::vector<const char*> extensions(info->ppEnabledExtensionNames,
                                      info->ppEnabledExtensionNames + info->enabledExtensionCount);
  std::erase_if(extensions, is_extra);
  known.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  known.ppEnabledExtensionNames = extensions.data();
  auto* const timeline = in_chain<VkBaseOutStructure>(
      info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
  if (is_extra(VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME)) timeline->pNext = nullptr;
  return make(devices_alive, next, physical, &known, callbacks, device);
}

VkResult vkEnumerateDeviceExtensionProperties(VkPhysicalDevice physical, const char* layer,
                                              std::uint32_t* count, VkExtensionProperties* items) {
  static auto* const next =
      behind<decltype(vkEnumerateDeviceExtensionProperties)>("vkEnumerateDeviceExtensionProperties");
  if (layer != nullptr) return next(physical, layer, count, items);
  const auto more = static_cast<std::uint32_t>(extra.size());
  if (items != nullptr) *count -= more;
  const VkResult result = next(physical, layer, count, items);
  for (std::uint32_t i = 0; items != nullptr && i < more; ++i) {
    items[*count + i] = {};
    std::ranges::copy(extra[i], items[*count + i].extensionName);
  }
  *count += more;
  return result;
}

void vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice physical, std::uint32_t* count,
                                              VkQueueFamilyProperties* items) {
  static auto* const next =
      behind<decltype(vkGetPhysicalDeviceQueueFamilyProperties)>("vkGetPhysicalDeviceQueueFamilyProperties");
  const auto more = static_cast<std::uint32_t>(more_families.size());
  if (items != nullptr) *count -= more;
  next(physical, count, items);
  own_families = *count;
  for (std::uint32_t i = 0; items != nullptr && i < more; ++i) {
    items[*count + i] = {};
    items[*count + i].queueFlags = more_families[i];
    items[*count + i].queueCount = 1;
  }
  *count += more;
}

void vkGetDeviceQueue(VkDevice device, std::uint32_t family, std::uint32_t index, VkQueue* queue) {
  static auto* const next = behind<decltype(vkGetDeviceQueue)>("vkGetDeviceQueue");
  next(device, own_family(family), index, queue);
}

void vkGetPhysicalDeviceFeatures2(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2* features) {
  static auto* const next = behind<decltype(vkGetPhysicalDeviceFeatures2)>("vkGetPhysicalDeviceFeatures2");
  next(physical, features);
  auto* const priority = in_chain<VkPhysicalDeviceMemoryPriorityFeaturesEXT>(
      features->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
  if (priority != nullptr && is_extra(VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME))
    priority->memoryPriority = VK_TRUE;
}

void vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice physical,
                                          VkPhysicalDeviceMemoryProperties2* properties) {
  static auto* const next =
      behind<decltype(vkGetPhysicalDeviceMemoryProperties2)>("vkGetPhysicalDeviceMemoryProperties2");
  auto* const budget = in_chain<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  next(physical, properties);
  if (budget == nullptr || !is_extra(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) return;
  if (std::this_thread::get_id() != injecting) ++queries;
  std::this_thread::sleep_for(std::chrono::duration<double>(budget_seconds));
  std::ranges::fill(budget->heapBudget, VkDeviceSize{1} << 40);
  std::ranges::fill(budget->heapUsage, bytes_alive.load());
}

void vkDestroyDevice(VkDevice device, const VkAllocationCallbacks* callbacks) {
  static auto* const next = behind<decltype(vkDestroyDevice)>("vkDestroyDevice");
  if (device != VK_NULL_HANDLE) --devices_alive;
  next(device, callbacks);
  if (lost && lost_alone) inject({});
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
