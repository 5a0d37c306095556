// The window's own Vulkan instance, device and swapchain.
#include "app/gui/window/vulkan.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>

namespace loadline::gui {

// --- The window's own Vulkan instance and device.

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

const char* result_name(VkResult result) {
  constexpr auto kNames = std::to_array<std::pair<VkResult, const char*>>({
      {VK_ERROR_OUT_OF_HOST_MEMORY, "out of host memory"},
      {VK_ERROR_OUT_OF_DEVICE_MEMORY, "out of device memory"},
      {VK_ERROR_INITIALIZATION_FAILED, "initialization failed"},
      {VK_ERROR_DEVICE_LOST, "device lost"},
      {VK_ERROR_LAYER_NOT_PRESENT, "layer not present"},
      {VK_ERROR_EXTENSION_NOT_PRESENT, "extension not present"},
      {VK_ERROR_INCOMPATIBLE_DRIVER, "no Vulkan driver is installed"},
      {VK_ERROR_SURFACE_LOST_KHR, "surface lost"},
  });
  const auto found = std::ranges::find_if(kNames, [&](const auto& row) { return row.first == result; });
  return found == kNames.end() ? nullptr : found->second;
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  static_cast<VulkanDevice*>(user)->add_message(data->pMessage);
  return VK_FALSE;
}

int rank(VkPhysicalDeviceType type) {
  // other, integrated, discrete, virtual, CPU
  constexpr std::array<int, 5> kRanks = {0, 2, 3, 1, 0};
  return static_cast<std::size_t>(type) < kRanks.size() ? kRanks[static_cast<std::size_t>(type)] : 0;
}

std::optional<std::uint32_t> drawing_family(VkPhysicalDevice device, VkSurfaceKHR surface) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0) continue;
    if (surface == VK_NULL_HANDLE) return i;
    VkBool32 presents = VK_FALSE;
    if (vkGetPhysicalDeviceSurfaceSupportKHR(device, i, surface, &presents) == VK_SUCCESS &&
        presents == VK_TRUE)
      return i;
  }
  return std::nullopt;
}

bool has_swapchain(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
  return std::ranges::any_of(extensions, [](const VkExtensionProperties& extension) {
    return std::string_view(extension.extensionName) == VK_KHR_SWAPCHAIN_EXTENSION_NAME;
  });
}

}  // namespace

void check(VkResult result, const char* verb) {
  if (result >= 0) return;  // positive codes are news, not failures
  const char* name = result_name(result);
  throw Error(ErrorCode::gpu, name != nullptr ? fmt::format("window: {} failed: {}", verb, name)
                                              : fmt::format("window: {} failed: Vulkan error {}", verb,
                                                            static_cast<int>(result)));
}

void begin_recording(VkCommandBuffer commands) {
  auto info = vulkan_info<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(commands, &info), "recording");
}

VulkanDevice::VulkanDevice(const VulkanOptions& options, const MakeSurface& present) {
  try {
    make_instance(options);
    if (present) surface_ = present(instance_);
    choose_device(options.swapchain);
    make_device(options.swapchain);
  } catch (...) {
    destroy();
    throw;
  }
}

VulkanDevice::~VulkanDevice() { destroy(); }

void VulkanDevice::destroy() {
  if (device_ != VK_NULL_HANDLE) {
    vkDeviceWaitIdle(device_);
    vkDestroyDescriptorPool(device_, descriptor_pool_, nullptr);
    vkDestroyCommandPool(device_, command_pool_, nullptr);
    vkDestroyDevice(device_, nullptr);
  }
  if (instance_ == VK_NULL_HANDLE) return;
  if (surface_ != VK_NULL_HANDLE) vkDestroySurfaceKHR(instance_, surface_, nullptr);
  if (messenger_ != VK_NULL_HANDLE) {
    const auto destroy_messenger = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance_, "vkDestroyDebugUtilsMessengerEXT"));
    destroy_messenger(instance_, messenger_, nullptr);
  }
  vkDestroyInstance(instance_, nullptr);
}

void VulkanDevice::make_instance(const VulkanOptions& options) {
  auto application = vulkan_info<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "loadline";
  application.apiVersion = VK_API_VERSION_1_0;
  std::vector<const char*> extensions = options.instance_extensions;
  auto messenger = vulkan_info<VkDebugUtilsMessengerCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = this;

  auto info = vulkan_info<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  if (options.validation) {
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    info.pNext = &messenger;
  }
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(vkCreateInstance(&info, nullptr, &instance_), "creating a Vulkan instance");
  if (!options.validation) return;
  const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(instance_, "vkCreateDebugUtilsMessengerEXT"));
  check(create(instance_, &messenger, nullptr, &messenger_), "listening to the validation layer");
}

