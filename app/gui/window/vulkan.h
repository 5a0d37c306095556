// Vulkan objects of both kinds of window: device, render pass, renderer, offscreen image, swapchain.
#pragma once

#include "app/gui/window/picture.h"
#include "app/gui/window/window.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

struct ImDrawData;

namespace loadline::gui {

// --- Vulkan objects shared by both kinds of window: device, render pass, the ImGui renderer, an offscreen
// image.

// Throws Error{gpu}: `VERB failed: VK_ERROR_...`.
void check(VkResult result, const char* verb);

// A Vulkan structure with its sType set and all other members 0.
template <typename Info>
Info vulkan_info(VkStructureType type) {
  Info info = {};
  info.sType = type;
  return info;
}

// The rows that a Vulkan function lists for `of`: it is called for their number, then for the rows. Throws as
// check() does.
template <typename Row, typename List, typename... Of>
std::vector<Row> listed(const char* verb, List list, Of... of) {
  std::uint32_t count = 0;
  check(list(of..., &count, nullptr), verb);
  std::vector<Row> rows(count);
  check(list(of..., &count, rows.data()), verb);
  return rows;
}

struct VulkanOptions {
  std::vector<const char*> instance_extensions;
  bool swapchain = false;
  bool validation = false;
};

// Begins recording commands that are submitted once.
void begin_recording(VkCommandBuffer commands);

// The window's own instance, device and graphics queue. Prefers a discrete GPU, then an integrated one, then
// any that draws. The uploader has another device, so a failed upload does not affect the window.
class VulkanDevice {
 public:
  // `present`: makes the surface that the queue must be able to show, for a desktop window.
  using MakeSurface = std::function<VkSurfaceKHR(VkInstance)>;
  VulkanDevice(const VulkanOptions& options, const MakeSurface& present);
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;
  ~VulkanDevice();

  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical() const { return physical_; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }
  std::uint32_t family() const { return family_; }
  VkSurfaceKHR surface() const { return surface_; }
  VkCommandPool command_pool() const { return command_pool_; }
  VkDescriptorPool descriptor_pool() const { return descriptor_pool_; }

  VkDeviceMemory allocate(const VkMemoryRequirements& needs, VkMemoryPropertyFlags wanted) const;
  // A view of one mip level of a color image.
  VkImageView make_view(VkImage image, VkFormat format) const;
  VkSemaphore make_semaphore() const;
  VkCommandBuffer make_commands() const;
  // Records commands, submits them and waits: used for fonts and screenshots.
  void run_now(const std::function<void(VkCommandBuffer)>& record);

  std::vector<std::string> validation_messages() const;
  // Called by the validation layer, from any thread.
  void add_message(std::string text);

 private:
  void make_instance(const VulkanOptions& options);
  void choose_device(bool swapchain);
  void make_device(bool swapchain);
  void destroy();

  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

// One color attachment, cleared. All passes of a format are compatible with each other, whatever
// layout they leave the image in.
class RenderPass {
 public:
  RenderPass(VulkanDevice& device, VkFormat format, VkImageLayout final_layout);
  RenderPass(const RenderPass&) = delete;
  RenderPass& operator=(const RenderPass&) = delete;
  ~RenderPass();

  VkRenderPass get() const { return pass_; }
  VkFormat format() const { return format_; }
  VkFramebuffer make_framebuffer(VkImageView view, VkExtent2D extent) const;
  // Records the whole pass: clear and draw.
  void record(VkCommandBuffer commands, VkFramebuffer framebuffer, VkExtent2D extent, ImDrawData* draw) const;

 private:
  VulkanDevice& device_;
  VkFormat format_;
  VkRenderPass pass_ = VK_NULL_HANDLE;
};

// ImGui's Vulkan backend, alive between construction and destruction.
class ImGuiRenderer {
 public:
  ImGuiRenderer(VulkanDevice& device, const RenderPass& pass, std::uint32_t images);
  ImGuiRenderer(const ImGuiRenderer&) = delete;
  ImGuiRenderer& operator=(const ImGuiRenderer&) = delete;
  ~ImGuiRenderer();

 private:
  VulkanDevice& device_;
};

// An image to draw one frame into and read it back. Throws Error{limit} if it is larger than the device
// draws, Error{gpu}.
class OffscreenTarget {
 public:
  OffscreenTarget(VulkanDevice& device, VkFormat format, VkExtent2D extent);
  OffscreenTarget(const OffscreenTarget&) = delete;
  OffscreenTarget& operator=(const OffscreenTarget&) = delete;
  ~OffscreenTarget();

  const RenderPass& pass() const { return pass_; }
  VkExtent2D extent() const { return extent_; }
  Picture draw(ImDrawData* draw);

 private:
  void make_image();
  void make_buffer();
  void destroy();

  VulkanDevice& device_;
  RenderPass pass_;
  VkExtent2D extent_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory image_memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
  VkFramebuffer framebuffer_ = VK_NULL_HANDLE;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory buffer_memory_ = VK_NULL_HANDLE;
};

// --- The images of a desktop window: its swapchain, and the frames in flight.

// A format that shows colors as they are written, if the display has one. Throws Error{gpu}.
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

// The command buffer and synchronization objects of one frame in flight.
class FrameSlot {
 public:
  explicit FrameSlot(VulkanDevice& device);
  FrameSlot(const FrameSlot&) = delete;
  FrameSlot& operator=(const FrameSlot&) = delete;
  ~FrameSlot();

  // Waits until the frame last submitted from this slot is drawn.
  void wait() const;
  // Signaled by whoever takes the next image.
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
