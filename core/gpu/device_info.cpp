// Fills the properties from Vulkan queries; chooses a device and a queue family, and says why.
#include "core/gpu/device_info.h"

#include "core/base/text.h"
#include "core/gpu/device.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fmt/core.h>

namespace loadline::gpu {

// --- Fills DeviceInfo from Vulkan queries.

namespace {

bool has(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::ranges::any_of(extensions, [&](const VkExtensionProperties& extension) {
    return std::strcmp(extension.extensionName, name) == 0;
  });
}

DeviceType type_of(VkPhysicalDeviceType type) {
  constexpr std::pair<VkPhysicalDeviceType, DeviceType> kTypes[] = {
      {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, DeviceType::discrete},
      {VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, DeviceType::integrated},
      {VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, DeviceType::virtual_gpu},
      {VK_PHYSICAL_DEVICE_TYPE_CPU, DeviceType::cpu}};
  for (const auto& [known, ours] : kTypes)
    if (known == type) return ours;
  return DeviceType::other;
}

// PCI vendor ids, and Khronos' own for vendors that have none.
std::string vendor_of(std::uint32_t id) {
  constexpr std::pair<std::uint32_t, std::string_view> kVendors[] = {
      {0x1002, "AMD"},      {0x1010, "Imagination"}, {0x10de, "NVIDIA"}, {0x13b5, "Arm"},
      {0x5143, "Qualcomm"}, {0x8086, "Intel"},       {0x106b, "Apple"},  {VK_VENDOR_ID_MESA, "Mesa"}};
  for (const auto& [known, name] : kVendors)
    if (known == id) return std::string(name);
  return fmt::format("vendor 0x{:04x}", id);
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
      heaps[i].budget = io::available_system_memory();
    else if (has_budget)
      heaps[i].budget = uses[i].budget - std::min(uses[i].budget, uses[i].used);
  }
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i)
    if ((memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0)
      heaps[memory.memoryTypes[i].heapIndex].host_visible = true;
  return heaps;
}

std::vector<QueueFamily> queues_of(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  return queue_families(families);
}

// Queries that need Vulkan 1.2.
void describe_modern(VkPhysicalDevice device, DeviceInfo& info) {
  auto driver =
      vulkan_struct<VkPhysicalDeviceDriverProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  auto limits = vulkan_struct<VkPhysicalDeviceMaintenance3Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &driver);
  auto properties =
      vulkan_struct<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &limits);
  vkGetPhysicalDeviceProperties2(device, &properties);
  info.driver = fmt::format("{} {}", driver.driverName, driver.driverInfo);
  info.max_allocation = limits.maxMemoryAllocationSize;
  info.max_buffer = info.max_allocation;  // before 1.3 nothing else limits a buffer
  if (info.api_version >= ApiVersion{1, 3, 0}) {
    auto buffers = vulkan_struct<VkPhysicalDeviceMaintenance4Properties>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
    auto more =
        vulkan_struct<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &buffers);
    vkGetPhysicalDeviceProperties2(device, &more);
    info.max_buffer = buffers.maxBufferSize;
  }

  auto halves = vulkan_struct<VkPhysicalDevice16BitStorageFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  auto addresses = vulkan_struct<VkPhysicalDeviceBufferDeviceAddressFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, &halves);
  auto priority = vulkan_struct<VkPhysicalDeviceMemoryPriorityFeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT);
  if (info.memory_priority) halves.pNext = &priority;  // only those that the device knows
  auto timeline = vulkan_struct<VkPhysicalDeviceTimelineSemaphoreFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, &addresses);
  auto features =
      vulkan_struct<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &timeline);
  vkGetPhysicalDeviceFeatures2(device, &features);
  info.timeline_semaphore = timeline.timelineSemaphore == VK_TRUE;
  info.packs = addresses.bufferDeviceAddress == VK_TRUE && halves.storageBuffer16BitAccess == VK_TRUE;
  info.memory_priority = priority.memoryPriority == VK_TRUE;
}

// What nobody uses of it. amdgpu alone says so.
std::uint64_t set_aside_memory(VkPhysicalDevice device) {
  auto bus = vulkan_struct<VkPhysicalDevicePCIBusInfoPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
  auto properties =
      vulkan_struct<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &bus);
  vkGetPhysicalDeviceProperties2(device, &properties);
  const auto number = [&](std::string_view name) {
    std::ifstream file(fmt::format("/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.{:x}/mem_info_vram_{}",
                                   bus.pciDomain, bus.pciBus, bus.pciDevice, bus.pciFunction, name));
    std::uint64_t bytes = 0;
    return file >> bytes ? bytes : 0;
  };
  const std::uint64_t total = number("total");
  return total - std::min(total, number("used"));
}

}  // namespace