void VulkanDevice::choose_device(bool swapchain) {
  const auto devices =
      listed<VkPhysicalDevice>("listing Vulkan devices", vkEnumeratePhysicalDevices, instance_);
  int best = -1;
  for (const VkPhysicalDevice device : devices) {
    const auto family = drawing_family(device, surface_);
    if (!family || (swapchain && !has_swapchain(device))) continue;
    VkPhysicalDeviceProperties properties = {};
    vkGetPhysicalDeviceProperties(device, &properties);
    if (rank(properties.deviceType) <= best) continue;
    best = rank(properties.deviceType);
    physical_ = device;
    family_ = *family;
  }
  if (best < 0)
    throw Error(ErrorCode::gpu, "window: none of the {} Vulkan devices can draw{}", devices.size(),
                swapchain ? " to this display" : "");
}

void VulkanDevice::make_device(bool swapchain) {
  const float priority = 1;
  auto queue = vulkan_info<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const char* extension = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
  auto info = vulkan_info<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = swapchain ? 1 : 0;
  info.ppEnabledExtensionNames = &extension;
  check(vkCreateDevice(physical_, &info, nullptr, &device_), "opening the Vulkan device");
  vkGetDeviceQueue(device_, family_, 0, &queue_);

  auto commands = vulkan_info<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  commands.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  commands.queueFamilyIndex = family_;
  check(vkCreateCommandPool(device_, &commands, nullptr, &command_pool_), "creating a command pool");

  // the font texture is all that ImGui ever binds
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 4};
  auto pool = vulkan_info<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  pool.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
  pool.maxSets = 4;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  check(vkCreateDescriptorPool(device_, &pool, nullptr, &descriptor_pool_), "creating a descriptor pool");
}

VkDeviceMemory VulkanDevice::allocate(const VkMemoryRequirements& needs, VkMemoryPropertyFlags wanted) const {
  VkPhysicalDeviceMemoryProperties there = {};
  vkGetPhysicalDeviceMemoryProperties(physical_, &there);
  const auto fits = [&](std::uint32_t i) {
    return (needs.memoryTypeBits & (1u << i)) != 0 && (there.memoryTypes[i].propertyFlags & wanted) == wanted;
  };
  auto info = vulkan_info<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  info.allocationSize = needs.size;
  while (info.memoryTypeIndex < there.memoryTypeCount && !fits(info.memoryTypeIndex)) ++info.memoryTypeIndex;
  if (info.memoryTypeIndex == there.memoryTypeCount)
    throw Error(ErrorCode::gpu, "window: the Vulkan device has no memory type for a picture");
  VkDeviceMemory memory = VK_NULL_HANDLE;
  check(vkAllocateMemory(device_, &info, nullptr, &memory), "allocating memory for a picture");
  return memory;
}

VkImageView VulkanDevice::make_view(VkImage image, VkFormat format) const {
  auto info = vulkan_info<VkImageViewCreateInfo>(VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO);
  info.image = image;
  info.viewType = VK_IMAGE_VIEW_TYPE_2D;
  info.format = format;
  info.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  VkImageView view = VK_NULL_HANDLE;
  check(vkCreateImageView(device_, &info, nullptr, &view), "creating an image view");
  return view;
}

VkSemaphore VulkanDevice::make_semaphore() const {
  const auto info = vulkan_info<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
  VkSemaphore semaphore = VK_NULL_HANDLE;
  check(vkCreateSemaphore(device_, &info, nullptr, &semaphore), "creating a semaphore");
  return semaphore;
}

VkCommandBuffer VulkanDevice::make_commands() const {
  auto info = vulkan_info<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = command_pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vkAllocateCommandBuffers(device_, &info, &commands), "allocating commands");
  return commands;
}

void VulkanDevice::run_now(const std::function<void(VkCommandBuffer)>& record) {
  const VkCommandBuffer commands = make_commands();
  begin_recording(commands);
  record(commands);
  check(vkEndCommandBuffer(commands), "recording");
  auto submit = vulkan_info<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  check(vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), "submitting");
  check(vkQueueWaitIdle(queue_), "waiting for the GPU");
  vkFreeCommandBuffers(device_, command_pool_, 1, &commands);
}

std::vector<std::string> VulkanDevice::validation_messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

void VulkanDevice::add_message(std::string text) {
  const std::lock_guard lock(mutex_);
  messages_.push_back(std::move(text));
}

// --- Swapchain images and the frames in flight over them.

VkSurfaceFormatKHR choose_format(const VulkanDevice& device) {
  const auto formats = listed<VkSurfaceFormatKHR>("listing formats", vkGetPhysicalDeviceSurfaceFormatsKHR,
                                                  device.physical(), device.surface());
  // colors are written as they shall appear: a format without conversion
  for (const VkSurfaceFormatKHR& format : formats)
    if (format.format == VK_FORMAT_B8G8R8A8_UNORM || format.format == VK_FORMAT_R8G8B8A8_UNORM) return format;
  if (formats.empty()) throw Error(ErrorCode::gpu, "window: the display offers no picture format");
  return formats.front();
}

