// Frames without a window: drawn into an image, or (for tests) built and thrown away.
#include "app/gui/window_vulkan.h"
#include "core/base/error.h"

#include <cmath>
#include <optional>

#include <backends/imgui_impl_vulkan.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

// The part of a window that needs no device: a logical size, a scale, a steady clock.
class StillWindow : public Window {
 public:
  explicit StillWindow(const WindowOptions& options)
      : width_(options.width), height_(options.height), scale_(options.scale > 0 ? options.scale : 1) {}

  void set_size(int width, int height) override {
    width_ = width;
    height_ = height;
  }
  float scale() const override { return scale_; }
  void set_scale(float scale) override { scale_ = scale; }
  void set_mouse(float x, float y, bool down) override {
    mouse_ = {x, y};
    mouse_down_ = down;
  }

 protected:
  void build_frame(const std::function<void()>& build) {
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {std::round(static_cast<float>(width_) * scale_),
                      std::round(static_cast<float>(height_) * scale_)};
    io.DeltaTime = 1.0f / 60;
    io.MousePos = {mouse_.x * scale_, mouse_.y * scale_};
    io.MouseDown[0] = mouse_down_;
    ImGui::NewFrame();
    build();
    ImGui::Render();
  }

 private:
  int width_;
  int height_;
  float scale_;
  ImVec2 mouse_ = {-1000, -1000};
  bool mouse_down_ = false;
};

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

  void save_png(const std::string& path) override {
    ImDrawData* draw = ImGui::GetDrawData();
    if (draw == nullptr) throw Error(ErrorCode::gpu, "window: nothing was drawn yet");
    const VkExtent2D extent = {static_cast<std::uint32_t>(draw->DisplaySize.x),
                               static_cast<std::uint32_t>(draw->DisplaySize.y)};
    if (!target_ || target_->extent().width != extent.width || target_->extent().height != extent.height) {
      target_.reset();
      target_.emplace(device_, kFormat, extent);
    }
    write_png(target_->draw(draw), path);
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

class NullWindow final : public StillWindow {
 public:
  using StillWindow::StillWindow;

  void frame(const std::function<void()>& build) override {
    if (!ImGui::GetIO().Fonts->IsBuilt()) upload_fonts();
    build_frame(build);
  }
  void save_png(const std::string&) override {
    throw Error(ErrorCode::unsupported, "window: this window draws nothing");
  }
  void upload_fonts() override {
    unsigned char* pixels = nullptr;
    int width = 0;
    int height = 0;
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
};

}  // namespace

std::unique_ptr<Window> open_offscreen_window(const WindowOptions& options) {
  return std::make_unique<OffscreenWindow>(options);
}

std::unique_ptr<Window> open_null_window(const WindowOptions& options) {
  return std::make_unique<NullWindow>(options);
}

}  // namespace loadline::gui