std::vector<HeapUse> heap_use(VkPhysicalDevice device) {
  auto budget = vulkan_struct<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  auto memory = vulkan_struct<VkPhysicalDeviceMemoryProperties2>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, &budget);
  vkGetPhysicalDeviceMemoryProperties2(device, &memory);
  std::vector<HeapUse> uses;
  for (std::uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i)
    uses.push_back({.budget = budget.heapBudget[i], .used = budget.heapUsage[i]});
  return uses;
}

std::vector<QueueFamily> queue_families(std::span<const VkQueueFamilyProperties> families) {
  constexpr VkQueueFlags kGraphics = VK_QUEUE_GRAPHICS_BIT, kCompute = VK_QUEUE_COMPUTE_BIT;
  constexpr VkQueueFlags kOnlyCopies =
      VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
  std::vector<QueueFamily> queues;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    // graphics and compute imply transfer, whether or not the driver sets its bit
    if (families[i].queueCount == 0 || (flags & (kGraphics | kCompute | VK_QUEUE_TRANSFER_BIT)) == 0)
      continue;
    queues.push_back({.index = static_cast<std::uint32_t>(i),
                      .computes = (flags & kCompute) != 0,
                      .draws = (flags & kGraphics) != 0,
                      .only_copies = (flags & ~kOnlyCopies) == 0});
  }
  return queues;
}

