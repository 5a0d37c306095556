// Workspace, shell and window put together: one object that draws frames.
#pragma once

#include "app/gui/frame/export.h"
#include "app/gui/frame/shell.h"
#include "app/gui/state/workspace.h"
#include "app/gui/window/window.h"

#include <optional>
#include <stop_token>
#include <string>

namespace loadline::gui {

class GuiApp {
 public:
  // The window must outlive the app. A request on `stop` closes the window.
  GuiApp(Window& window, std::string hub_cache, std::stop_token stop = {},
         std::shared_ptr<const ForwardAssets> assets = nullptr);
  GuiApp(const GuiApp&) = delete;
  GuiApp& operator=(const GuiApp&) = delete;
  ~GuiApp();

  Workspace& workspace() { return workspace_; }
  Window& window() { return window_; }
  // Takes in finished jobs and dropped files, then draws one frame.
  void frame();
  // Draws frames until no job is left. Throws what check_open() throws.
  void settle();
  // Draws a few frames, until items placed by the layout of the frame before are in place. Throws likewise.
  void draw_settled();
  bool wants_close() const { return stop_.stop_requested() || workspace_.wants_quit; }
  // Throws Error{cancelled} once the window is to close, to end work whose result would not be seen.
  void check_open() const;
  // Whether something moves by itself, and whether a text field shows its cursor.
  bool moves() const {
    return workspace_.document().arena->view.playing || workspace_.document().playing ||
           workspace_.wants_export;
  }
  bool types() const;
  ImVec2 display_size() const;  // logical, of the last frame

 private:
  void refresh_style();
  void take_dropped();
  void follow_desktop();

  Window& window_;
  std::stop_token stop_;
  Workspace workspace_;
  Shell shell_;
  ViewExport export_;
  Ui ui_;
  std::optional<bool> styled_dark_;
  bool followed_desktop_ = false;  // in the last frame
  Latest<std::optional<bool>> desktop_dark_;
  float styled_scale_ = 0;
  float chosen_scale_ = 0;  // that the window was given
  std::string title_;
};

}  // namespace loadline::gui
