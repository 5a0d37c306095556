// Creates the instance and collects the layer's messages.
#include "core/gpu/instance.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace loadline::gpu {
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

Error no_driver() {
  return Error(ErrorCode::gpu,
               "no Vulkan driver is installed; the Debian package mesa-vulkan-drivers brings one for most "
               "GPUs, and one that runs on the CPU. {}",
               kNvidiaDriver);
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
  auto application = vulkan_struct<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "loadline";
  application.apiVersion = VK_MAKE_API_VERSION(0, kLeastMajor, kLeastMinor, 0);

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
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) throw no_driver();
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
  if (devices.empty()) throw no_driver();
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

}  // namespace loadline::gpu
