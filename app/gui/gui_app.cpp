// One frame: apply the style if it changed, take in finished jobs, draw.
#include "app/gui/gui_app.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <imgui.h>

namespace loadline::gui {

GuiApp::GuiApp(Window& window, std::string hub_cache, std::stop_token stop,
               std::shared_ptr<const ForwardAssets> assets)
    : window_(window),
      stop_(std::move(stop)),
      workspace_(std::move(hub_cache), std::move(assets)),
      shell_(workspace_) {
  workspace_.shared.jobs.set_wake(window_.waker());
}

GuiApp::~GuiApp() { workspace_.shared.jobs.set_wake({}); }

void GuiApp::refresh_style() {
  if (workspace_.settings.scale != chosen_scale_) {
    chosen_scale_ = workspace_.settings.scale;
    window_.set_scale(chosen_scale_);
  }
  const float scale = window_.scale();
  workspace_.settings.shown_scale = scale;
  if (scale != styled_scale_) {
    ui_.fonts = load_fonts(scale);
    window_.upload_fonts();
  }
  if (scale == styled_scale_ && styled_dark_ == workspace_.settings.dark) return;
  styled_scale_ = scale;
  styled_dark_ = workspace_.settings.dark;
  ui_.scale = scale;
  ui_.theme = workspace_.settings.dark ? &dark_theme() : &light_theme();
  apply_theme(*ui_.theme, scale);
}

void GuiApp::take_dropped() {
  const std::vector<std::string> dropped = window_.take_dropped();
  if (!dropped.empty()) workspace_.open(dropped.front());
  if (dropped.size() > 1)
    workspace_.shared.notices.add(
        Severity::info,
        "Several files were dropped: only the first one is opened. Drop the folder of a model instead.");
}

void GuiApp::frame() {
  workspace_.poll();
  take_dropped();
  const std::string title = workspace_.document().model
                                ? safe_display(workspace_.document().model->name) + " - Loadline"
                                : "Loadline";
  if (title != title_) {
    title_ = title;
    window_.set_title(title);
  }
  refresh_style();
  window_.frame([&] { shell_.draw(ui_); });
}

bool GuiApp::types() const { return ImGui::GetIO().WantTextInput; }

ImVec2 GuiApp::display_size() const {
  const ImVec2 pixels = ImGui::GetIO().DisplaySize;
  return {pixels.x / ui_.scale, pixels.y / ui_.scale};
}

void GuiApp::check_open() const {
  if (stop_.stop_requested()) throw Error(ErrorCode::cancelled, "interrupted");
  if (wants_close()) throw Error(ErrorCode::cancelled, "the window was closed");
}

void GuiApp::settle() {
  check_open();
  while (workspace_.busy()) {
    frame();
    check_open();
    window_.wait_events(0.01);
  }
  workspace_.poll();
}

void GuiApp::draw_settled() {
  constexpr int kFrames = 4;
  for (int i = 0; i < kFrames; ++i) {
    check_open();
    frame();
  }
}

}  // namespace loadline::gui
