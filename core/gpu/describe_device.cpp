// Asks Vulkan everything that DeviceInfo holds.
#include "core/gpu/instance.h"
#include "core/io/process_memory.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace loadline::gpu {
namespace {

std::vector<VkExtensionProperties> extensions_of(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  check(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr), "list a device's extensions");
  std::vector<VkExtensionProperties> extensions(count);
  check(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data()),
        "list a device's extensions");
  return extensions;
}

bool has(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::any_of(extensions.begin(), extensions.end(), [&](const VkExtensionProperties& extension) {
    return std::strcmp(extension.extensionName, name) == 0;
  });
}

DeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceType::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceType::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return DeviceType::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceType::cpu;
    default:
      return DeviceType::other;
  }
}

// PCI vendor ids, and Khronos' own for vendors that have none.
std::string vendor_of(std::uint32_t id) {
  switch (id) {
    case 0x1002:
      return "AMD";
    case 0x1010:
      return "Imagination";
    case 0x10de:
      return "NVIDIA";
    case 0x13b5:
      return "Arm";
    case 0x5143:
      return "Qualcomm";
    case 0x8086:
      return "Intel";
    case 0x106b:
      return "Apple";
    case VK_VENDOR_ID_MESA:
      return "Mesa";
    default:
      return fmt::format("vendor 0x{:04x}", id);
  }
}

std::vector<DeviceHeap> heaps_of(VkPhysicalDevice device, bool has_budget, bool is_cpu) {
  VkPhysicalDeviceMemoryProperties memory = {};
  vkGetPhysicalDeviceMemoryProperties(device, &memory);
  std::vector<DeviceHeap> heaps(memory.memoryHeapCount);
  const std::vector<HeapUse> uses = has_budget ? heap_use(device) : std::vector<HeapUse>{};
  for (std::size_t i = 0; i < heaps.size(); ++i) {
    heaps[i].bytes = memory.memoryHeaps[i].size;
    heaps[i].device_local = (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
    if (is_cpu)
      heaps[i].budget = available_system_memory();
    else if (has_budget)
      heaps[i].budget = uses[i].budget;
  }
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i)
    if ((memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0)
      heaps[memory.memoryTypes[i].heapIndex].host_visible = true;
  return heaps;
}

// What only a device of Vulkan 1.2 may be asked.
void describe_modern(VkPhysicalDevice device, DeviceInfo& info) {
  VkPhysicalDeviceDriverProperties driver = {};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  VkPhysicalDeviceMaintenance3Properties limits = {};
  limits.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  limits.pNext = &driver;
  VkPhysicalDeviceProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &limits;
  vkGetPhysicalDeviceProperties2(device, &properties);
  info.driver = fmt::format("{} {}", driver.driverName, driver.driverInfo);
  info.max_allocation = limits.maxMemoryAllocationSize;

  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  VkPhysicalDeviceFeatures2 features = {};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &timeline;
  vkGetPhysicalDeviceFeatures2(device, &features);
  info.timeline_semaphore = timeline.timelineSemaphore == VK_TRUE;
}

}  // namespace

std::vector<HeapUse> heap_use(VkPhysicalDevice device) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory = {};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  memory.pNext = &budget;
  vkGetPhysicalDeviceMemoryProperties2(device, &memory);
  std::vector<HeapUse> uses;
  for (std::uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i)
    uses.push_back({.budget = budget.heapBudget[i], .used = budget.heapUsage[i]});
  return uses;
}

DeviceInfo describe_device(VkPhysicalDevice device, std::size_t index) {
  VkPhysicalDeviceProperties properties = {};
  vkGetPhysicalDeviceProperties(device, &properties);
  const std::vector<VkExtensionProperties> extensions = extensions_of(device);
  DeviceInfo info;
  info.index = index;
  info.name = properties.deviceName;
  info.type = type_of(properties.deviceType);
  info.vendor = vendor_of(properties.vendorID);
  info.api_version = {VK_API_VERSION_MAJOR(properties.apiVersion),
                      VK_API_VERSION_MINOR(properties.apiVersion),
                      VK_API_VERSION_PATCH(properties.apiVersion)};
  const bool modern = info.api_version >= ApiVersion{kLeastMajor, kLeastMinor, 0};
  info.memory_budget = modern && has(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  info.external_memory_host = has(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  info.heaps = heaps_of(device, info.memory_budget, info.type == DeviceType::cpu);
  const DeviceHeap* const heap = device_heap(info);
  info.unified = heap != nullptr && heap->host_visible;
  if (modern) describe_modern(device, info);
  return info;
}

}  // namespace loadline::gpu
