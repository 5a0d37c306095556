// The part of a window that needs no device: a logical size, a scale, a steady clock.
#pragma once

#include "app/gui/window/input.h"
#include "app/gui/window/window.h"

#include <cmath>

#include <imgui.h>

namespace loadline::gui {

class StillWindow : public Window {
 public:
  explicit StillWindow(const WindowOptions& options)
      : width_(options.width),
        height_(options.height),
        usual_scale_(options.scale > 0 ? options.scale : 1),
        scale_(usual_scale_) {}

  void set_size(int width, int height) override {
    width_ = width;
    height_ = height;
  }
  float scale() const override { return aside_ ? aside_->scale : scale_; }
  void set_scale(float scale) override { scale_ = scale > 0 ? scale : usual_scale_; }
  void set_mouse(float x, float y, bool down) override {
    mouse_ = {x, y};
    mouse_down_ = down;
  }

 protected:
  void build_frame(const std::function<void()>& build) {
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {std::round(static_cast<float>(aside_ ? aside_->width : width_) * scale()),
                      std::round(static_cast<float>(aside_ ? aside_->height : height_) * scale())};
    io.DeltaTime = 1.0f / 60;
    io.MousePos = {mouse_.x * scale_, mouse_.y * scale_};
    io.MouseDown[0] = mouse_down_;
    prepare_mouse();
    prepare_keyboard();
    ImGui::NewFrame();
    build();
    ImGui::Render();
  }

 private:
  int width_;
  int height_;
  float usual_scale_;  // in place of a monitor's
  float scale_;
  ImVec2 mouse_ = {-1000, -1000};
  bool mouse_down_ = false;
};

}  // namespace loadline::gui
