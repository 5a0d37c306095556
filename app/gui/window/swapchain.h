// The images of a desktop window: its swapchain, and the frames in flight.
#pragma once

#include "app/gui/window/vulkan.h"

#include <cstdint>
#include <vector>

namespace loadline::gui {

// A format that shows colours as they are written, if the display has one. Throws Error{gpu}.
VkSurfaceFormatKHR choose_format(const VulkanDevice& device);

// Swapchain, its images and their framebuffers: everything that a resize makes anew.
class Swapchain {
 public:
  // `wanted` counts where the display leaves the size to the program.
  Swapchain(VulkanDevice& device, const RenderPass& pass, VkSurfaceFormatKHR format, VkExtent2D wanted);
  Swapchain(const Swapchain&) = delete;
  Swapchain& operator=(const Swapchain&) = delete;
  ~Swapchain();

  struct Image {
    VkImageView view = VK_NULL_HANDLE;
    VkFramebuffer framebuffer = VK_NULL_HANDLE;
    VkSemaphore drawn = VK_NULL_HANDLE;
  };
  VkSwapchainKHR get() const { return swapchain_; }
  VkExtent2D extent() const { return extent_; }
  const Image& image(std::uint32_t i) const { return images_[i]; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(images_.size()); }

 private:
  void make_images(const RenderPass& pass, VkFormat format);
  void destroy();

  VulkanDevice& device_;
  VkExtent2D extent_ = {};
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  std::vector<Image> images_;
};

// The command buffer and synchronisation objects of one frame in flight.
class FrameSlot {
 public:
  explicit FrameSlot(VulkanDevice& device);
  FrameSlot(const FrameSlot&) = delete;
  FrameSlot& operator=(const FrameSlot&) = delete;
  ~FrameSlot();

  // Waits until the frame last submitted from this slot is drawn.
  void wait() const;
  // Signalled by whoever takes the next image.
  VkSemaphore acquired() const { return acquired_; }
  void submit(const RenderPass& pass, const Swapchain& swapchain, const Swapchain::Image& image,
              ImDrawData* draw);

 private:
  VulkanDevice& device_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence done_ = VK_NULL_HANDLE;
  VkSemaphore acquired_ = VK_NULL_HANDLE;
};

}  // namespace loadline::gui
