// The window on a desktop: GLFW for the window and its events, a Vulkan swapchain for the picture.
#include "app/gui/window/input.h"
#include "app/gui/window/vulkan.h"
#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#define GLFW_INCLUDE_NONE
#define GLFW_INCLUDE_VULKAN
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_vulkan.h>
#include <imgui.h>

namespace loadline::gui {
namespace {

Error glfw_error(const char* verb) {
  const char* text = nullptr;
  glfwGetError(&text);
  return Error(ErrorCode::gpu, "window: cannot {}: {}", verb, text != nullptr ? text : "no reason given");
}

// GLFW is initialized while one of these lives.
class GlfwLibrary {
 public:
  GlfwLibrary() {
    if (glfwInit() != GLFW_TRUE) throw glfw_error("open a display");
    if (glfwVulkanSupported() == GLFW_TRUE) return;
    glfwTerminate();
    throw Error(ErrorCode::gpu, "window: Vulkan is not installed, or no driver for it");
  }
  GlfwLibrary(const GlfwLibrary&) = delete;
  GlfwLibrary& operator=(const GlfwLibrary&) = delete;
  ~GlfwLibrary() { glfwTerminate(); }
};

struct DestroyWindow {
  void operator()(GLFWwindow* window) const { glfwDestroyWindow(window); }
};
using WindowHandle = std::unique_ptr<GLFWwindow, DestroyWindow>;

WindowHandle make_window(const WindowOptions& options) {
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  if (options.scale <= 0) glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  const float scale = options.scale > 0 ? options.scale : 1;
  const auto pixels = [&](int logical) { return static_cast<int>(static_cast<float>(logical) * scale); };
  int width = pixels(options.width), height = pixels(options.height);
  if (GLFWmonitor* const monitor = glfwGetPrimaryMonitor()) {  // what is below its edge cannot be reached
    int wide = 0, high = 0;
    glfwGetMonitorWorkarea(monitor, nullptr, nullptr, &wide, &high);
    if (wide > 0 && high > 0) width = std::min(width, wide), height = std::min(height, high);
  }
  WindowHandle window(glfwCreateWindow(width, height, options.title.c_str(), nullptr, nullptr));
  if (!window) throw glfw_error("create a window");
  return window;
}

std::vector<const char*> glfw_extensions() {
  std::uint32_t count = 0;
  const char** names = glfwGetRequiredInstanceExtensions(&count);
  return {names, names + count};
}

// Whether another swapchain may mend it: the display changed, or memory was short for a moment.
bool passes(VkResult result) {
  return result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
         result == VK_ERROR_OUT_OF_HOST_MEMORY;
}

class DesktopWindow final : public Window {
 public:
  explicit DesktopWindow(const WindowOptions& options)
      : window_(make_window(options)),
        device_(
            {.instance_extensions = glfw_extensions(), .swapchain = true, .validation = options.validation},
            [this](VkInstance instance) { return make_surface(instance); }),
        format_(choose_format(device_)),
        pass_(device_, format_.format, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR),
        slots_{{FrameSlot(device_), FrameSlot(device_)}},
        forced_scale_(options.scale) {
    limit_size();
    ImGui_ImplGlfw_InitForVulkan(window_.get(), false);
    glfwSetWindowUserPointer(window_.get(), this);
    listen();
  }

  ~DesktopWindow() override {
    swapchain_.reset();
    renderer_.reset();
    ImGui_ImplGlfw_Shutdown();
  }

  void frame(const std::function<void()>& build) override {
    if (!prepare_swapchain()) return;
    ImGuiIO& io = ImGui::GetIO();
    const auto mouse = input_.deliver({io.MousePos.x, io.MousePos.y}, io.WantTextInput,
                                      [this](const InputEvent& event) { hand_on(event); });
    ImGui_ImplVulkan_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    if (aside_) {
      io.DisplaySize = {std::round(static_cast<float>(aside_->width) * aside_->scale),
                        std::round(static_cast<float>(aside_->height) * aside_->scale)};
      io.DisplayFramebufferScale = {1, 1};
    }
    io.DeltaTime = input_.counted(io.DeltaTime);
    std::ranges::copy(buttons_, io.MouseDown);
    if (mouse) io.MousePos = {mouse->x, mouse->y};
    prepare_mouse();
    prepare_keyboard();
    ImGui::NewFrame();
    build();
    ImGui::Render();
    if (!aside_) present(ImGui::GetDrawData());
  }

