// One frame: apply the style if it changed, take in finished jobs, draw.
#include "app/gui/frame/gui_app.h"
#include "app/gui/window/desktop_theme.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <utility>

#include <imgui.h>

namespace loadline::gui {

GuiApp::GuiApp(Window& window, std::string hub_cache, std::stop_token stop,
               std::shared_ptr<const ForwardAssets> assets)
    : window_(window),
      stop_(std::move(stop)),
      workspace_(std::move(hub_cache), std::move(assets)),
      shell_(workspace_) {
  workspace_.set_wake(window_.waker());
}

GuiApp::~GuiApp() { workspace_.set_wake({}); }

void GuiApp::refresh_style() {
  if (workspace_.settings.scale != chosen_scale_) {
    chosen_scale_ = workspace_.settings.scale;
    window_.set_scale(chosen_scale_);
  }
  // in front of an audience everything is larger, and the window has as many pixels as before
  constexpr float kPresented = 1.5f;
  workspace_.settings.shown_scale = window_.scale();
  const float scale = window_.scale() * (workspace_.lesson.presents ? kPresented : 1);
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

// Asks once, when that begins; a desktop that does not answer leaves the theme as it is.
void GuiApp::follow_desktop() {
  const bool follows = workspace_.settings.follows_desktop;
  if (std::exchange(followed_desktop_, follows) || !follows) return;
  desktop_dark_.ask(
      workspace_.shared.jobs, "Asking the desktop for its theme",
      [](Progress&) { return desktop_prefers_dark(); },
      [this] {
        if (desktop_dark_.value() && *desktop_dark_.value() && workspace_.settings.follows_desktop)
          workspace_.settings.dark = **desktop_dark_.value();
      });
}

void GuiApp::take_dropped() {
  for (const std::string& path : window_.take_dropped()) workspace_.open(path);
}

void GuiApp::frame() {
  workspace_.poll();
  if (window_.takes_close()) workspace_.ask_quit();
  take_dropped();
  follow_desktop();
  const std::string title = workspace_.document().model
                                ? safe_display(workspace_.document().model->name) + " - Loadline"
                                : "Loadline";
  if (title != title_) {
    title_ = title;
    window_.set_title(title);
  }
  refresh_style();
  if (std::exchange(workspace_.wants_attention, false)) window_.request_attention();
  export_.before_frame(workspace_);
  window_.frame([&] { shell_.draw(ui_); });
  export_.after_frame(workspace_, window_, ui_, shell_.panel_rect(), shell_.timeline_rect());
}

bool GuiApp::types() const { return ImGui::GetIO().WantTextInput; }

ImVec2 GuiApp::display_size() const {
  const ImVec2 pixels = ImGui::GetIO().DisplaySize;
  return {pixels.x / workspace_.settings.shown_scale, pixels.y / workspace_.settings.shown_scale};
}

void GuiApp::check_open() const {
  if (stop_.stop_requested()) throw Error(ErrorCode::cancelled, "interrupted");
  if (wants_close()) throw Error(ErrorCode::cancelled, "the window was closed");
}

void GuiApp::settle() {
  check_open();
  while (workspace_.busy() || !workspace_.lesson.to_show.empty()) {
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
