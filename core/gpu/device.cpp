// Names of results; opens the instance and the device.
#include "core/gpu/device.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/gpu/memory_need.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace loadline::gpu {

// --- Names of Vulkan result codes.

std::string_view result_name(VkResult result) {
  constexpr std::pair<VkResult, std::string_view> kNames[] = {
      {VK_SUCCESS, "VK_SUCCESS"},
      {VK_TIMEOUT, "VK_TIMEOUT"},
      {VK_INCOMPLETE, "VK_INCOMPLETE"},
      {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
      {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
      {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
      {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
      {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
      {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
      {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
      {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
      {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
      {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
      {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"},
      {VK_ERROR_FRAGMENTATION, "VK_ERROR_FRAGMENTATION"},
      {VK_ERROR_INVALID_EXTERNAL_HANDLE, "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
  };
  for (const auto& [known, name] : kNames)
    if (known == result) return name;
  return "an unexpected result";
}

void check(VkResult result, std::string_view what) {
  if (result >= 0) return;
  // drivers that find memory for work when it is submitted say this too if there is none
  const std::string_view hint =
      result == VK_ERROR_DEVICE_LOST
          ? " (the device stopped answering, or its memory ran out; nothing on it can be used)"
          : "";
  throw Error(ErrorCode::gpu, "cannot {}: {} ({}){}", what, result_name(result), static_cast<int>(result),
              hint);
}

// --- Creates the instance and collects the layer's messages.

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
constexpr std::string_view kNvidiaDriver =
    "NVIDIA's is in the package nvidia-vulkan-icd; a container has it if NVIDIA_DRIVER_CAPABILITIES names "
    "graphics";

bool layer_installed() {
  const auto layers =
      list_all<VkLayerProperties>("list the Vulkan layers", vkEnumerateInstanceLayerProperties);
  return std::ranges::any_of(layers, [](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, kValidationLayer) == 0;
  });
}

// Newer layers refuse the choice of features without this extension of theirs.
bool layer_has_features() {
  const auto extensions = list_all<VkExtensionProperties>(
      "list the extensions of the validation layer", [](std::uint32_t* count, VkExtensionProperties* items) {
        return vkEnumerateInstanceExtensionProperties(kValidationLayer, count, items);
      });
  return std::ranges::any_of(extensions, [](const VkExtensionProperties& extension) {
    return std::strcmp(extension.extensionName, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME) == 0;
  });
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* log) {
  static_cast<MessageLog*>(log)->add(data->pMessage == nullptr ? "(no text)" : data->pMessage);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(MessageLog& log) {
  auto info = vulkan_struct<VkDebugUtilsMessengerCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  // without the general type: the loader uses it for irrelevant messages about drivers of other machines
  info.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = on_message;
  info.pUserData = &log;
  return info;
}

// What the Vulkan loader says of the drivers that it finds and cannot use; "" if it finds none.
std::string unusable_drivers(const VkApplicationInfo& application) {
  constexpr const char* kExtension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  MessageLog log;
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(log);
  messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT;
  auto info = vulkan_struct<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, &messenger);
  info.pApplicationInfo = &application;
  info.enabledExtensionCount = 1;
  info.ppEnabledExtensionNames = &kExtension;
  VkInstance instance = VK_NULL_HANDLE;
  if (vkCreateInstance(&info, nullptr, &instance) == VK_SUCCESS) vkDestroyInstance(instance, nullptr);
  std::string said;
  for (const std::string& message : log.messages())
    if (message.find("no drivers") == std::string::npos)
      said += fmt::format("{}{}", said.empty() ? "" : "; ", safe_display(message));
  return said;
}

Error no_driver(const VkApplicationInfo& application) {
  if (const std::string said = unusable_drivers(application); !said.empty())
    return Error(ErrorCode::gpu, "no Vulkan driver can be used ({}){}", said,
                 said.find("nvidia") == std::string::npos
                     ? ""
                     : "; NVIDIA's also needs the libraries of the Debian packages libegl1 and libxext6");
  return Error(ErrorCode::gpu,
               "no Vulkan driver is installed; the Debian package mesa-vulkan-drivers brings one for most "
               "GPUs, and one that runs on the CPU. {}",
               kNvidiaDriver);
}

VkApplicationInfo application_info() {
  auto application = vulkan_struct<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "loadline";
  application.apiVersion = VK_MAKE_API_VERSION(0, kLeastMajor, kLeastMinor, 0);
  return application;
}

}  // namespace

void MessageLog::add(std::string message) {
  const std::lock_guard lock(mutex_);
  messages_.push_back(std::move(message));
}

std::vector<std::string> MessageLog::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

void DestroyMessenger::operator()(VkDebugUtilsMessengerEXT messenger) const {
  const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(instance, "vkDestroyDebugUtilsMessengerEXT"));
  destroy(instance, messenger, nullptr);
}

Instance::Instance(bool validation) {
  if (validation && !layer_installed())
    throw Error(ErrorCode::gpu,
                "the Vulkan validation layer is not installed; it is in the Debian package "
                "vulkan-validationlayers");
  const VkApplicationInfo application = application_info();

  const std::array enabled = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(*log_);
  auto features = vulkan_struct<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
  features.pNext = &messenger;  // also receives messages of instance creation
  features.enabledValidationFeatureCount = static_cast<std::uint32_t>(enabled.size());
  features.pEnabledValidationFeatures = enabled.data();

  std::vector<const char*> extensions = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  auto info = vulkan_struct<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  if (validation) {
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    if (layer_has_features()) extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
    info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
  }
  VkInstance instance = VK_NULL_HANDLE;
  const VkResult result = vkCreateInstance(&info, nullptr, &instance);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) throw no_driver(application);
  check(result, "create a Vulkan instance");
  instance_.reset(instance);
  if (validation) listen();
}

void Instance::listen() {
  const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(instance_.get(), "vkCreateDebugUtilsMessengerEXT"));
  const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(*log_);
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  check(create(instance_.get(), &info, nullptr, &messenger), "listen to the validation layer");
  messenger_ = UniqueMessenger(messenger, DestroyMessenger{instance_.get()});
}

std::vector<VkPhysicalDevice> Instance::physical_devices() const {
  auto devices = list_all<VkPhysicalDevice>(
      "list the Vulkan devices", [this](std::uint32_t* count, VkPhysicalDevice* items) {
        return vkEnumeratePhysicalDevices(instance_.get(), count, items);
      });
  if (devices.empty()) throw no_driver(application_info());
  return devices;
}

std::string hidden_gpu_text(std::span<const DeviceInfo> devices) {
  const bool software =
      std::ranges::all_of(devices, [](const DeviceInfo& device) { return device.type == DeviceType::cpu; });
  std::error_code ignored;
  if (!software || !std::filesystem::exists("/dev/nvidiactl", ignored)) return {};
  return fmt::format("This machine has an NVIDIA GPU that Vulkan does not see. {}.", kNvidiaDriver);
}

std::vector<DeviceInfo> list_devices() {
  const Instance instance(false);
  std::vector<DeviceInfo> devices;
  for (const VkPhysicalDevice device : instance.physical_devices())
    devices.push_back(describe_device(device, devices.size()));
  return devices;
}

// --- Chooses and opens a device.

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