  void request_attention() override {
    if (glfwGetWindowAttrib(window_.get(), GLFW_FOCUSED) == GLFW_FALSE)
      glfwRequestWindowAttention(window_.get());
  }

  Picture picture() override {
    ImDrawData* draw = ImGui::GetDrawData();
    if (draw == nullptr || !renderer_) throw Error(ErrorCode::gpu, "window: nothing was drawn yet");
    // drawing again reuses the vertex buffers of the frames in flight
    check(vkDeviceWaitIdle(device_.device()), "waiting for the GPU");
    const VkExtent2D extent = {static_cast<std::uint32_t>(draw->DisplaySize.x * draw->FramebufferScale.x),
                               static_cast<std::uint32_t>(draw->DisplaySize.y * draw->FramebufferScale.y)};
    OffscreenTarget target(device_, format_.format, extent);
    return target.draw(draw);
  }

  void upload_fonts() override {
    renderer_.reset();
    renderer_.emplace(device_, pass_, swapchain_ ? swapchain_->count() : 2);
  }

  void set_size(int width, int height) override {
    const float factor = scale();
    glfwSetWindowSize(window_.get(), static_cast<int>(static_cast<float>(width) * factor),
                      static_cast<int>(static_cast<float>(height) * factor));
    glfwPollEvents();
  }

  void set_full_screen(bool full) override {
    if (full == before_full_.has_value()) return;
    if (!full) {
      const Area at = *std::exchange(before_full_, std::nullopt);
      glfwSetWindowMonitor(window_.get(), nullptr, at.x, at.y, at.width, at.height, GLFW_DONT_CARE);
      return;
    }
    GLFWmonitor* const monitor = monitor_below();
    const GLFWvidmode* const mode = monitor != nullptr ? glfwGetVideoMode(monitor) : nullptr;
    if (mode == nullptr) return;
    Area at;
    glfwGetWindowPos(window_.get(), &at.x, &at.y);
    glfwGetWindowSize(window_.get(), &at.width, &at.height);
    before_full_ = at;
    glfwSetWindowMonitor(window_.get(), monitor, 0, 0, mode->width, mode->height, mode->refreshRate);
  }

  // Where the system already scales coordinates, only the rest is left to the fonts.
  float scale() const override {
    if (aside_) return aside_->scale;
    if (forced_scale_ > 0) return forced_scale_;
    float x = 1;
    float y = 1;
    glfwGetWindowContentScale(window_.get(), &x, &y);
    int width = 0;
    int pixels = 0;
    glfwGetWindowSize(window_.get(), &width, nullptr);
    glfwGetFramebufferSize(window_.get(), &pixels, nullptr);
    const float system = width > 0 && pixels > 0 ? static_cast<float>(pixels) / static_cast<float>(width) : 1;
    // both sizes are whole numbers: without rounding, fonts would be made anew while resizing
    return std::clamp(std::round(x / system * 64) / 64, 0.75f, 4.0f);
  }
  void set_scale(float scale) override {
    forced_scale_ = scale;
    limit_size();
  }

  bool takes_close() override {
    const bool asked = glfwWindowShouldClose(window_.get()) == GLFW_TRUE;
    if (asked) glfwSetWindowShouldClose(window_.get(), GLFW_FALSE);
    return asked;
  }
  void set_title(const std::string& title) override { glfwSetWindowTitle(window_.get(), title.c_str()); }
  bool wait_events(double seconds) override {
    const double start = glfwGetTime();
    if (!input_.empty()) seconds = 0;  // the next frame has something to learn
    if (seconds > 0)
      glfwWaitEventsTimeout(seconds);
    else
      glfwPollEvents();
    return !input_.empty() || glfwGetTime() - start < seconds;
  }
  std::vector<std::string> take_dropped() override { return std::exchange(dropped_, {}); }
  std::function<void()> waker() override {
    return [] { glfwPostEmptyEvent(); };
  }
  std::vector<std::string> validation_messages() const override { return device_.validation_messages(); }

 private:
  static DesktopWindow& of(GLFWwindow* window) {
    return *static_cast<DesktopWindow*>(glfwGetWindowUserPointer(window));
  }

