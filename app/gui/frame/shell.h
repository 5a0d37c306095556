// The frame around the panels: toolbar, module tree, tabs, notices, inspector, timeline, jobs line.
#pragma once

#include "app/gui/frame/export.h"
#include "app/gui/frame/overlays.h"
#include "app/gui/frame/palette.h"
#include "app/gui/frame/toolbar.h"
#include "app/gui/panels/panel.h"
#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

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
  // Where the panel and the timeline were drawn last, in pixels.
  const ViewRect& panel_rect() const { return panel_rect_; }
  const ViewRect& timeline_rect() const { return timeline_rect_; }

 private:
  void handle_shortcuts();
  bool lesson_takes_keys();  // of this frame, in place of the shortcuts
  void draw_presented(const Ui& ui, ImVec2 size);
  void draw_views(const Ui& ui, ImVec2 size);
  void draw_hidden_views(const Ui& ui, ImVec2 size);
  bool lesson_hides_views() const;
  void draw_body(const Ui& ui, ImVec2 size);
  void draw_start(const Ui& ui, ImVec2 size);
  void draw_main(const Ui& ui);
  void draw_tabs(const Ui& ui);
  void draw_sheet_title(const Ui& ui);
  bool leave_sheet();
  void draw_quit(const Ui& ui);
  void draw_notices(const Ui& ui);
  void draw_panel(const Ui& ui);
  void draw_jobs(const Ui& ui, float height);
  Panel& panel(std::string_view id);

  Workspace& workspace_;
  std::map<std::string, std::unique_ptr<Panel>, std::less<>> panels_;  // made at first use
  std::unique_ptr<Panel> tree_, inspector_, timeline_, start_, lesson_;
  ViewRect panel_rect_, timeline_rect_;
  Toolbar toolbar_;
  Palette palette_;
  FileBrowser browser_;
  std::string last_panel_ = "map";  // below a sheet
  float caption_ = 0;               // the height of the presented text
  std::uint64_t seen_model_ = 0;    // the id of the document that panels have seen
};

}  // namespace loadline::gui
