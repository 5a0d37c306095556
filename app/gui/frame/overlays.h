// The dialog that opens a model: a path line, a list of the folder, and the keyboard.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

#include <string>

namespace loadline::gui {

class FileBrowser {
 public:
  void open(Workspace& workspace);
  bool is_open() const { return open_; }
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void draw_list(Workspace& workspace, const Ui& ui, float height);
  void draw_entry(Workspace& workspace, const Ui& ui, std::size_t i);
  void handle_keys(Workspace& workspace);
  void go(Workspace& workspace, const std::string& folder);
  void enter(Workspace& workspace, std::size_t i);
  void open_model(Workspace& workspace, const std::string& path);
  std::string path_of(const Workspace& workspace, std::size_t i) const;

  bool open_ = false;
  bool appearing_ = false;
  bool focus_ = false;  // the path gets the keyboard at the next frame
  std::string path_;    // the line at the top
  std::string listed_;  // the folder that path_ was set from
  std::size_t current_ = 0;
  bool scroll_ = false;
};

}  // namespace loadline::gui
