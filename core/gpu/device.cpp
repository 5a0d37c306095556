// Chooses and opens a device.
#include "core/gpu/device.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/memory_need.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace loadline::gpu {
namespace {

// One line per device: its index, its name and the reasons against it.
std::string device_list(std::span<const DeviceInfo> devices, const DeviceChoice& choice) {
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : "; ", devices[i].index, safe_display(devices[i].name));
    for (std::size_t r = 0; r < choice.reasons[i].size(); ++r)
      text += fmt::format("{}{}", r == 0 ? ": " : ", ", choice.reasons[i][r]);
  }
  return text;
}

// A choice in which a device is chosen; throws if there is none.
DeviceChoice require_choice(std::span<const DeviceInfo> devices, const std::string& wanted) {
  DeviceChoice choice = choose_device(devices, wanted);
  if (choice.chosen) return choice;
  if (wanted.empty())
    throw Error(ErrorCode::gpu, "no Vulkan device can be used: " + device_list(devices, choice));
  for (std::vector<std::string>& reasons : choice.reasons) std::erase(reasons, kNotWanted);
  throw Error(ErrorCode::usage, "no device that can be used has the number or the name '{}'; there are: {}",
              safe_display(wanted), device_list(devices, choice));
}

bool imports_buffers(VkPhysicalDevice device) {
  auto asked = vulkan_struct<VkPhysicalDeviceExternalBufferInfo>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO);
  asked.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
  asked.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  auto found = vulkan_struct<VkExternalBufferProperties>(VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
  vkGetPhysicalDeviceExternalBufferProperties(device, &asked, &found);
  return (found.externalMemoryProperties.externalMemoryFeatures &
          VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) != 0;
}

// 0 without the extension, or where a page is too small for it: files are mapped in pages.
std::uint64_t find_import_alignment(VkPhysicalDevice device, const DeviceInfo& info) {
  if (!info.external_memory_host || !info.timeline_semaphore || !imports_buffers(device)) return 0;
  auto import = vulkan_struct<VkPhysicalDeviceExternalMemoryHostPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
  auto properties =
      vulkan_struct<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &import);
  vkGetPhysicalDeviceProperties2(device, &properties);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return import.minImportedHostPointerAlignment <= page ? page : 0;
}

}  // namespace

Device::Device(const DeviceOptions& options) : shaders_(options.shaders), instance_(options.validation) {
  const std::vector<VkPhysicalDevice> physical = instance_.physical_devices();
  std::vector<DeviceInfo> devices;
  for (const VkPhysicalDevice device : physical) devices.push_back(describe_device(device, devices.size()));
  DeviceChoice choice = require_choice(devices, options.wanted);
  physical_ = physical[*choice.chosen];
  info_ = devices[*choice.chosen];
  reasons_ = std::move(choice.reasons[*choice.chosen]);
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory_);
  VkPhysicalDeviceProperties properties = {};
  vkGetPhysicalDeviceProperties(physical_, &properties);
  limits_ = properties.limits;
  import_alignment_ = find_import_alignment(physical_, info_);
  if (shaders_) require_packing(info_);
  choose_queue(options);
  create_device();
}

void Device::choose_queue(const DeviceOptions& options) {
  std::vector<QueueFamily> families = info_.queues;
  if (!options.queues.empty())
    std::erase_if(families, [&](const QueueFamily& family) {
      return std::ranges::find(options.queues, family.index) == options.queues.end();
    });
  const LinkRates rates =
      options.queue_rates.device == safe_display(info_.name) ? options.queue_rates.rates : LinkRates{};
  const auto chosen = choose_queue_family(families, shaders_, rates);
  if (!chosen)
    throw Error(ErrorCode::gpu, "the device has no queue that {}", shaders_ ? "computes" : "copies");
  queue_kind_ = families[*chosen];
  if (const auto found = rates.find(queue_family_key(queue_kind_)); found != rates.end())
    measured_link_ = found->second;
}

void Device::create_device() {
  const float priority = 1.0F;
  auto queue = vulkan_struct<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = queue_family();
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;

  auto halves = vulkan_struct<VkPhysicalDevice16BitStorageFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  halves.storageBuffer16BitAccess = VK_TRUE;
  auto addresses = vulkan_struct<VkPhysicalDeviceBufferDeviceAddressFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, &halves);
  addresses.bufferDeviceAddress = VK_TRUE;
  auto timeline = vulkan_struct<VkPhysicalDeviceTimelineSemaphoreFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, shaders_ ? &addresses : nullptr);
  timeline.timelineSemaphore = VK_TRUE;
  auto memory_priority = vulkan_struct<VkPhysicalDeviceMemoryPriorityFeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
  memory_priority.memoryPriority = VK_TRUE;
  std::vector<const char*> extensions;
  if (info_.memory_budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (import_alignment_ > 0) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (info_.memory_priority) {
    extensions.push_back(VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME);
    memory_priority.pNext = timeline.pNext;
    timeline.pNext = &memory_priority;
  }
  auto info = vulkan_struct<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &timeline);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice device = VK_NULL_HANDLE;
  check(vkCreateDevice(physical_, &info, nullptr, &device), "open the device " + safe_display(info_.name));
  device_.reset(device);
  vkGetDeviceQueue(device, queue_family(), 0, &queue_);
}

}  // namespace loadline::gpu
