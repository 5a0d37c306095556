// Frames without a window, drawn into an image.
#include "app/gui/window/still_window.h"
#include "app/gui/window/vulkan.h"
#include "core/base/error.h"

#include <optional>

#include <backends/imgui_impl_vulkan.h>
#include <imgui.h>

namespace loadline::gui {
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