  // As ImGui's backend would, but for keys and buttons.
  void listen() {
    GLFWwindow* const window = window_.get();
    glfwSetWindowFocusCallback(window, ImGui_ImplGlfw_WindowFocusCallback);
    glfwSetCursorEnterCallback(window, ImGui_ImplGlfw_CursorEnterCallback);
    glfwSetScrollCallback(window, ImGui_ImplGlfw_ScrollCallback);
    glfwSetKeyCallback(window, [](GLFWwindow* from, int key, int scancode, int action, int modifiers) {
      if (action == GLFW_REPEAT || key < 0) return;  // ImGui repeats by itself
      const bool shortcut =
          (modifiers & (GLFW_MOD_CONTROL | GLFW_MOD_ALT)) != 0 || (key >= GLFW_KEY_F1 && key <= GLFW_KEY_F25);
      const bool modifier = key >= GLFW_KEY_LEFT_SHIFT && key <= GLFW_KEY_RIGHT_SUPER;
      of(from).input_.push({action == GLFW_PRESS ? InputEvent::Kind::press : InputEvent::Kind::release, key,
                            scancode, modifiers, shortcut && !modifier});
    });
    glfwSetMouseButtonCallback(window, [](GLFWwindow* from, int button, int action, int) {
      if (button < 0 || button >= static_cast<int>(of(from).buttons_.size())) return;
      const auto [x, y] = of(from).cursor();
      of(from).input_.push(
          {.kind = action == GLFW_PRESS ? InputEvent::Kind::button_press : InputEvent::Kind::button_release,
           .code = button,
           .x = static_cast<float>(x),
           .y = static_cast<float>(y)});
    });
    glfwSetCursorPosCallback(
        window, [](GLFWwindow* from, double x, double y) { of(from).cursor_ = std::pair(x, y); });
    glfwSetCharCallback(window, [](GLFWwindow* from, unsigned int point) {
      of(from).input_.push({InputEvent::Kind::character, static_cast<int>(point), 0, 0, false});
    });
    glfwSetDropCallback(window, [](GLFWwindow* from, int count, const char** paths) {
      of(from).dropped_.insert(of(from).dropped_.end(), paths, paths + count);
    });
  }

  // Where the mouse was when the event that is being handled happened. GLFW's own answer is where it is now:
  // a mouse that has gone on since would have clicked there.
  std::pair<double, double> cursor() const {
    if (cursor_) return *cursor_;
    double x = 0, y = 0;
    glfwGetCursorPos(window_.get(), &x, &y);
    return {x, y};
  }

  void hand_on(const InputEvent& event) {
    if (event.of_button()) {
      buttons_[static_cast<std::size_t>(event.code)] = event.kind == InputEvent::Kind::button_press;
      return;
    }
    if (event.kind == InputEvent::Kind::character)
      return ImGui_ImplGlfw_CharCallback(window_.get(), static_cast<unsigned int>(event.code));
    const int action = event.kind == InputEvent::Kind::press ? GLFW_PRESS : GLFW_RELEASE;
    ImGui_ImplGlfw_KeyCallback(window_.get(), event.code, event.scancode, action, event.modifiers);
  }

  // The monitor with the middle of the window; the first one if it is on none.
  GLFWmonitor* monitor_below() const {
    int x = 0, y = 0, width = 0, height = 0, count = 0;
    glfwGetWindowPos(window_.get(), &x, &y);
    glfwGetWindowSize(window_.get(), &width, &height);
    GLFWmonitor** const monitors = glfwGetMonitors(&count);
    for (int i = 0; i < count; ++i) {
      int left = 0, top = 0;
      glfwGetMonitorPos(monitors[i], &left, &top);
      const GLFWvidmode* const mode = glfwGetVideoMode(monitors[i]);
      if (mode == nullptr) continue;
      const int from_left = x + width / 2 - left, from_top = y + height / 2 - top;
      if (from_left >= 0 && from_left < mode->width && from_top >= 0 && from_top < mode->height)
        return monitors[i];
    }
    return glfwGetPrimaryMonitor();
  }

  VkSurfaceKHR make_surface(VkInstance instance) {
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    check(glfwCreateWindowSurface(instance, window_.get(), nullptr, &surface), "making the window drawable");
    return surface;
  }

  // No smaller than what the panels need, unless the monitor is.
  void limit_size() {
    limited_at_ = scale();
    int left = 0, top = 0, width = 0, height = 0;
    if (GLFWmonitor* monitor = glfwGetPrimaryMonitor(); monitor != nullptr)
      glfwGetMonitorWorkarea(monitor, &left, &top, &width, &height);
    const auto least = [&](int logical, int there) {
      const int wanted = static_cast<int>(static_cast<float>(logical) * limited_at_);
      return there > 0 ? std::min(wanted, there) : wanted;
    };
    glfwSetWindowSizeLimits(window_.get(), least(kLeastWidth, width), least(kLeastHeight, height),
                            GLFW_DONT_CARE, GLFW_DONT_CARE);
  }

