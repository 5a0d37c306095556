// Swapchain images and the frames in flight over them.
#include "app/gui/window/swapchain.h"

#include "core/base/error.h"

#include <algorithm>
#include <limits>

#include <imgui.h>

namespace loadline::gui {

VkSurfaceFormatKHR choose_format(const VulkanDevice& device) {
  const auto formats = listed<VkSurfaceFormatKHR>("listing formats", vkGetPhysicalDeviceSurfaceFormatsKHR,
                                                  device.physical(), device.surface());
  // colours are written as they shall appear: a format without conversion
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
  check(vkWaitForFences(device_.device(), 1, &done_, VK_TRUE, std::numeric_limits<std::uint64_t>::max()),
        "waiting for the GPU");
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
