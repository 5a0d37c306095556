// The frame around the panels: header, module tree, tabs, notices, details of the selection, status.
#pragma once

#include "app/gui/panel.h"
#include "app/gui/panels/file_browser.h"
#include "app/gui/session/workspace.h"
#include "app/gui/ui.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace loadline::gui {

class Shell {
 public:
  explicit Shell(Workspace& workspace);

  // Draws one frame over the whole display.
  void draw(const Ui& ui);

 private:
  void handle_shortcuts();
  void draw_header(const Ui& ui, float height);
  void draw_header_model(const Ui& ui, float right);
  bool draw_theme_button(const Ui& ui);
  void draw_body(const Ui& ui, float height);
  void draw_tabs(const Ui& ui);
  void draw_notices(const Ui& ui);
  void draw_panel(const Ui& ui);
  void draw_details(const Ui& ui);
  void draw_status(const Ui& ui);
  Panel& panel(std::string_view id);

  Workspace& workspace_;
  std::map<std::string, std::unique_ptr<Panel>, std::less<>> panels_;  // made at first use
  std::unique_ptr<Panel> tree_;
  std::unique_ptr<Panel> start_;
  FileBrowser browser_;
  float tree_width_ = 0;          // logical; 0 = follows the window until the user drags it
  std::uint64_t seen_model_ = 0;  // the id of the document that panels have seen
};

}  // namespace loadline::gui