  // False while there is nothing to draw on: minimized, or the GPU has no room for the pictures.
  bool prepare_swapchain() {
    if (scale() != limited_at_) limit_size();  // it went to another monitor
    int width = 0;
    int height = 0;
    glfwGetFramebufferSize(window_.get(), &width, &height);
    if (width <= 0 || height <= 0 || glfwGetWindowAttrib(window_.get(), GLFW_ICONIFIED) == GLFW_TRUE)
      return false;
    const VkExtent2D wanted = {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
    const bool fits = swapchain_ && swapchain_->extent().width == wanted.width &&
                      swapchain_->extent().height == wanted.height;
    if (stale_ || !fits) {
      stale_ = !remake_swapchain(wanted);
      if (stale_) return false;
    }
    if (!renderer_) upload_fonts();
    return true;
  }

  // What lacks memory now may have it at the next frame, and jobs must not end with this one's picture:
  // false, until the device is lost or it has failed for too long.
  bool remake_swapchain(VkExtent2D wanted) {
    constexpr double kPatience = 10;  // seconds
    swapchain_.reset();
    try {
      swapchain_.emplace(device_, pass_, format_, wanted);
    } catch (const Error&) {
      const double now = glfwGetTime();
      if (!failing_since_) failing_since_ = now;
      if (now - *failing_since_ > kPatience) throw;
      if (vkDeviceWaitIdle(device_.device()) == VK_ERROR_DEVICE_LOST) throw;
      return false;
    }
    failing_since_.reset();
    return true;
  }

  void present(ImDrawData* draw) {
    FrameSlot& slot = slots_[next_slot_];
    next_slot_ = (next_slot_ + 1) % slots_.size();
    slot.wait();
    std::uint32_t number = 0;
    // some compositors give no picture to a window that nobody sees
    constexpr std::uint64_t kPatience = 1'000'000'000;  // nanoseconds
    const VkResult acquired = vkAcquireNextImageKHR(device_.device(), swapchain_->get(), kPatience,
                                                    slot.acquired(), VK_NULL_HANDLE, &number);
    if (acquired == VK_TIMEOUT) return;
    if (passes(acquired)) {
      stale_ = true;
      return;
    }
    check(acquired, "taking the next picture");
    const Swapchain::Image& image = swapchain_->image(number);
    slot.submit(pass_, *swapchain_, image, draw);
    const VkSwapchainKHR swapchain = swapchain_->get();
    auto info = vulkan_info<VkPresentInfoKHR>(VK_STRUCTURE_TYPE_PRESENT_INFO_KHR);
    info.waitSemaphoreCount = 1;
    info.pWaitSemaphores = &image.drawn;
    info.swapchainCount = 1;
    info.pSwapchains = &swapchain;
    info.pImageIndices = &number;
    const VkResult shown = vkQueuePresentKHR(device_.queue(), &info);
    stale_ = passes(shown) || shown == VK_SUBOPTIMAL_KHR || acquired == VK_SUBOPTIMAL_KHR;
    if (!passes(shown)) check(shown, "showing the picture");
  }

  GlfwLibrary library_;
  WindowHandle window_;
  VulkanDevice device_;
  VkSurfaceFormatKHR format_;
  RenderPass pass_;
  std::array<FrameSlot, 2> slots_;
  std::size_t next_slot_ = 0;
  std::optional<ImGuiRenderer> renderer_;
  std::optional<Swapchain> swapchain_;
  bool stale_ = false;
  std::optional<double> failing_since_;  // the first of the attempts to remake the swapchain
  float forced_scale_ = 0;
  float limited_at_ = 0;  // the scale that the least size was made for
  std::vector<std::string> dropped_;
  struct Area {
    int x = 0, y = 0, width = 0, height = 0;
  };
  std::optional<Area> before_full_;  // where the window stood; absent unless it covers a monitor
  InputQueue input_;
  std::array<bool, 5> buttons_ = {};                 // of the mouse, as the last frame was told
  std::optional<std::pair<double, double>> cursor_;  // at the last event of the mouse
};

}  // namespace

std::unique_ptr<Window> open_desktop_window(const WindowOptions& options) {
  return std::make_unique<DesktopWindow>(options);
}

}  // namespace loadline::gui
