// One frame: style if it changed, deliveries, drawing.
#include "app/gui/gui_app.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace loadline::gui {

GuiApp::GuiApp(Window& window, std::string hub_cache, std::stop_token stop,
               std::shared_ptr<const ForwardAssets> assets)
    : window_(window),
      stop_(std::move(stop)),
      session_(std::move(hub_cache), std::move(assets)),
      shell_(session_) {
  session_.set_wake(window_.waker());
}

GuiApp::~GuiApp() { session_.set_wake({}); }

void GuiApp::refresh_style() {
  const float scale = window_.scale();
  if (scale != styled_scale_) {
    ui_.fonts = load_fonts(scale);
    window_.upload_fonts();
  }
  if (scale == styled_scale_ && styled_dark_ == session_.dark) return;
  styled_scale_ = scale;
  styled_dark_ = session_.dark;
  ui_.scale = scale;
  ui_.theme = session_.dark ? &dark_theme() : &light_theme();
  apply_theme(*ui_.theme, scale);
}

void GuiApp::take_dropped() {
  const std::vector<std::string> dropped = window_.take_dropped();
  if (!dropped.empty()) session_.open(dropped.front());
  if (dropped.size() > 1)
    session_.notify(
        Severity::info,
        "Several files were dropped: only the first one is opened. Drop the folder of a model instead.");
}

void GuiApp::frame() {
  session_.poll();
  take_dropped();
  const std::string title =
      session_.model() ? safe_display(session_.model()->name) + " - Loadline" : "Loadline";
  if (title != title_) {
    title_ = title;
    window_.set_title(title);
  }
  refresh_style();
  window_.frame([&] { shell_.draw(ui_); });
}

void GuiApp::check_open() const {
  if (stop_.stop_requested()) throw Error(ErrorCode::cancelled, "interrupted");
  if (wants_close()) throw Error(ErrorCode::cancelled, "the window was closed");
}

void GuiApp::settle() {
  check_open();
  while (session_.busy()) {
    frame();
    check_open();
    window_.wait_events(0.01);
  }
  session_.poll();
}

void GuiApp::draw_settled() {
  constexpr int kFrames = 4;
  for (int i = 0; i < kFrames; ++i) {
    check_open();
    frame();
  }
}

}  // namespace loadline::gui