Swapchain::Swapchain(VulkanDevice& device, const RenderPass& pass, VkSurfaceFormatKHR format,
                     VkExtent2D wanted)
    : device_(device) {
  VkSurfaceCapabilitiesKHR surface = {};
  check(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(device.physical(), device.surface(), &surface),
        "asking the display");
  extent_ = surface.currentExtent;
  if (extent_.width == std::numeric_limits<std::uint32_t>::max()) extent_ = wanted;
  extent_.width = std::clamp(extent_.width, surface.minImageExtent.width, surface.maxImageExtent.width);
  extent_.height = std::clamp(extent_.height, surface.minImageExtent.height, surface.maxImageExtent.height);
  auto info = vulkan_info<VkSwapchainCreateInfoKHR>(VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR);
  info.surface = device.surface();
  info.minImageCount = std::max(surface.minImageCount, 2u);
  info.imageFormat = format.format;
  info.imageColorSpace = format.colorSpace;
  info.imageExtent = extent_;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
  info.imageSharingMode = VK_SHARING_MODE_EXCLUSIVE;
  info.preTransform = surface.currentTransform;
  info.compositeAlpha = (surface.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR) != 0
                            ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR;
  info.presentMode = VK_PRESENT_MODE_FIFO_KHR;
  info.clipped = VK_TRUE;
  check(vkCreateSwapchainKHR(device.device(), &info, nullptr, &swapchain_), "creating a swapchain");
  try {
    make_images(pass, format.format);
  } catch (...) {
    destroy();
    throw;
  }
}

Swapchain::~Swapchain() {
  vkDeviceWaitIdle(device_.device());
  destroy();
}

void Swapchain::make_images(const RenderPass& pass, VkFormat format) {
  const auto raw = listed<VkImage>("listing images", vkGetSwapchainImagesKHR, device_.device(), swapchain_);
  images_.resize(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    images_[i].view = device_.make_view(raw[i], format);
    images_[i].framebuffer = pass.make_framebuffer(images_[i].view, extent_);
    images_[i].drawn = device_.make_semaphore();
  }
}

void Swapchain::destroy() {
  for (const Image& image : images_) {
    vkDestroySemaphore(device_.device(), image.drawn, nullptr);
    vkDestroyFramebuffer(device_.device(), image.framebuffer, nullptr);
    vkDestroyImageView(device_.device(), image.view, nullptr);
  }
  vkDestroySwapchainKHR(device_.device(), swapchain_, nullptr);
}

FrameSlot::FrameSlot(VulkanDevice& device)
    : device_(device), commands_(device.make_commands()), acquired_(device.make_semaphore()) {
  auto fence = vulkan_info<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  fence.flags = VK_FENCE_CREATE_SIGNALED_BIT;
  const VkResult result = vkCreateFence(device.device(), &fence, nullptr, &done_);
  if (result != VK_SUCCESS) vkDestroySemaphore(device.device(), acquired_, nullptr);
  check(result, "creating a fence");
}

FrameSlot::~FrameSlot() {
  vkDeviceWaitIdle(device_.device());
  vkDestroySemaphore(device_.device(), acquired_, nullptr);
  vkDestroyFence(device_.device(), done_, nullptr);
  vkFreeCommandBuffers(device_.device(), device_.command_pool(), 1, &commands_);
}

void FrameSlot::wait() const {
  constexpr std::uint64_t kPatience = 300;  // seconds
  const VkResult waited = vkWaitForFences(device_.device(), 1, &done_, VK_TRUE, kPatience * 1'000'000'000);
  check(waited, "waiting for the GPU");
  if (waited == VK_TIMEOUT)
    throw Error(ErrorCode::gpu, "window: the GPU has not drawn a picture in {} seconds", kPatience);
}

void FrameSlot::submit(const RenderPass& pass, const Swapchain& swapchain, const Swapchain::Image& image,
                       ImDrawData* draw) {
  check(vkResetFences(device_.device(), 1, &done_), "resetting a fence");
  begin_recording(commands_);
  pass.record(commands_, image.framebuffer, swapchain.extent(), draw);
  check(vkEndCommandBuffer(commands_), "recording");
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
  auto submit = vulkan_info<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.waitSemaphoreCount = 1;
  submit.pWaitSemaphores = &acquired_;
  submit.pWaitDstStageMask = &stage;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  submit.signalSemaphoreCount = 1;
  submit.pSignalSemaphores = &image.drawn;
  check(vkQueueSubmit(device_.queue(), 1, &submit, done_), "drawing");
}

}  // namespace loadline::gui