DeviceInfo describe_device(VkPhysicalDevice device, std::size_t index) {
  VkPhysicalDeviceProperties properties = {};
  vkGetPhysicalDeviceProperties(device, &properties);
  const auto extensions = list_all<VkExtensionProperties>(
      "list a device's extensions", [&](std::uint32_t* count, VkExtensionProperties* items) {
        return vkEnumerateDeviceExtensionProperties(device, nullptr, count, items);
      });
  DeviceInfo info;
  info.index = index;
  info.max_binding = properties.limits.maxStorageBufferRange;
  info.max_allocations = properties.limits.maxMemoryAllocationCount;
  info.name = properties.deviceName;
  info.type = type_of(properties.deviceType);
  info.vendor = vendor_of(properties.vendorID);
  info.api_version = {VK_API_VERSION_MAJOR(properties.apiVersion),
                      VK_API_VERSION_MINOR(properties.apiVersion),
                      VK_API_VERSION_PATCH(properties.apiVersion)};
  const bool modern = info.api_version >= ApiVersion{kLeastMajor, kLeastMinor, 0};
  info.memory_budget = modern && has(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  info.external_memory_host = has(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  info.memory_priority = modern && has(extensions, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME);
  info.pageable_memory = has(extensions, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME);
  info.heaps = heaps_of(device, info.memory_budget, info.type == DeviceType::cpu);
  info.queues = queues_of(device);
  const DeviceHeap* const heap = device_heap(info);
  info.unified = info.type == DeviceType::cpu || info.type == DeviceType::integrated;
  info.mappable = heap != nullptr && heap->host_visible;
  if (modern) describe_modern(device, info);
  if (modern && info.type == DeviceType::integrated && has(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME))
    info.set_aside = set_aside_memory(device);
  return info;
}

// --- The choice of a device and the sentences that explain it.

namespace {

bool is_wanted(const DeviceInfo& device, std::string_view wanted) {
  // a number is always an index: "1" must not match every name that contains a 1
  if (const auto number = text_as<std::size_t>(wanted)) return device.index == *number;
  return lower_case(device.name).find(lower_case(wanted)) != std::string::npos;
}

std::vector<std::string> defects(const DeviceInfo& device) {
  std::vector<std::string> found;
  if (device.api_version < ApiVersion{kLeastMajor, kLeastMinor, 0})
    found.push_back(fmt::format("offers Vulkan {}, {}.{} is needed", version_text(device.api_version),
                                kLeastMajor, kLeastMinor));
  if (!device.timeline_semaphore) found.emplace_back("has no timeline semaphores");
  if (device_heap(device) == nullptr) found.emplace_back("has no device memory");
  return found;
}

std::uint64_t memory_of(const DeviceInfo& device) {
  const DeviceHeap* const heap = device_heap(device);
  return heap == nullptr ? 0 : heap->bytes;
}

bool better(const DeviceInfo& a, const DeviceInfo& b) {
  if (a.type != b.type) return a.type > b.type;
  return memory_of(a) > memory_of(b);
}

std::string_view kind(DeviceType type) {
  constexpr std::string_view kKinds[] = {"a device of unknown type", "a software device on the CPU",
                                         "an integrated GPU", "a virtual GPU", "a discrete GPU"};
  return kKinds[static_cast<std::size_t>(type)];
}

std::string why_not(const DeviceInfo& device, const DeviceInfo& chosen) {
  if (device.type != chosen.type)
    return fmt::format("{} comes after {}", kind(device.type), kind(chosen.type));
  if (memory_of(device) != memory_of(chosen))
    return fmt::format("its memory of {} is less than {}", format_bytes(memory_of(device)),
                       format_bytes(memory_of(chosen)));
  return fmt::format("as good as device {}, which is listed before it", chosen.index);
}

}  // namespace

std::string_view device_type_name(DeviceType type) {
  constexpr std::string_view kNames[] = {"other", "cpu", "integrated", "virtual", "discrete"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string version_text(ApiVersion version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

std::string_view queue_family_words(const QueueFamily& family) {
  if (family.only_copies) return "only copies";
  if (family.draws) return family.computes ? "draws and computes" : "draws";
  return family.computes ? "computes" : "copies, encodes or decodes";
}

std::string queue_family_key(const QueueFamily& family) {
  return fmt::format("{} {}", family.index, queue_family_words(family));
}

std::optional<std::size_t> choose_queue_family(std::span<const QueueFamily> families, bool computes,
                                               const LinkRates& rates) {
  constexpr double kClearly = 1.05;
  const auto rank = [](const QueueFamily& family) {
    if (family.only_copies) return 3;
    if (family.draws) return 1;
    return family.computes ? 2 : 0;
  };
  const auto rate = [&](const QueueFamily& family) {
    const auto found = rates.find(queue_family_key(family));
    return found == rates.end() ? 0.0 : found->second;
  };
  std::optional<std::size_t> by_kind, fastest;
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (computes && !families[i].computes) continue;
    if (!by_kind || rank(families[i]) > rank(families[*by_kind])) by_kind = i;
    if (!fastest || rate(families[i]) > rate(families[*fastest])) fastest = i;
  }
  if (!by_kind) return std::nullopt;
  const double measured = rate(families[*by_kind]);
  return measured > 0 && rate(families[*fastest]) > kClearly * measured ? fastest : by_kind;
}

const DeviceHeap* device_heap(const DeviceInfo& device) {
  const DeviceHeap* best = nullptr;
  for (const DeviceHeap& heap : device.heaps)
    if (heap.device_local && (best == nullptr || heap.bytes > best->bytes)) best = &heap;
  return best;
}

DeviceChoice choose_device(std::span<const DeviceInfo> devices, std::string_view wanted) {
  DeviceChoice choice;
  choice.reasons.resize(devices.size());
  std::size_t usable = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::vector<std::string>& reasons = choice.reasons[i];
    reasons = defects(devices[i]);
    const bool can_serve = reasons.empty();
    usable += can_serve ? 1 : 0;
    if (!wanted.empty() && !is_wanted(devices[i], wanted)) {
      reasons.emplace_back(kNotWanted);
      continue;
    }
    if (can_serve && (!choice.chosen || better(devices[i], devices[*choice.chosen]))) choice.chosen = i;
  }
  if (!choice.chosen) return choice;

  const DeviceInfo& chosen = devices[*choice.chosen];
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (i != *choice.chosen && choice.reasons[i].empty())
      choice.reasons[i].push_back(why_not(devices[i], chosen));
  std::vector<std::string>& reasons = choice.reasons[*choice.chosen];
  if (!wanted.empty())
    reasons.emplace_back("asked for");
  else if (usable == 1)
    reasons.emplace_back("the only device that can be used");
  else
    reasons.push_back(
        fmt::format("{} with {} of memory", kind(chosen.type), format_bytes(memory_of(chosen))));
  if (const DeviceHeap* const heap = device_heap(chosen); chosen.type == DeviceType::cpu && heap->budget)
    reasons.push_back(fmt::format("it uses system memory: {} available", format_bytes(*heap->budget)));
  return choice;
}

}  // namespace loadline::gpu
