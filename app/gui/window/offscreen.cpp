// The render pass and ImGui's renderer; frames drawn into an image without a display.

#include "app/gui/window/still_window.h"
#include "app/gui/window/vulkan.h"
#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <backends/imgui_impl_vulkan.h>
#include <imgui.h>

namespace loadline::gui {

// --- The render pass, ImGui's renderer, and drawing into an image that becomes a PNG.

namespace {

void on_result(VkResult result) { check(result, "drawing"); }

void require_drawable(const VulkanDevice& device, VkExtent2D extent) {
  VkPhysicalDeviceProperties properties = {};
  vkGetPhysicalDeviceProperties(device.physical(), &properties);
  const VkPhysicalDeviceLimits& limits = properties.limits;
  const std::uint32_t width = std::min(limits.maxImageDimension2D, limits.maxFramebufferWidth);
  const std::uint32_t height = std::min(limits.maxImageDimension2D, limits.maxFramebufferHeight);
  if (extent.width <= width && extent.height <= height) return;
  throw Error(ErrorCode::limit, "window: a picture of {}x{} pixels, the device draws at most {}x{}",
              extent.width, extent.height, width, height);
}

bool is_bgra(VkFormat format) {
  return format == VK_FORMAT_B8G8R8A8_UNORM || format == VK_FORMAT_B8G8R8A8_SRGB;
}

}  // namespace

RenderPass::RenderPass(VulkanDevice& device, VkFormat format, VkImageLayout final_layout)
    : device_(device), format_(format) {
  VkAttachmentDescription attachment = {};
  attachment.format = format;
  attachment.samples = VK_SAMPLE_COUNT_1_BIT;
  attachment.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  attachment.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  attachment.stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE;
  attachment.stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
  attachment.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  attachment.finalLayout = final_layout;
  const VkAttachmentReference reference = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass = {};
  subpass.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS;
  subpass.colorAttachmentCount = 1;
  subpass.pColorAttachments = &reference;

  // The same two dependencies for every pass: they are part of what makes passes compatible. The
  // second orders the picture's copy after the drawing.
  std::array<VkSubpassDependency, 2> dependencies = {};
  dependencies[0].srcSubpass = VK_SUBPASS_EXTERNAL;
  dependencies[0].dstSubpass = 0;
  dependencies[0].srcStageMask =
      VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  dependencies[0].dstStageMask = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
  dependencies[0].srcAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
  dependencies[0].dstAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT;
  dependencies[1].srcSubpass = 0;
  dependencies[1].dstSubpass = VK_SUBPASS_EXTERNAL;
  dependencies[1].srcStageMask = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
  dependencies[1].dstStageMask = VK_PIPELINE_STAGE_TRANSFER_BIT;
  dependencies[1].srcAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT;
  dependencies[1].dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;

  auto info = vulkan_info<VkRenderPassCreateInfo>(VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO);
  info.attachmentCount = 1;
  info.pAttachments = &attachment;
  info.subpassCount = 1;
  info.pSubpasses = &subpass;
  info.dependencyCount = static_cast<std::uint32_t>(dependencies.size());
  info.pDependencies = dependencies.data();
  check(vkCreateRenderPass(device.device(), &info, nullptr, &pass_), "creating a render pass");
}

RenderPass::~RenderPass() { vkDestroyRenderPass(device_.device(), pass_, nullptr); }

VkFramebuffer RenderPass::make_framebuffer(VkImageView view, VkExtent2D extent) const {
  auto info = vulkan_info<VkFramebufferCreateInfo>(VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO);
  info.renderPass = pass_;
  info.attachmentCount = 1;
  info.pAttachments = &view;
  info.width = extent.width;
  info.height = extent.height;
  info.layers = 1;
  VkFramebuffer framebuffer = VK_NULL_HANDLE;
  check(vkCreateFramebuffer(device_.device(), &info, nullptr, &framebuffer), "creating a framebuffer");
  return framebuffer;
}

void RenderPass::record(VkCommandBuffer commands, VkFramebuffer framebuffer, VkExtent2D extent,
                        ImDrawData* draw) const {
  const VkClearValue clear = {{{0, 0, 0, 1}}};
  auto begin = vulkan_info<VkRenderPassBeginInfo>(VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO);
  begin.renderPass = pass_;
  begin.framebuffer = framebuffer;
  begin.renderArea.extent = extent;
  begin.clearValueCount = 1;
  begin.pClearValues = &clear;
  vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
  ImGui_ImplVulkan_RenderDrawData(draw, commands);
  vkCmdEndRenderPass(commands);
}

ImGuiRenderer::ImGuiRenderer(VulkanDevice& device, const RenderPass& pass, std::uint32_t images)
    : device_(device) {
  ImGui_ImplVulkan_InitInfo info = {};
  info.Instance = device.instance();
  info.PhysicalDevice = device.physical();
  info.Device = device.device();
  info.QueueFamily = device.family();
  info.Queue = device.queue();
  info.DescriptorPool = device.descriptor_pool();
  info.MinImageCount = 2;
  info.ImageCount = std::max<std::uint32_t>(images, 2);
  info.MSAASamples = VK_SAMPLE_COUNT_1_BIT;
  info.CheckVkResultFn = on_result;
  ImGui_ImplVulkan_Init(&info, pass.get());
  device.run_now([](VkCommandBuffer commands) { ImGui_ImplVulkan_CreateFontsTexture(commands); });
  ImGui_ImplVulkan_DestroyFontUploadObjects();
}

ImGuiRenderer::~ImGuiRenderer() {
  vkDeviceWaitIdle(device_.device());
  ImGui_ImplVulkan_Shutdown();
}

OffscreenTarget::OffscreenTarget(VulkanDevice& device, VkFormat format, VkExtent2D extent)
    : device_(device), pass_(device, format, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL), extent_(extent) {
  require_drawable(device, extent);
  try {
    make_image();
    make_buffer();
    framebuffer_ = pass_.make_framebuffer(view_, extent_);
  } catch (...) {
    destroy();
    throw;
  }
}

OffscreenTarget::~OffscreenTarget() {
  vkDeviceWaitIdle(device_.device());
  destroy();
}

void OffscreenTarget::destroy() {
  const VkDevice device = device_.device();
  vkDestroyFramebuffer(device, framebuffer_, nullptr);
  vkDestroyImageView(device, view_, nullptr);
  vkDestroyImage(device, image_, nullptr);
  vkFreeMemory(device, image_memory_, nullptr);
  vkDestroyBuffer(device, buffer_, nullptr);
  vkFreeMemory(device, buffer_memory_, nullptr);
}

void OffscreenTarget::make_image() {
  auto info = vulkan_info<VkImageCreateInfo>(VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO);
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = pass_.format();
  info.extent = {extent_.width, extent_.height, 1};
  info.mipLevels = 1;
  info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  check(vkCreateImage(device_.device(), &info, nullptr, &image_), "creating an image");
  VkMemoryRequirements needs = {};
  vkGetImageMemoryRequirements(device_.device(), image_, &needs);
  image_memory_ = device_.allocate(needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  check(vkBindImageMemory(device_.device(), image_, image_memory_, 0), "binding an image");
  view_ = device_.make_view(image_, pass_.format());
}

void OffscreenTarget::make_buffer() {
  auto info = vulkan_info<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = VkDeviceSize{4} * extent_.width * extent_.height;
  info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  check(vkCreateBuffer(device_.device(), &info, nullptr, &buffer_), "creating a buffer");
  VkMemoryRequirements needs = {};
  vkGetBufferMemoryRequirements(device_.device(), buffer_, &needs);
  buffer_memory_ =
      device_.allocate(needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  check(vkBindBufferMemory(device_.device(), buffer_, buffer_memory_, 0), "binding a buffer");
}

Picture OffscreenTarget::draw(ImDrawData* draw) {
  device_.run_now([&](VkCommandBuffer commands) {
    pass_.record(commands, framebuffer_, extent_, draw);
    VkBufferImageCopy region = {};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {extent_.width, extent_.height, 1};
    vkCmdCopyImageToBuffer(commands, image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, buffer_, 1, &region);
    auto barrier = vulkan_info<VkBufferMemoryBarrier>(VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER);
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    barrier.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.buffer = buffer_;
    barrier.size = VK_WHOLE_SIZE;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 0, nullptr,
                         1, &barrier, 0, nullptr);
  });
  Picture picture{extent_.width, extent_.height, {}};
  picture.rgba.resize(std::size_t{4} * extent_.width * extent_.height);
  void* mapped = nullptr;
  check(vkMapMemory(device_.device(), buffer_memory_, 0, VK_WHOLE_SIZE, 0, &mapped), "reading the picture");
  std::memcpy(picture.rgba.data(), mapped, picture.rgba.size());
  vkUnmapMemory(device_.device(), buffer_memory_);
  const bool swap = is_bgra(pass_.format());
  for (std::size_t i = 0; i < picture.rgba.size(); i += 4) {
    if (swap) std::swap(picture.rgba[i], picture.rgba[i + 2]);
    picture.rgba[i + 3] = 255;  // the frame is opaque whatever blending left in alpha
  }
  return picture;
}

// --- Frames without a window, drawn into an image.

namespace {

class OffscreenWindow final : public StillWindow {
 public:
  explicit OffscreenWindow(const WindowOptions& options)
      : StillWindow(options),
        device_({.instance_extensions = {}, .swapchain = false, .validation = options.validation}, nullptr),
        pass_(device_, kFormat, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL) {}

  ~OffscreenWindow() override {
    target_.reset();
    renderer_.reset();
  }

  void frame(const std::function<void()>& build) override {
    if (!renderer_) upload_fonts();
    ImGui_ImplVulkan_NewFrame();
    build_frame(build);
  }

  Picture picture() override {
    ImDrawData* draw = ImGui::GetDrawData();
    if (draw == nullptr) throw Error(ErrorCode::gpu, "window: nothing was drawn yet");
    const VkExtent2D extent = {static_cast<std::uint32_t>(draw->DisplaySize.x),
                               static_cast<std::uint32_t>(draw->DisplaySize.y)};
    if (!target_ || target_->extent().width != extent.width || target_->extent().height != extent.height) {
      target_.reset();
      target_.emplace(device_, kFormat, extent);
    }
    return target_->draw(draw);
  }

  void upload_fonts() override {
    renderer_.reset();
    renderer_.emplace(device_, pass_, 2);
  }

  std::vector<std::string> validation_messages() const override { return device_.validation_messages(); }

 private:
  static constexpr VkFormat kFormat = VK_FORMAT_R8G8B8A8_UNORM;

  VulkanDevice device_;
  RenderPass pass_;
  std::optional<ImGuiRenderer> renderer_;
  std::optional<OffscreenTarget> target_;
};

}  // namespace

std::unique_ptr<Window> open_offscreen_window(const WindowOptions& options) {
  return std::make_unique<OffscreenWindow>(options);
}

}  // namespace loadline::gui
